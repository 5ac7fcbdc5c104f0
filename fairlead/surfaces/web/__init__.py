"""`fairlead serve`: metrics for Prometheus, and pages for people.

The server reads the plan history. If a proxy proves people's names, they can act on the pages.
Without such a proxy, the pages are read-only.
"""

from fairlead.surfaces.web.app import build_app

__all__ = ["build_app"]
