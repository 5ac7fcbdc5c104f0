"""Check that this machine's clock and the database's agree.

Belongs here: the check, made before this machine's clock dates samples. Belongs elsewhere: its
callers (`fairlead.workflows`, `assets`).
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import Engine, func, select

from fairlead.common.words import length
from fairlead.errors import ClocksApartError
from fairlead.store.engine import transaction

#: Largest accepted difference between the clocks. One minute is the usual time between two samples,
#: and consumers that follow plans tolerate the same difference.
APART: Final = timedelta(minutes=1)


def check_clock(engine: Engine) -> None:
    """Check that this machine's clock differs from the database's by at most `APART`.

    With a clock that is ahead, a sample would remain the newest until its time has passed. With a
    clock that is behind, a sample would be older than samples that are stored already.

    Raises
    ------
    ClocksApartError
        The clocks are further apart.
    StoreUnavailableError
        The database does not answer.
    """
    with transaction(engine) as connection:
        database_time = connection.execute(select(func.clock_timestamp())).scalar_one()
    ahead = datetime.now(UTC) - database_time
    if abs(ahead) > APART:
        raise ClocksApartError(
            f"This machine's clock is {length(abs(ahead))} "
            f"{'ahead of' if ahead > timedelta(0) else 'behind'} the database's: groups are not "
            "sampled until both agree. Synchronise them, for example by NTP"
        )
