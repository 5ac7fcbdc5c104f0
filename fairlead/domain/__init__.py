"""What is known of groups and decided on them, as values and pure functions.

`groups` are what Kafka tells of a group; `looks` where it stood over time; `judgement` what is the
matter and what helps; `policy` and `cohorts` what people want; `drafting`, `candidate_figures`,
`approval`, `basis`, `prospect`, `consumers` and `explanation` what becomes of a plan; `records`
what is kept of it; `figures` the name, unit and meaning of what is shown. No clock, no network, no
database: whatever is needed is handed in.
"""
