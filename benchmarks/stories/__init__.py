"""Consumer groups from public reports, each with the answer that is right for it.

The answers were fixed before the analysis was asked. `python -m benchmarks.stories` compares them
with what `fairlead decide` answers.
"""
