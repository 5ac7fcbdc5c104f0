"""Consumer groups from public reports, each with the right answer of the analysis.

The right answers were written before the analysis was run. `python -m benchmarks.stories` compares
them with the answers of `fairlead decide`.
"""
