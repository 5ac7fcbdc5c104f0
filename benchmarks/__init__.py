"""Side-by-side measurements against Kafka's own assignors: `make bench`.

`speed` measures time, with the peers in Java in the same run; `quality` measures what plans are
worth on seeded scenarios; `report` prints and draws both.
"""

from fairlead.common.threads import one_thread

one_thread()  # as in whatever the command line starts
