"""Simulated consumer groups in a closed loop, and the controllers that plan them.

`scenario` says what happens to a group, with `traffic`, `costs`, `crawling`, `churn` and `misses`,
`catalogue` has the scenarios by name; `world` draws one of them by a seed. `reading` lets members
read by the way in which their clients share time (`sharing`), `commits` says what they commit of
it. `controllers`, `planner` and `oracle` decide who reads what, `registry` has them by name; `loop`
runs one of them in a world, `run_figures` measures what came of it.

The loop itself is `fairlead.simulation`, with which `fairlead backtest` replays recorded groups.
"""
