"""Simulated consumer groups in a closed loop, and the controllers that plan them.

`scenario` defines what happens to a group, with `traffic`, `costs`, `crawling`, `churn` and
`misses`. `catalogue` has the scenarios by name, and `world` draws their random values from a seed.
`reading` computes how much members read, given how their clients share time (`sharing`). `commits`
computes their commits. `controllers`, `planner` and `oracle` choose the owners, and `registry` has
all controllers by name. `loop` runs a controller in a world, and `run_figures` measures the run.

The loop itself is `fairlead.simulation`; `fairlead backtest` replays recorded groups with it.
"""
