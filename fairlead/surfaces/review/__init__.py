"""The review of a plan: one HTML page with all that a person needs to approve or reject it.

Belongs here: gathering the stored facts of a version (`facts`), its risks (`risks`), and the page
itself (`page`, `templates/`). Belongs elsewhere: how to decide (`fairlead.surfaces.offers`),
serving the page (`fairlead.surfaces.web`), writing it to a file (`fairlead.surfaces.cli`).
"""

from fairlead.surfaces.review.page import review_page

__all__ = ["review_page"]
