"""What looks at a group say of it, and whether a plan would help: pure functions over arrays.

From offsets to a decision: `series` (what was seen), `commits` (what of a lag is only a commit that
has not come yet), `arrivals` (how fast partitions fill), `capacities` (how fast members are),
`forecast` (how late each assignment would be), `diagnosis` (what is the matter), `candidates` (what
each assignor would do), `decision` (whether to plan, and what). `rules` is what a policy asks for,
`lines` all of it as JSON lines. Nothing here knows Dagster, Spark, Kafka or Postgres; but for
`lines`, numpy and `assignors` are all it needs.
"""
