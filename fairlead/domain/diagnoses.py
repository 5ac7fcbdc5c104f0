"""Names of the nine diagnoses.

`fairlead.domain.analysis.diagnosis` chooses one; `docs/operations.md` has a remedy for each. A new
name also needs a next step (`surfaces.next_step`) and a new check in the table of diagnoses.
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
#: The evidence of the diagnosis `unknown` for a group without members.
NO_MEMBERS: Final = "The group has no members."
