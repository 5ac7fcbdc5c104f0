"""Backtest: replay the samples that are kept of a group, with another assignor or policy in charge.

`recording` makes a world of a group's samples: what arrived, who was there, and by `speeds` how
fast members were. `replay` puts an assignor or a policy in charge of it; `spark` reads the
samples from the archive and replays all of them, one a task; `report` condenses the results,
`plot` draws them.
"""
