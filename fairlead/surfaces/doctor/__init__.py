"""`fairlead doctor`: checks of everything that Fairlead needs, with remedies.

Belongs here: the parts to check, and their order. Belongs elsewhere: printing findings
(`fairlead.surfaces.cli.doctor`).

The checks change nothing. To find missing rights, they try no operation. Instead they ask Kafka
which operations it allows (KIP-430), and Postgres which roles the user has.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Final

from fairlead.errors import FairleadError, StoreUnavailableError
from fairlead.settings import Settings, origin
from fairlead.surfaces.doctor.archive import examine_archive
from fairlead.surfaces.doctor.database import examine_database
from fairlead.surfaces.doctor.finding import Finding
from fairlead.surfaces.doctor.host import answered, examine_host
from fairlead.surfaces.doctor.kafka import examine_kafka
from fairlead.surfaces.doctor.switches import examine_dagster

__all__ = ["PARTS", "Finding", "answered", "examine", "examine_kafka"]

_Part = Callable[[Settings], Iterator[Finding]]
#: Parts to check, in this order, because a check may need what an earlier part has checked.
PARTS: Final[dict[str, _Part]] = {
    "host": examine_host,
    "archive": examine_archive,
    "database": examine_database,
    "kafka": examine_kafka,
    "dagster": examine_dagster,
}
#: Remedy if Postgres does not answer. If Kafka does not answer, the error contains a remedy.
_DATABASE_AWAY: Final = (
    "start Postgres, or set postgres.url of fairlead.toml (FAIRLEAD_POSTGRES__URL) to its address"
)


def examine(settings: Settings, *, skip: Collection[str] = ()) -> Iterator[Finding]:
    """Check all parts.

    Parameters
    ----------
    settings
        The loaded settings.
    skip
        Names of `PARTS` to leave out.
    """
    count = len(settings.policies)
    covered = "1 policy" if count == 1 else f"{count} policies"
    yield Finding(
        "settings", "ok", f"{origin()}; {covered}; state in {settings.state_dir.absolute()}"
    )
    for place, policy in enumerate(settings.policies, 1):
        if policy.doubt:
            yield Finding("policies", "warning", f"[[policies]] {place}: {policy.doubt}")
    for name, part in PARTS.items():
        if name in skip:
            continue
        try:
            yield from part(settings)
        except FairleadError as error:
            away = isinstance(error, StoreUnavailableError)
            yield Finding(name, "failed", str(error), _DATABASE_AWAY if away else "")
