"""What people see and type.

`cli` is the command line; `web` serves pages and metrics; `review` is a plan's page; `plots` its
pictures; `backtest` a report on recorded history; `demo` shows all of it; `links` leads from one to
another.
"""
