"""The review of a plan: one HTML page that says all a person needs to approve or reject it.

Belongs here: gathering what is stored of a version (`facts`), what speaks against it (`risks`), how
to decide (`ways`), and the page itself (`page`, `templates/`). Does not: serving it
(`fairlead.surfaces.web`), writing it to a file (`fairlead.surfaces.cli`), deciding.
"""

from fairlead.surfaces.review.page import review_page

__all__ = ["review_page"]
