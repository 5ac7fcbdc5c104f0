"""Consumer groups from public reports, each with its right answer.

The right answers were fixed before the analysis was run. `python -m benchmarks.stories` compares
them with the answers of `fairlead decide`.
"""
