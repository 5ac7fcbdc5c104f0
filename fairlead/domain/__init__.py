"""Consumer groups and decisions about them, as values and pure functions.

- `groups` has the values that brokers return about a group; `samples` has the table of these
  values, and arrays made from the table.
- `analysis` diagnoses a group and decides on a plan; `policy` and `cohorts` have the settings.
- `drafting`, `candidate_figures`, `approval`, `basis`, `prospect`, `consumers` and `explanation`
  make, check and explain plans; `records` has decisions and plans as they are stored.
- `regression` checks whether a plan made its group worse.
- `figures` has the name, unit and meaning of every displayed figure.

Nothing here uses a clock, a network or a database.
"""
