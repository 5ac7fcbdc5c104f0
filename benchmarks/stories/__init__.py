"""Consumer groups from public reports, each with the answer that the analysis should give.

The right answers were written before the analysis was run. `python -m benchmarks.stories` compares
them with the answers of `fairlead decide`.
"""
