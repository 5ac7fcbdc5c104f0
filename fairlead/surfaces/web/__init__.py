"""`fairlead serve`: metrics for Prometheus, and pages for people.

It reads the plan history. People can act on its pages if a proxy proves their names; without such
a proxy, pages are read-only.
"""

from fairlead.surfaces.web.app import build_app

__all__ = ["build_app"]
