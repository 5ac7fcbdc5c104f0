"""User interfaces.

`cli` is the command line; `web` serves pages and metrics; `review` is a plan's page; `plots` draws
its pictures; `backtest` reports on recorded history; `demo` shows all of it; `links` has the
addresses of pages.
"""
