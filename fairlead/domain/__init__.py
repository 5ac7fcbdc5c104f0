"""Consumer groups and decisions about them, as values and pure functions.

- `groups` has the answers of brokers about a group; `samples` the table of these, and arrays
  made from it.
- `analysis` diagnoses a group and decides on a plan; `policy` and `cohorts` are the settings.
- `drafting`, `candidate_figures`, `approval`, `basis`, `prospect`, `consumers` and `explanation`
  are the steps of a plan; `records` are its stored values.
- `regression` checks whether a plan made its group worse.
- `figures` has the name, unit and meaning of every displayed figure.

Nothing here uses a clock, a network or a database.
"""
