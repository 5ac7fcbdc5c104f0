"""Simulated consumer groups in a closed loop, and the controllers that plan them.

`scenario` defines what happens to a group, with `traffic`, `costs`, `crawling`, `churn` and
`misses`; `catalogue` has the scenarios by name; `world` draws a scenario by a seed. `reading`
computes what members read, given how their clients share time (`sharing`), and `commits` what they
commit. `controllers`, `planner` and `oracle` choose the owners; `registry` has them by name. `loop`
runs a controller in a world, and `run_figures` measures the run.

The loop itself is `fairlead.simulation`; `fairlead backtest` replays recorded groups with it.
"""
