"""Tidying removes only unneeded samples, also if it runs during a read or is interrupted."""

from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.archive import SampleArchive
from fairlead.archive.files import SampleFiles
from fairlead.domain.history import EVERY_SAMPLE, THINNED_TO
from fairlead.domain.samples import SAMPLES, new_snapshot_id, taken_at
from tests.fairlead.archive.archives import (
    KEPT,
    MINUTE,
    NOON,
    append,
    damaged,
    files,
    filled,
    minutes,
    sample_at,
)
from tests.lengths import form

FOREVER = timedelta(days=36_500)


class Killed(BaseException):
    """Raised to simulate a killed process."""


def test_tidying_keeps_the_newest_sample_without_an_error(tmp_path: Path) -> None:
    """Of each quarter-hour, the newest sample and the newest one without an error are kept."""
    archive = SampleArchive(str(tmp_path))
    for before, error in ((90, None), (89, None), (88, "rebalances"), (87, "rebalances")):
        at = NOON - before * MINUTE
        failed = sample_at(at).set_column(
            SAMPLES.get_field_index("error"), "error", pa.array([error], pa.string())
        )
        archive.append(failed, new_snapshot_id(at))
    archive.tidy(NOON, KEPT)
    assert minutes(archive) == [87, 89]


def test_sample_belongs_to_the_quarter_in_which_ends_were_read(tmp_path: Path) -> None:
    """A sample belongs to the quarter-hour in which end offsets were read, not an earlier one."""
    archive = filled(tmp_path, [92, 77])
    began = NOON - 90 * MINUTE - timedelta(seconds=2)
    archive.append(sample_at(NOON - 90 * MINUTE), new_snapshot_id(began))
    archive.tidy(NOON, KEPT)
    assert minutes(archive) == [77, 90, 92]


@pytest.mark.long
@settings(max_examples=form(short=30, long=500))
@given(
    taken=st.dictionaries(
        st.integers(0, 200), st.tuples(st.sets(st.sampled_from("abc"), min_size=1), st.booleans())
    ),
    tidied=st.lists(st.integers(-120, 0)),
)
def test_tidying_does_not_change_the_analysis(
    tmp_path_factory: pytest.TempPathFactory,
    taken: dict[int, tuple[set[str], bool]],
    tidied: list[int],
) -> None:
    """After any number of calls of `tidy`, exactly the samples that the analysis needs are left."""
    path = tmp_path_factory.mktemp("archive")
    archive = SampleArchive(str(path))
    ids = {before: append(archive, before, *groups) for before, (groups, _) in taken.items()}
    snapshots = {ids[before] for before, (_, kept) in taken.items() if kept}
    for minute in sorted(tidied):
        archive.tidy(NOON + minute * MINUTE, KEPT, keep=snapshots)
    archive.tidy(NOON, KEPT, keep=snapshots)
    old = NOON - EVERY_SAMPLE - THINNED_TO
    needed, known = set(snapshots), set[tuple[float, str]]()
    for sample_id in sorted(ids.values(), reverse=True):
        at = taken_at(sample_id)
        groups = taken[int((NOON - at) / MINUTE)][0]
        seen = {(at.timestamp() // THINNED_TO.total_seconds(), group) for group in groups}
        if at >= old or not seen <= known:
            needed.add(sample_id)
        known |= seen
    assert {file.stem for file in files(path)} == needed


def test_tidying_during_a_read_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that has listed files before their removal still returns all needed samples."""
    archive = filled(tmp_path, range(60, 240))
    list_files = SampleFiles.taken_between

    def tidied_after_listing(files: SampleFiles, since: datetime, until: datetime) -> list[Any]:
        listed = list_files(files, since, until)
        monkeypatch.undo()
        archive.tidy(NOON, KEPT)
        return listed

    monkeypatch.setattr(SampleFiles, "taken_between", tidied_after_listing)
    assert minutes(archive) == [*range(60, 76), *range(76, 240, 15)]


@pytest.mark.parametrize("removal", [1, 7, 14])
def test_crash_while_tidying_loses_nothing(
    tmp_path: Path, removal: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a crash, all needed samples are left, and the next tidying removes the other files."""
    archive = filled(tmp_path, range(76, 106))
    outdated = [append(archive, before) for before in (1_000, 999)]
    removals = count(1)
    remove = SampleFiles.remove

    def remove_or_die(files: SampleFiles, path: str) -> None:
        if next(removals) == 2 + removal:
            raise Killed
        remove(files, path)

    monkeypatch.setattr(SampleFiles, "remove", remove_or_die)
    with pytest.raises(Killed):
        archive.tidy(NOON, timedelta(hours=3))
    monkeypatch.undo()
    assert not {file.stem for file in files(tmp_path)} & set(outdated)
    assert len(files(tmp_path)) == 30 - (removal - 1)
    assert {76, 91} <= set(minutes(archive))
    archive.tidy(NOON, timedelta(hours=3))
    assert minutes(archive) == [76, 91]


def test_incomplete_file_is_ignored_and_later_removed(tmp_path: Path) -> None:
    """The file is not removed at once, because its writer may still run."""
    archive = filled(tmp_path, range(1, 3))
    half = files(tmp_path)[0].with_name("_1234-20260131T115900.000000Z-half.parquet")
    half.write_bytes(b"PAR1")
    assert minutes(archive) == [1, 2]
    archive.tidy(datetime.now(UTC), FOREVER)
    assert half.exists()
    archive.tidy(datetime.now(UTC) + timedelta(minutes=30), FOREVER)
    assert not half.exists()


def test_damaged_files_are_removed_after_the_retention(tmp_path: Path) -> None:
    """The retention of a damaged file begins when the file is set aside."""
    archive = filled(tmp_path, range(1))
    files(tmp_path)[0].with_name("old.parquet").write_bytes(b"damaged")
    now = datetime.now(UTC)
    archive.tidy(now, KEPT)
    archive.tidy(now + KEPT - timedelta(minutes=30), KEPT)
    assert damaged(tmp_path) == [b"damaged"]
    archive.tidy(now + KEPT + timedelta(minutes=30), KEPT)
    assert damaged(tmp_path) == []
