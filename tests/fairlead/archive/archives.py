"""Build sample archives for tests, and read their files."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa

from fairlead.archive import SampleArchive
from fairlead.domain.samples import new_snapshot_id, snapshot_id_at
from tests.samples import samples

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
KEPT = timedelta(days=2)


def sample_at(at: datetime, *groups: str) -> pa.Table:
    """Return a sample of groups (by default `g`) that each read one partition."""
    end = [int(at.timestamp())]
    row = {"topics": ["t"], "counts": [1], "begin": [0], "end": end, "at": at}
    row["sample_id"] = snapshot_id_at(at)
    return samples(*({**row, "group": group} for group in groups or ("g",)))


def append(archive: SampleArchive, before: float, *groups: str) -> str:
    """Write a sample that was taken `before` minutes before noon; return the sample's id."""
    at = NOON - before * MINUTE
    sample_id = new_snapshot_id(at)
    archive.append(sample_at(at, *groups), sample_id)
    return sample_id


def filled(path: Path, minutes: Collection[int]) -> SampleArchive:
    """Return an archive with samples taken the given numbers of minutes before noon."""
    archive = SampleArchive(str(path))
    for before in minutes:
        append(archive, before)
    return archive


def minutes(archive: SampleArchive, since: timedelta = timedelta(days=1)) -> list[int]:
    """Return the times of the readable samples, in minutes before noon, latest first."""
    read = archive.read(NOON - since, NOON)["at"].to_pylist()
    return [round((NOON - at) / MINUTE) for at in reversed(read)]


def files(path: Path) -> list[Path]:
    """Return the sample files, oldest first."""
    return sorted((path / "samples").glob("2*/*"))


def damaged(path: Path) -> list[bytes]:
    """Return the contents of the damaged files that the archive has set aside."""
    return [file.read_bytes() for file in sorted((path / "samples" / "damaged").glob("*"))]
