"""Backtest: live through the snapshots that are stored again, with somebody else in charge.

`recording` makes a world of a group's snapshots: what arrived, who was there, and by `speeds` how
fast members were. `replay` puts an assignor or a policy in charge of it; `spark` reads the
snapshots from the warehouse and replays everybody, one a task; `report` condenses what came of it,
`plot` draws it.
"""
