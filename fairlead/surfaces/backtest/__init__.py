"""Backtest: replay the samples of a group with another assignor or policy.

`recording` turns samples into a simulated world of arrivals and members; `speeds` estimates how
fast each member was. `replay` runs an assignor or a policy in this world; `replays` reads the
samples from the archive and runs one replay per process; `report` summarises the results.
"""
