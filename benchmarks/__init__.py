"""Side-by-side measurements against Kafka's own assignors: `make bench`.

`speed` measures time, with the peers in Java in the same run; `quality` measures the balance and
moves of plans on seeded scenarios; `report` prints and draws both.
"""

from fairlead.common.threads import one_thread

one_thread()  # the same as in processes of the command line
