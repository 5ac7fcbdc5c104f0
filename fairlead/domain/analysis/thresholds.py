"""Thresholds that several steps of the analysis share.

Belongs here: numbers with one meaning in more than one module. Does not: those of a single rule,
which stand in its module.
"""

from typing import Final

#: Steps between samples that show a speed, a pause or a habit: fewer may be chance.
STEPS: Final = 5
#: Samples needed after the first one, a plan or a change of members: one more than `STEPS`.
SAMPLES_NEEDED: Final = STEPS + 1
#: Steps. What is recent, if more would be available.
RECENT_STEPS: Final = 20
#: Commits, turns or peers that show what is usual.
SEVERAL: Final = 3
#: Records below which counts and ages are chance.
FEW_RECORDS: Final = 10
#: Share below which a part does not count, and a change is none.
NEGLIGIBLE: Final = 0.1
#: Share from which a part counts as the whole.
MOSTLY: Final = 1.0 - NEGLIGIBLE
#: Ratio from which a figure is more than another one, and not only by noise.
CLEARLY: Final = 1.25
#: Standard deviations beyond which a difference is no chance.
DEVIATIONS: Final = 4.0
#: Standard deviations on each side of a 90 % interval.
NINE_IN_TEN: Final = 1.645
#: Names listed in a sentence, at most.
NAMED: Final = 3
#: Seconds. `auto.commit.interval.ms` of Kafka's clients.
AUTO_COMMIT_S: Final = 5.0
#: Seconds. Maximum time between reading the end offsets and the commits of one sample.
SAMPLE_S: Final = 15.0
DAY_S: Final = 86_400.0
#: Seconds. Speeds and costs are forgotten after that, and no back-off is longer.
WEEK_S: Final = 7 * DAY_S
