"""`fairlead serve`: metrics for Prometheus, and pages for people.

It reads the plan history, as `fairlead_reader` may, and writes nothing. It knows no user: put a
proxy that does in front of it where it is to be reached from other machines.
"""

from fairlead.surfaces.web.app import build_app

__all__ = ["build_app"]
