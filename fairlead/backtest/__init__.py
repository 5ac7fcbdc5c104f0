"""Backtest: replay the snapshots that are stored, with each assignor in charge.

`replay` puts one assignor in charge of a recorded group, on arrays alone; `spark` reads the
snapshots from the warehouse and replays every assignor, one a task; `report` condenses what came of
it, `plot` draws it.
"""
