"""Samples that were written are read, once and whole, whatever happened meanwhile."""

import errno
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairlead.archive import LookArchive, Taken
from fairlead.domain.samples import SAMPLES, new_snapshot_id
from fairlead.errors import ConfigurationError, FileSystemError
from tests.full_disk import no_room
from tests.samples import samples

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
KEPT = timedelta(days=2)


def look_at(at: datetime, *groups: str) -> pa.Table:
    """Return a sample of groups that read one partition."""
    row = {"at": at, "topics": ["t"], "counts": [1], "end": [int(at.timestamp())]}
    return samples(*(row | {"group": group} for group in groups or ("g",)))


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


def files(path: Path, folder: str = "2026-01-31") -> list[Path]:
    """Return the files of a folder of the archive, by name."""
    return sorted((path / "looks" / folder).glob("*"))


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


def test_tidying_changes_no_sample_of_the_last_hour(tmp_path: Path) -> None:
    """Of what lies before it, one sample a quarter of an hour stays; a second time: the same."""
    archive = filled(tmp_path, range(1, 181))
    for _ in range(2):
        archive.tidy(NOON, KEPT)
        assert minutes(archive, timedelta(hours=1)) == list(range(1, 61))
        assert minutes(archive) == [*range(1, 76), *range(76, 180, 15)]


def test_newest_sample_of_every_group_stays(tmp_path: Path) -> None:
    """Whichever groups a sample is about, and also where the newest one is about few."""
    archive = LookArchive(str(tmp_path))
    for before, groups in ((149, "abc"), (145, "ab"), (142, "b"), (141, "b")):
        at = NOON - before * MINUTE
        archive.append(look_at(at, *groups), new_snapshot_id(at))
    archive.tidy(NOON, KEPT)
    read = archive.read(NOON - KEPT, NOON)
    newest = dict(zip(read["group"].to_pylist(), read["at"].to_pylist(), strict=True))
    assert {name: (NOON - at) / MINUTE for name, at in newest.items()} == {
        "a": 145,
        "b": 141,
        "c": 149,
    }
    assert [file.name[:15] for file in files(tmp_path)] == [
        *("20260131T093100", "20260131T093500", "20260131T093900")
    ]


def test_what_a_run_plans_from_stays(tmp_path: Path) -> None:
    """For as long as samples are kept, beside the newest of the interval."""
    archive = filled(tmp_path, range(120, 180))
    kept = [file.stem for file in files(tmp_path)[5:45:20]]
    archive.tidy(NOON, KEPT, kept)
    assert [archive.sample(name).num_rows for name in kept] == [1, 1]
    assert len(minutes(archive)) == 7
    archive.tidy(NOON + KEPT, KEPT, kept)
    assert [archive.sample(name).num_rows for name in kept] == [0, 0]


def test_old_samples_go_with_their_day(tmp_path: Path) -> None:
    """What lies before the retention is removed, and folders in which nothing is left."""
    archive = filled(tmp_path, range(0, 5000, 5))
    assert len(list((tmp_path / "looks").iterdir())) == 4
    archive.tidy(NOON, timedelta(hours=2))
    archive.tidy(NOON, timedelta(hours=2))
    assert max(minutes(archive, KEPT)) <= 120
    assert [folder.name for folder in sorted((tmp_path / "looks").iterdir())] == [
        *("2026-01-30", "2026-01-31")
    ]


def test_times_of_any_zone_are_the_same_times(tmp_path: Path) -> None:
    """Folders are days in UTC, whatever the zone of who asks."""
    archive = filled(tmp_path, range(700, 800))
    there = timezone(timedelta(hours=13))
    since, until = NOON - 790 * MINUTE, NOON - 710 * MINUTE
    read = archive.read(since.astimezone(there), until.astimezone(there))
    assert read.num_rows == 81


def test_same_sample_written_again_counts_once(tmp_path: Path) -> None:
    """A step that is repeated appends the same snapshot."""
    archive, sample_id = LookArchive(str(tmp_path)), new_snapshot_id(NOON - 40 * MINUTE)
    for _ in range(3):
        archive.append(look_at(NOON - 40 * MINUTE), sample_id)
        archive.tidy(NOON, KEPT)
    assert minutes(archive) == [40]


