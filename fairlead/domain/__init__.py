"""Consumer groups and decisions about them, as values and pure functions.

- `groups` is Kafka's answer about a group; `samples` the table of such answers; `looks` the same as
  arrays over time.
- `analysis` diagnoses a group and decides what helps; `policy` and `cohorts` are what people want.
- `drafting`, `candidate_figures`, `approval`, `basis`, `prospect`, `consumers` and `explanation`
  are the steps of a plan; `records` is what Postgres stores about it.
- `figures` has the name, unit and meaning of every figure that is shown.

Nothing here uses a clock, a network or a database: callers pass in what is needed.
"""
