"""The review of a plan: one HTML page that says all a person needs to approve or reject it.

Belongs here: gathering what is stored of a version (`facts`), what speaks against it (`risks`), and
the page itself (`page`, `templates/`). Does not: how to decide (`fairlead.surfaces.ways`), serving
the page (`fairlead.surfaces.web`), writing it to a file (`fairlead.surfaces.cli`).
"""

from fairlead.surfaces.review.page import review_page

__all__ = ["review_page"]
