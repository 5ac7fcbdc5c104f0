"""The nine words for what is the matter with a group.

Belongs here: the words. Does not: which of them holds (`fairlead.domain.analysis.diagnosis`), what
people do then (`docs/operations.md`).
"""

from typing import Final, Literal, get_args

DiagnosisName = Literal[
    "healthy",
    "recovering",
    "unbalanced",
    "slow member",
    "overloaded",
    "hot partition",
    "stuck partition",
    "throttled partition",
    "unknown",
]
DIAGNOSES: Final[tuple[DiagnosisName, ...]] = get_args(DiagnosisName)
#: The evidence of `unknown` for a group that nobody is a member of.
NO_MEMBERS: Final = "The group has no members."
