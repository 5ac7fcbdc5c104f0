"""User interfaces.

`cli` is the command line; `web` serves pages and metrics; `review` is a plan's page; `plots` draws
figures of a group's page; `backtest` replays recorded history; `demo` runs Fairlead on embedded
services; `links` has the addresses of pages.
"""
