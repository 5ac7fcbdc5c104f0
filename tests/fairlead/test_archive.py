"""Looks that were written are read, once and whole, whatever happened meanwhile."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fairlead.archive import GRACE, LookArchive, Taken
from fairlead.domain.looks.look import LOOKS
from fairlead.domain.snapshot import new_snapshot_id
from fairlead.errors import ConfigurationError

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
KEPT = timedelta(days=2)


def look_at(at: datetime, *groups: str) -> pa.Table:
    """Return a look at groups that read one partition."""
    row = {"topics": ["t"], "counts": [1], "begin": [0], "committed": [-1], "owner": [-1]}
    return pa.Table.from_pylist(
        [
            {"group": group, "at": at, "end": [int(at.timestamp())], "members": [], **row}
            for group in groups or ("g",)
        ],
        LOOKS,
    )


def filled(path: Path, minutes: range) -> LookArchive:
    """Return an archive with a look in each of some minutes before noon."""
    archive = LookArchive(str(path))
    for before in minutes:
        at = NOON - before * MINUTE
        archive.append(look_at(at), new_snapshot_id(at))
    return archive


def minutes(archive: LookArchive, since: timedelta = timedelta(days=1)) -> list[int]:
    """Return how many minutes before noon the looks were taken that are read, latest first."""
    read = archive.read(NOON - since, NOON)["at"].to_pylist()
    return [round((NOON - at) / MINUTE) for at in reversed(read)]


def files(path: Path, level: str) -> list[str]:
    return sorted(file.name for file in (path / "looks" / level).glob("*"))


def test_looks_are_read_as_soon_as_they_are_written(tmp_path: Path) -> None:
    """By group and time, within the time asked for, ends included."""
    archive = LookArchive(str(tmp_path))
    for before in (0, 2, 1):
        at = NOON - before * MINUTE
        archive.append(look_at(at, "a", "b"), new_snapshot_id(at))
    read = archive.read(NOON - MINUTE, NOON)
    assert read["group"].to_pylist() == ["a", "a", "b", "b"]
    assert read["at"].to_pylist() == [NOON - MINUTE, NOON] * 2
    assert archive.read(NOON - MINUTE, NOON, ["b"])["group"].to_pylist() == ["b", "b"]
    assert archive.groups(NOON - MINUTE, NOON) == ["a", "b"]


@pytest.mark.parametrize("count", [0, 4, 100])
def test_looks_of_chosen_groups_are_read(tmp_path: Path, count: int) -> None:
    """Of a few that lie far apart, and of many, and of no other."""
    archive = LookArchive(str(tmp_path))
    every = [f"g{number:04}" for number in range(1_000)]
    archive.append(look_at(NOON, *every), new_snapshot_id(NOON))
    chosen = every[:: len(every) // count] if count else []
    assert archive.read(NOON, NOON, chosen)["group"].to_pylist() == chosen


def test_tidying_changes_no_look_of_the_last_hour(tmp_path: Path) -> None:
    """Of what lies before it, one look a quarter of an hour stays."""
    archive = filled(tmp_path, range(1, 181))
    archive.tidy(NOON, KEPT)
    assert minutes(archive, timedelta(hours=1)) == list(range(1, 61))
    assert minutes(archive) == [*range(1, 61), *range(61, 180, 15)]
    assert len(files(tmp_path, "closed")) == 4
    assert len(files(tmp_path, "thinned")) == 8


def test_files_are_a_few_for_an_hour(tmp_path: Path) -> None:
    """Once nobody can still read them, the files that others stand for are gone."""
    archive = filled(tmp_path, range(1, 181))
    archive.tidy(NOON, KEPT)
    read = minutes(archive)
    archive.tidy(datetime.now(UTC) + 2 * GRACE, timedelta(days=36_500))
    archive.tidy(datetime.now(UTC) + 2 * GRACE, timedelta(days=36_500))
    assert files(tmp_path, "open") == []
    assert len(files(tmp_path, "thinned")) == 12
    assert minutes(archive, timedelta(days=1)) == [*range(1, 180, 15)]
    assert set(minutes(archive)) <= set(read)


def test_old_looks_go(tmp_path: Path) -> None:
    """What lies before the retention is removed, level by level."""
    archive = filled(tmp_path, range(0, 600, 5))
    archive.tidy(NOON, timedelta(hours=2))
    archive.tidy(NOON, timedelta(hours=2))
    assert max(minutes(archive)) <= 135
    assert min(files(tmp_path, "open")) >= "20260131T0945"


def test_late_look_joins_an_interval_that_is_closed(tmp_path: Path) -> None:
    """A planning run writes down what it saw minutes ago."""
    archive = filled(tmp_path, range(20, 30))
    archive.tidy(NOON, KEPT)
    late = NOON - 19 * MINUTE
    archive.append(look_at(late), new_snapshot_id(late))
    assert minutes(archive) == list(range(19, 30))
    archive.tidy(NOON, KEPT)
    assert minutes(archive) == list(range(19, 30))


def test_same_look_written_again_counts_once(tmp_path: Path) -> None:
    """A step that is repeated appends the same snapshot, even after its interval was closed."""
    archive, look_id = LookArchive(str(tmp_path)), new_snapshot_id(NOON - 40 * MINUTE)
    for _ in range(3):
        archive.append(look_at(NOON - 40 * MINUTE), look_id)
        archive.tidy(NOON, KEPT)
    assert minutes(archive) == [40]


def test_two_that_tidy_at_once_lose_nothing(tmp_path: Path) -> None:
    """Each closes what it has seen: the larger file stands for the smaller one."""
    first = filled(tmp_path, range(20, 25))
    first.tidy(NOON, KEPT)
    second = filled(tmp_path / "other", range(18, 25))
    second.tidy(NOON, KEPT)
    for path in (tmp_path / "other" / "looks" / "closed").iterdir():
        path.rename(tmp_path / "looks" / "closed" / path.name)
    assert sorted(set(minutes(first))) == list(range(18, 25))


class Killed(BaseException):
    """The process ends here."""


class Mortal(LookArchive):
    """An archive whose process ends before the so-many-th change to its files, or half into it."""

    def __init__(self, path: Path, change: int, *, half: bool) -> None:
        super().__init__(str(path))
        self._path, self._left, self._half = path, change, half

    def _counts(self) -> bool:
        self._left -= 1
        return self._left == 0

    def _move_in(self, name: str, content: Any) -> None:
        if self._counts():
            if self._half:
                folder = (self._path / "looks" / name).parent
                folder.mkdir(exist_ok=True)
                (folder / "_half.parquet").write_bytes(b"PAR1")
            raise Killed
        super()._move_in(name, content)

    def _remove(self, path: str) -> None:
        if self._counts():
            raise Killed
        super()._remove(path)


@pytest.mark.long
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("change", [1, 2, 4, 7, 8, 9, 12, 13, 16, 20, 28])
def test_crash_at_any_change_loses_nothing(tmp_path: Path, change: int, half: bool) -> None:  # noqa: FBT001
    """Whatever part of a tidying was done, each look of the last hour is read, once."""
    archive = filled(tmp_path, range(1, 121, 5))
    before = minutes(archive, timedelta(hours=1))
    died = False
    later = datetime.now(UTC) + 2 * GRACE  # by the files' own clock: now they are removed, too
    for at, kept in ((NOON, KEPT), (later, timedelta(days=36_500))):
        try:
            Mortal(tmp_path, change, half=half).tidy(at, kept)
        except Killed:
            died = True
        every = minutes(archive)
        assert every == sorted(set(every))
        if at == NOON:
            assert [minute for minute in every if minute <= 60] == before
    assert {minute // 15 for minute in every} == {minute // 15 for minute in range(1, 121, 5)}
    assert died


def test_what_a_killed_writer_left_is_never_read_and_goes(tmp_path: Path) -> None:
    """Half a file under a name that readers pass over."""
    archive = filled(tmp_path, range(1, 3))
    half = tmp_path / "looks" / "open" / "_1234-20260131T1159.parquet"
    half.write_bytes(b"PAR1")
    assert minutes(archive) == [1, 2]
    archive.tidy(datetime.now(UTC) + 2 * GRACE, timedelta(days=36_500))
    assert not half.exists()


def test_cost_of_the_newest_look_is_remembered(tmp_path: Path) -> None:
    """By whoever asks next, in another process; what cannot be read is not known."""
    archive, taken = LookArchive(str(tmp_path)), Taken(NOON, 1.5, 3, 12)
    assert archive.taken() is None
    archive.note(taken)
    assert LookArchive(str(tmp_path)).taken() == taken
    (tmp_path / "looks" / "taken.json").write_text("{")
    assert archive.taken() is None


def test_empty_look_is_not_written(tmp_path: Path) -> None:
    """A cluster without groups leaves no files."""
    archive = LookArchive(str(tmp_path))
    archive.append(LOOKS.empty_table(), new_snapshot_id(NOON))
    archive.tidy(NOON, KEPT)
    assert archive.read(NOON - KEPT, NOON).num_rows == 0


@pytest.mark.parametrize(
    "look",
    [
        look_at(NOON).drop_columns(["racks"]),
        look_at(NOON).append_column("another", pa.array([1])),
        look_at(NOON).rename_columns([*LOOKS.names[:-1], "another"]),
    ],
    ids=["less", "more", "other"],
)
def test_looks_of_another_layout_are_refused_by_name(tmp_path: Path, look: pa.Table) -> None:
    """Columns that are missing are not guessed, and those that are not known not left out."""
    archive = LookArchive(str(tmp_path))
    archive.append(look_at(NOON), new_snapshot_id(NOON))
    archive.append(look, name := new_snapshot_id(NOON))
    uses: list[Callable[[], object]] = [
        lambda: archive.read(NOON, NOON),
        lambda: archive.read(NOON, NOON, ["g"]),
        lambda: archive.groups(NOON, NOON),
        lambda: archive.tidy(NOON + timedelta(hours=1), KEPT),
    ]
    for use in uses:
        with pytest.raises(ConfigurationError, match=f"open/{name}.parquet holds looks of another"):
            use()


@pytest.mark.parametrize("length", [0, 300], ids=["empty", "cut"])
def test_damaged_file_is_refused_by_name(tmp_path: Path, length: int) -> None:
    """Whoever reads or tidies is told which file to remove; without it the others are read."""
    archive = LookArchive(str(tmp_path))
    archive.append(look_at(NOON), new_snapshot_id(NOON))
    archive.append(look_at(NOON), name := new_snapshot_id(NOON))
    (damaged,) = tmp_path.glob(f"**/{name}.parquet")
    damaged.write_bytes(damaged.read_bytes()[:length])
    uses: list[Callable[[], object]] = [
        lambda: archive.read(NOON, NOON),
        lambda: archive.groups(NOON, NOON),
        lambda: archive.tidy(NOON + timedelta(hours=1), KEPT),
    ]
    for use in uses:
        with pytest.raises(ConfigurationError, match=f"open/{name}.parquet is damaged: remove it"):
            use()
    damaged.unlink()
    assert archive.read(NOON, NOON).num_rows == 1
