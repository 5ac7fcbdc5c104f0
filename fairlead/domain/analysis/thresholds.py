"""Thresholds that several steps of the analysis share.

Belongs here: numbers with one meaning in more than one module. Belongs elsewhere: thresholds of a
single rule, which are in the module of that rule.
"""

from typing import Final

#: Minimum number of steps (from one sample to the next) to measure a speed, a pause or a habit.
STEPS: Final = 5
#: Minimum number of samples for a diagnosis, and of samples between a plan and the next plan.
SAMPLES_NEEDED: Final = STEPS + 1
#: At most this many newest steps between samples are recent.
RECENT_STEPS: Final = 20
#: Minimum number of commits or peers from which a typical value is computed.
SEVERAL: Final = 3
#: If there are fewer records than this, their number and age are mostly chance.
FEW_RECORDS: Final = 10
#: A part or a change that is smaller than this share of the whole is ignored.
NEGLIGIBLE: Final = 0.1
#: A part that is at least this share of the whole is treated as the whole.
MOSTLY: Final = 1.0 - NEGLIGIBLE
#: Two measured values differ clearly if their ratio is at least this.
CLEARLY: Final = 1.25
#: Minimum share by which a plan must reduce the time lag of members that stay over the objective,
#: or traffic between racks that has no known price.
BETTER: Final = 0.1
#: A difference of more than this many standard deviations is not chance.
DEVIATIONS: Final = 4.0
#: Half the width of a 90 % interval, in standard deviations.
NINE_IN_TEN: Final = 1.645
#: Maximum number of names in a sentence.
NAMED: Final = 3
#: Seconds. Default of `auto.commit.interval.ms` in Kafka's clients.
AUTO_COMMIT_S: Final = 5.0
#: Seconds. Maximum time between reading the end offsets and the commits of one sample.
SAMPLE_S: Final = 15.0
DAY_S: Final = 86_400.0
#: Seconds. Age at which measured speeds and costs are forgotten, and longest wait between plans.
WEEK_S: Final = 7 * DAY_S