def test_reader_of_what_is_removed_meanwhile_reads_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was listed may be gone; the last hour and the newest of intervals never are."""
    archive = filled(tmp_path, range(1, 181))
    listed = archive._files_of  # noqa: SLF001 - between listing and reading

    def tidied_meanwhile(since: datetime, until: datetime) -> Any:
        found = listed(since, until)
        LookArchive(str(tmp_path)).tidy(NOON, KEPT)
        return found

    monkeypatch.setattr(archive, "_files_of", tidied_meanwhile)
    assert minutes(archive) == [*range(1, 76), *range(76, 180, 15)]


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("change", [1, 2, 5, 20, 40])
def test_crash_at_any_change_loses_nothing(
    tmp_path: Path, change: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever part of a tidying was done: the last hour, and a sample of each interval."""
    archive = filled(tmp_path, range(1, 181))
    remove, left = archive._remove, [change]  # noqa: SLF001 - the process ends before it

    def mortal(path: str) -> None:
        left[0] -= 1
        if not left[0]:
            raise Killed
        remove(path)

    monkeypatch.setattr(archive, "_remove", mortal)
    with pytest.raises(Killed):
        archive.tidy(NOON, KEPT)
    found = minutes(LookArchive(str(tmp_path)))
    assert len(found) == 180 - change + 1
    assert {*range(1, 76), *range(76, 180, 15)} <= set(found)


def test_what_a_killed_writer_left_is_never_read_and_goes(tmp_path: Path) -> None:
    """Half a file under a name that readers pass over."""
    archive = filled(tmp_path, range(1, 3))
    half = tmp_path / "looks" / "2026-01-31" / "_1234-20260131T1159.parquet"
    half.write_bytes(b"PAR1")
    assert minutes(archive) == [1, 2]
    archive.tidy(datetime.now(UTC) + timedelta(hours=1), timedelta(days=36_500))
    assert not half.exists()


def test_cost_of_the_newest_look_is_remembered(tmp_path: Path) -> None:
    """By whoever asks next, in another process; what cannot be read is not known."""
    archive, taken = LookArchive(str(tmp_path)), Taken(NOON, 1.5, 3, 12)
    assert archive.taken() is None
    archive.note(taken)
    assert LookArchive(str(tmp_path)).taken() == taken
    (tmp_path / "looks" / "taken.json").write_text("{")
    assert archive.taken() is None


def test_the_newest_look_at_each_group_may_be_a_planning_runs(tmp_path: Path) -> None:
    """Groups that are gone since the look before, or are not asked for, are left out."""
    archive = LookArchive(str(tmp_path))
    assert archive.newest(["a"]).num_rows == 0
    for before, groups in ((2, ("a", "b", "c", "d")), (1, ("a", "b", "c")), (0, ("b",))):
        at = NOON - before * MINUTE
        archive.append(look_at(at, *groups), new_snapshot_id(at))
    archive.note(Taken(NOON - MINUTE, 1.5, 3, 12))
    found = archive.newest(["a", "b", "d"])
    assert found["group"].to_pylist() == ["a", "b"]
    assert found["at"].to_pylist() == [NOON - MINUTE, NOON]


def test_empty_look_is_not_written(tmp_path: Path) -> None:
    """A cluster without groups leaves no files."""
    archive = LookArchive(str(tmp_path))
    archive.append(SAMPLES.empty_table(), new_snapshot_id(NOON))
    archive.tidy(NOON, KEPT)
    assert archive.read(NOON - KEPT, NOON).num_rows == 0


def _flipped(content: bytes) -> bytes:
    """Return a file with another byte among its data."""
    middle = content.index(b"\x28\xb5\x2f\xfd") + 8  # in the first page that zstd has compressed
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


