"""Benchmarks. `make bench` compares Fairlead's assignors with Kafka's own.

`speed` measures their time, and the time of Kafka's Java assignors in the same run. `quality`
measures balance and moves of plans on seeded scenarios. `report` prints and draws the results.
"""

from fairlead.common.threads import one_thread

one_thread()  # as the `fairlead` command does
