"""`fairlead serve`: metrics for Prometheus, and pages for people.

It reads the plan history. People act on its pages if a proxy in front proves who they are;
without a proxy it knows nobody.
"""

from fairlead.surfaces.web.app import build_app

__all__ = ["build_app"]