def _written(look: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(look, sink)
    return bytes(sink.getvalue())


_OTHER_NAMES = [*SAMPLES.names[:-1], "x"]
#: What a file may hold in place of a look, by what went wrong.
DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "Parquet file size is 0 bytes"),
    "cut": (lambda content: content[:300], "magic bytes not found in footer"),
    "flipped": (_flipped, "CRC checksum verification failed"),
    "text": (lambda _: b"what is this?", "magic bytes not found in footer"),
    "less": (lambda _: _written(look_at(NOON).drop_columns(["racks"])), "columns"),
    "more": (lambda _: _written(look_at(NOON).append_column("x", pa.array([1]))), "columns"),
    "other": (lambda _: _written(look_at(NOON).rename_columns(_OTHER_NAMES)), "columns"),
}
#: What does not read files of other intervals.
USES: dict[str, Callable[[LookArchive], object]] = {
    "read": lambda archive: archive.read(NOON - MINUTE, NOON),
    "one group": lambda archive: archive.read(NOON - MINUTE, NOON, ["g"]),
    "groups": lambda archive: archive.groups(NOON - MINUTE, NOON),
    "tidy": lambda archive: archive.tidy(NOON + timedelta(hours=2), KEPT),
}


def damaged(path: Path) -> list[bytes]:
    """Return what the files hold that were set aside."""
    return [file.read_bytes() for file in sorted((path / "looks" / "damaged").glob("*"))]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_file_is_set_aside_and_the_others_are_read(
    tmp_path: Path, how: str, use: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever meets it says which file and why, once; the file is kept as it is."""
    archive = filled(tmp_path, range(3))
    expected = USES[use](filled(tmp_path / "sound", range(2)))
    file = files(tmp_path)[0]
    file.rename(file := file.with_name("20260131T115930.000000Z-bad.parquet"))
    damage, why = DAMAGE[how]
    file.write_bytes(damage(file.read_bytes()))
    content = file.read_bytes()
    assert USES[use](archive) == expected
    (record,) = caplog.records
    assert (record.levelname, record.exc_info) == ("WARNING", None)
    assert str(file) in record.getMessage()
    assert why in record.getMessage()
    assert damaged(tmp_path) == [content]
    assert [name.partition("-")[2] for name in archive.damaged()] == [f"2026-01-31-{file.name}"]
    assert minutes(archive) == minutes(LookArchive(str(tmp_path / "sound")))
    assert len(caplog.records) == 1


def test_file_of_a_foreign_name_is_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A name that would colour a terminal is written with escapes."""
    archive = filled(tmp_path, range(20))
    (files(tmp_path)[0].parent / "backup\x1b[31m.parquet").write_bytes(b"something")
    assert minutes(archive) == list(range(20))
    assert damaged(tmp_path) == [b"something"]
    assert caplog.text.count("its name does not begin with a time") == 1
    assert "\x1b" not in caplog.text


def test_no_damage_is_taken_for_a_look(tmp_path: Path) -> None:
    """Whichever byte of a file is another one: its looks are read as they were, or not at all."""
    archive = LookArchive(str(tmp_path))
    archive.append(look_at(NOON, *(f"g{number}" for number in range(50))), new_snapshot_id(NOON))
    whole = archive.read(NOON, NOON)
    (file,) = files(tmp_path)
    content = file.read_bytes()
    unharmed = 0
    for place in range(0, len(content), 23):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        found = archive.read(NOON, NOON)
        assert found.equals(whole) or not found.num_rows
        unharmed += found.num_rows > 0
    assert 0 < unharmed < len(content) // 23 / 2


def test_readers_that_meet_a_damaged_file_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Each reads the others; the file is kept once, and told of once."""
    filled(tmp_path, range(5))
    file = files(tmp_path)[2]
    file.write_bytes(b"damaged")
    together = threading.Barrier(8)

    def read(_: int) -> list[int]:
        archive = LookArchive(str(tmp_path))
        together.wait()
        return minutes(archive)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(read, range(8))) == [[0, 1, 3, 4]] * 8
    assert damaged(tmp_path) == [b"damaged"]
    assert len(caplog.records) == 1


def test_file_that_cannot_be_set_aside_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The archive may be read-only, or its disk full; nor is a file removed for that."""
    archive = filled(tmp_path, range(0, 180, 5))
    oldest = minutes(archive)[-1]
    (tmp_path / "looks" / "damaged").write_text("a file where the folder is to be")
    file = files(tmp_path)[0]
    file.write_bytes(b"damaged")
    assert minutes(archive) == [minute for minute in range(0, 180, 5) if minute != oldest]
    assert "It cannot be moved to" in caplog.text
    with pytest.raises(FileSystemError, match="cannot list"):
        archive.tidy(NOON, KEPT)
    assert len(minutes(archive)) < 30  # the sound ones are tidied all the same
    assert file.read_bytes() == b"damaged"


def test_damaged_files_go_with_the_retention(tmp_path: Path) -> None:
    """Counted from when they were set aside, whatever their name."""
    archive = filled(tmp_path, range(1))
    (tmp_path / "looks" / "2026-01-31" / "old.parquet").write_bytes(b"damaged")
    now = datetime.now(UTC)
    archive.tidy(now, KEPT)
    archive.tidy(now + KEPT - timedelta(minutes=30), KEPT)
    assert damaged(tmp_path) == [b"damaged"]
    archive.tidy(now + KEPT + timedelta(minutes=30), KEPT)
    assert damaged(tmp_path) == []


def test_look_that_was_damaged_is_not_there(tmp_path: Path) -> None:
    """Whoever asks for that very look finds nothing, as where it was removed."""
    archive, look_id = LookArchive(str(tmp_path)), new_snapshot_id(NOON)
    archive.append(look_at(NOON), look_id)
    assert archive.sample(look_id).num_rows == 1
    (file,) = files(tmp_path)
    file.write_bytes(file.read_bytes()[:-20])
    assert archive.sample(look_id).num_rows == 0


def test_full_disk_is_said_in_a_line(tmp_path: Path) -> None:
    """Which file, why, and what to do; no part of it is left, what is there is read and tidied."""
    archive = filled(tmp_path, range(20))
    with no_room(), pytest.raises(FileSystemError) as full:
        archive.append(look_at(NOON), "20260131T120000.000000Z-new")
    path = tmp_path / "looks" / "2026-01-31" / "20260131T120000.000000Z-new.parquet"
    assert str(full.value) == (
        f"cannot write {path}: File too large. Free some space there, or set state_dir or "
        "warehouse to another place"
    )
    assert len(files(tmp_path)) == 20
    with no_room():
        archive.tidy(NOON, timedelta(minutes=10))  # it needs none
    assert minutes(archive) == [*range(11)]


def test_pace_of_looks_is_kept_on_a_full_disk(tmp_path: Path) -> None:
    """In this process: with nothing known of the last look the next one would be due at once."""
    first, second = Taken(NOON, 1.5, 3, 12), Taken(NOON + MINUTE, 1.5, 3, 12)
    LookArchive(str(tmp_path)).note(first)
    with no_room():
        LookArchive(str(tmp_path)).note(second)
    assert LookArchive(str(tmp_path)).taken() == second
    LookArchive(str(tmp_path)).note(third := replace(second, began=NOON + 2 * MINUTE))
    assert LookArchive(str(tmp_path)).taken() == third


def test_file_in_place_of_the_folder_is_said_in_a_line(tmp_path: Path) -> None:
    """Reading finds no looks; writing says what is in the way."""
    (tmp_path / "looks").write_text("a file")
    archive = LookArchive(str(tmp_path))
    assert archive.taken() is None
    assert archive.read(NOON - MINUTE, NOON).num_rows == 0
    with pytest.raises(FileSystemError, match=r"Not a directory\. Remove the file"):
        archive.append(look_at(NOON), new_snapshot_id(NOON))


def test_file_is_on_the_disk_before_readers_see_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a disk has not taken is not moved in: a power cut leaves no file that is empty."""
    synced: list[bytes] = []

    def fsync(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        synced.append(path.read_bytes() if path.is_file() else b"a folder")
        raise OSError(errno.EIO, "nothing was written")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(FileSystemError, match="Input/output error"):
        filled(tmp_path, range(1))
    assert [content[:4] for content in synced] == [b"PAR1"]
    assert files(tmp_path) == []


def test_warehouse_that_is_no_path_is_said(tmp_path: Path) -> None:
    """In a line with what it is."""
    with pytest.raises(ConfigurationError, match="warehouse: nowhere://"):
        LookArchive(f"nowhere://{tmp_path}")
