"""Backtest: replay the samples of a group with another assignor or policy.

`recording` turns samples into a simulated world: arrivals, members and, from `speeds`, how fast
members were. `replay` runs an assignor or a policy in it; `replays` reads the samples from the
archive and runs one replay per process; `report` summarises the results.
"""
