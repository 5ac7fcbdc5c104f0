"""Thresholds that several steps of the analysis share.

Belongs here: numbers with one meaning in more than one module. Belongs elsewhere: thresholds of a
single rule, which are in the module of that rule.
"""

from typing import Final

#: Minimum number of steps (from one sample to the next) to measure a speed, a pause or a habit.
STEPS: Final = 5
#: Minimum number of samples of a group, and of samples since its last plan: `STEPS` steps.
SAMPLES_NEEDED: Final = STEPS + 1
#: Maximum number of newest steps that count as recent.
RECENT_STEPS: Final = 20
#: Minimum number of commits or peers from which a typical value is computed.
SEVERAL: Final = 3
#: Number of records below which counts and ages are mostly chance.
FEW_RECORDS: Final = 10
#: Share below which a part or a change is ignored.
NEGLIGIBLE: Final = 0.1
#: Share at or above which a part counts as the whole.
MOSTLY: Final = 1.0 - NEGLIGIBLE
#: Smallest ratio of two figures that is not noise.
CLEARLY: Final = 1.25
#: Minimum share by which a plan must reduce the time lag of members that stay over the objective,
#: or traffic between racks that has no known price.
BETTER: Final = 0.1
#: Number of standard deviations beyond which a difference is not chance.
DEVIATIONS: Final = 4.0
#: Distance of the ends of a 90 % interval from its middle, in standard deviations.
NINE_IN_TEN: Final = 1.645
#: Maximum number of names in a sentence.
NAMED: Final = 3
#: Seconds. `auto.commit.interval.ms` of Kafka's clients.
AUTO_COMMIT_S: Final = 5.0
#: Seconds. Maximum time between reading the end offsets and the commits of one sample.
SAMPLE_S: Final = 15.0
DAY_S: Final = 86_400.0
#: Seconds. Age at which speeds and costs are forgotten, and the longest back-off.
WEEK_S: Final = 7 * DAY_S
