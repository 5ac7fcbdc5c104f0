"""Written samples are read once and completely, also during tidying, crashes and damage."""

import os
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta, timezone
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.archive import SampleArchive, Taken, with_history
from fairlead.archive.files import SampleFiles
from fairlead.domain.history import EVERY_SAMPLE, THINNED_TO
from fairlead.domain.samples import SAMPLES, new_snapshot_id, snapshot_id_at, taken_at
from fairlead.errors import FileSystemError
from tests.full_disk import no_room
from tests.lengths import form
from tests.samples import samples

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
KEPT = timedelta(days=2)
FOREVER = timedelta(days=36_500)


def sample_at(at: datetime, *groups: str) -> pa.Table:
    """Return a sample of groups that read one partition."""
    end = [int(at.timestamp())]
    row = {"topics": ["t"], "counts": [1], "begin": [0], "end": end, "at": at}
    row["sample_id"] = snapshot_id_at(at)
    return samples(*({**row, "group": group} for group in groups or ("g",)))


def append(archive: SampleArchive, before: float, *groups: str) -> str:
    """Write a sample taken this many minutes before noon; return its id."""
    at = NOON - before * MINUTE
    sample_id = new_snapshot_id(at)
    archive.append(sample_at(at, *groups), sample_id)
    return sample_id


def filled(path: Path, minutes: Collection[int]) -> SampleArchive:
    """Return an archive with a sample at each of these minutes before noon."""
    archive = SampleArchive(str(path))
    for before in minutes:
        append(archive, before)
    return archive


def minutes(archive: SampleArchive, since: timedelta = timedelta(days=1)) -> list[int]:
    """Return the times of the readable samples, in minutes before noon, latest first."""
    read = archive.read(NOON - since, NOON)["at"].to_pylist()
    return [round((NOON - at) / MINUTE) for at in reversed(read)]


def files(path: Path) -> list[Path]:
    """Return the files of samples, oldest first."""
    return sorted((path / "samples").glob("2*/*"))


def test_samples_can_be_read_at_once(tmp_path: Path) -> None:
    """Samples are found by group and period, including both its ends, in any time zone."""
    archive = SampleArchive(str(tmp_path))
    for before in (0, 2, 1):
        append(archive, before, "a", "b")
    read = archive.read(NOON - MINUTE, NOON)
    assert read["group"].to_pylist() == ["a", "a", "b", "b"]
    assert read["at"].to_pylist() == [NOON - MINUTE, NOON] * 2
    assert archive.read(NOON - MINUTE, NOON, ["b"])["group"].to_pylist() == ["b", "b"]
    assert archive.groups(NOON - MINUTE, NOON) == ["a", "b"]
    for hours in (-14, 14):
        since = (NOON - MINUTE).astimezone(timezone(timedelta(hours=hours)))
        assert archive.read(since, since + MINUTE).equals(read)


def test_all_columns_are_read_back(tmp_path: Path) -> None:
    """Reading a sample, or some of its columns, returns all written values, including nulls."""
    archive = SampleArchive(str(tmp_path))
    common = {"at": NOON, "topics": ["t", "u"], "counts": [2, 1], "members": ["m", "n"]}
    known = {
        "owner": [1, -1, 0],
        "stable_end": [-1, 7, -1],
        "racks": [["r1"], ["r1", "r2"]],
        "rack_set": [1, 0, -1],
        "log_bytes": [5, -1, 6],
        "topic_ids": ["dA", None],
        "instance_ids": ["m", None],
        "generations": [3, None],
        "subscriptions": [["t"], []],
    }
    written = samples(
        {"group": "a", **common, **known},
        {"group": "b", "at": NOON, "topics": [], "counts": [], "error": "it rebalances"},
        {"group": "c", **common},
    )
    archive.append(written, sample_id := new_snapshot_id(NOON))
    assert archive.sample(sample_id).equals(written)
    assert archive.read(NOON, NOON).equals(written)
    chosen = ["group", "at", "subscriptions"]
    assert archive.read(NOON, NOON, columns=chosen).equals(written.select(chosen))


@pytest.mark.parametrize("count", [0, 4, 100])
def test_samples_of_chosen_groups_are_read(tmp_path: Path, count: int) -> None:
    """A few groups far apart are chosen, or many groups."""
    archive = SampleArchive(str(tmp_path))
    every = [f"g{number:04}" for number in range(1_000)]
    append(archive, 0, *every)
    chosen = every[:: len(every) // count] if count else []
    assert archive.read(NOON, NOON, chosen)["group"].to_pylist() == chosen


def test_tidying_keeps_the_newest_sample_without_an_error(tmp_path: Path) -> None:
    """Newer samples with an error are kept in addition."""
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
    """A sample may begin before a quarter of an hour, and read its log ends within the quarter."""
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
    """For any samples, tidied any number of times, exactly the needed ones are left."""
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
    """The removed files were not needed, because newer samples were stored before."""
    archive = filled(tmp_path, range(60, 240))
    list_files = SampleFiles.taken_between

    def tidied_after_listing(files: SampleFiles, since: datetime, until: datetime) -> list[Any]:
        listed = list_files(files, since, until)
        monkeypatch.undo()
        archive.tidy(NOON, KEPT)
        return listed

    monkeypatch.setattr(SampleFiles, "taken_between", tidied_after_listing)
    assert minutes(archive) == [*range(60, 76), *range(76, 240, 15)]


class Killed(BaseException):
    """Raised instead of ending the process."""


@pytest.mark.parametrize("removal", [1, 7, 14])
def test_crash_while_tidying_loses_nothing(
    tmp_path: Path, removal: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next tidying removes the remaining files."""
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


def test_cost_of_the_newest_sample_is_stored(tmp_path: Path) -> None:
    """Another process reads the cost of the newest sample; an unreadable cost is unknown."""
    archive, taken = SampleArchive(str(tmp_path)), Taken(NOON, 1.5, 3, 12)
    assert archive.taken() is None
    archive.note(taken)
    assert SampleArchive(str(tmp_path)).taken() == taken
    for text in ("{", "5", "null", '"text"', "{}", '{"began": 5}', '{"began": "2026-01-31"}'):
        (tmp_path / "samples" / "taken.json").write_text(text)
        assert archive.taken() is None, text
    fields = '"took_s": 1.5, "groups": 3, "partitions": 12'
    (tmp_path / "samples" / "taken.json").write_text(f'{{"began": "2026-01-31T12:00", {fields}}}')
    assert archive.newest(["g"]).num_rows == 0  # without a zone: local time, no error


def _flipped(content: bytes) -> bytes:
    """Return a file's content with one byte of its data changed."""
    middle = content.index(b"\x28\xb5\x2f\xfd") + 8  # in the first page compressed by zstd
    return content[:middle] + bytes([content[middle] ^ 0xFF]) + content[middle + 1 :]


def _written(sample: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(sample, sink)
    return bytes(sink.getvalue())


_RENAMED = [*SAMPLES.names[:-1], "x"]
#: How a file is damaged, and the logged reason.
DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "Parquet file size is 0 bytes"),
    "cut": (lambda content: content[:300], "magic bytes not found in footer"),
    "flipped": (_flipped, "CRC checksum verification failed"),
    "text": (lambda _: b"what is this?", "magic bytes not found in footer"),
    "less": (lambda _: _written(sample_at(NOON).drop_columns(["racks"])), "columns"),
    "more": (lambda _: _written(sample_at(NOON).append_column("x", pa.array([1]))), "columns"),
    "other": (lambda _: _written(sample_at(NOON).rename_columns(_RENAMED)), "columns"),
}
#: Uses of the archive that read no files of other intervals.
USES: dict[str, Callable[[SampleArchive], object]] = {
    "read": lambda archive: archive.read(NOON - MINUTE, NOON),
    "one group": lambda archive: archive.read(NOON - MINUTE, NOON, ["g"]),
    "groups": lambda archive: archive.groups(NOON - MINUTE, NOON),
    "tidy": lambda archive: archive.tidy(NOON + timedelta(hours=2), KEPT),
}


def damaged(path: Path) -> list[bytes]:
    """Return the content of the files that were set aside."""
    return [file.read_bytes() for file in sorted((path / "samples" / "damaged").glob("*"))]


@pytest.mark.parametrize(
    ("how", "use"), [*((how, "read") for how in DAMAGE), *(("cut", use) for use in [*USES][1:])]
)
def test_damaged_file_is_set_aside_and_the_others_are_read(
    tmp_path: Path, how: str, use: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The first reader moves the file unchanged, and logs its name and the reason once."""
    archive = filled(tmp_path, range(3))
    expected = USES[use](filled(tmp_path / "sound", range(2)))
    file = files(tmp_path)[0].rename(files(tmp_path)[1].with_stem("20260131T115930.000000Z-bad"))
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
    assert minutes(archive) == minutes(SampleArchive(str(tmp_path / "sound")))
    assert len(caplog.records) == 1


def test_file_with_an_unknown_name_is_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the name with escapes, because it could contain terminal codes."""
    archive = filled(tmp_path, range(20))
    for name in ("backup\x1b[31m", "20260131T1130Z-foreign"):
        files(tmp_path)[0].with_name(f"{name}.parquet").write_bytes(b"something")
    assert minutes(archive) == list(range(20))
    assert damaged(tmp_path) == [b"something"] * 2
    assert caplog.text.count("its name does not begin with a time") == 2
    assert "\x1b" not in caplog.text


def test_damaged_rows_are_never_read(tmp_path: Path) -> None:
    """If any byte of a file changes, its rows are read unchanged, or not at all."""
    archive = SampleArchive(str(tmp_path))
    append(archive, 0, *(f"g{number}" for number in range(50)))
    whole = archive.read(NOON, NOON)
    (file,) = files(tmp_path)
    content = file.read_bytes()
    unharmed = 0
    for place in range(0, len(content), 97):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        found = archive.read(NOON, NOON)
        assert found.equals(whole) or not found.num_rows
        unharmed += found.num_rows > 0
    assert 0 < unharmed < len(content) // 97 / 2


def test_file_that_cannot_be_set_aside_is_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The archive may be read-only, or its disk full; no file is removed."""
    archive = filled(tmp_path, range(1, 4))
    (tmp_path / "samples" / "damaged").write_text("a file where the folder is to be")
    file = files(tmp_path)[0]
    file.write_bytes(b"damaged")
    assert minutes(archive) == [1, 2]
    assert "It cannot be moved to" in caplog.text
    archive.tidy(NOON + timedelta(hours=2), KEPT)
    assert minutes(archive) == [1]  # valid samples are tidied nevertheless
    assert file.read_bytes() == b"damaged"


def test_damaged_files_are_removed_after_the_retention(tmp_path: Path) -> None:
    """The age of a damaged file counts from the time when it was set aside."""
    archive = filled(tmp_path, range(1))
    files(tmp_path)[0].with_name("old.parquet").write_bytes(b"damaged")
    now = datetime.now(UTC)
    archive.tidy(now, KEPT)
    archive.tidy(now + KEPT - timedelta(minutes=30), KEPT)
    assert damaged(tmp_path) == [b"damaged"]
    archive.tidy(now + KEPT + timedelta(minutes=30), KEPT)
    assert damaged(tmp_path) == []


def test_incomplete_sample_is_an_error(tmp_path: Path) -> None:
    """The sample is damaged or missing, or lacks a requested group."""
    archive = SampleArchive(str(tmp_path))
    sample_id = append(archive, 0, "a", "b")
    assert archive.sample(sample_id)["group"].to_pylist() == ["a", "b"]
    assert archive.sample(sample_id, ["b"], ["group"]).to_pydict() == {"group": ["b"]}
    assert archive.sample(sample_id, []).equals(SAMPLES.empty_table())
    with pytest.raises(FileNotFoundError, match=f"Sample {sample_id} was removed"):
        archive.sample(sample_id, ["b", "c"])
    (file,) = files(tmp_path)
    file.write_bytes(file.read_bytes()[:-20])
    for requested in (sample_id, sample_id, new_snapshot_id(NOON)):
        with pytest.raises(FileNotFoundError):
            archive.sample(requested, ["a"])


def test_history_has_no_details_of_members(tmp_path: Path) -> None:
    """Only the newest sample has these details."""
    archive = SampleArchive(str(tmp_path))
    for before in (90, 2, 1):
        append(archive, before, "a", "b", "c")
    newest_id = append(archive, 0, "a", "b")
    newest = archive.sample(newest_id)
    found = with_history(archive, newest, timedelta(hours=1))
    assert found.keys() == {"a", "b"}
    for name, rows in found.items():
        assert rows["at"].to_pylist() == [NOON - before * MINUTE for before in (2, 1, 0)]
        assert rows["subscriptions"].to_pylist() == [None, None, []]
        assert (
            rows.slice(2)
            .select(SAMPLES.names)
            .equals(newest.filter(pc.equal(newest["group"], name)))
        )
    assert with_history(archive, newest.slice(0, 0), timedelta(hours=1)) == {}


def test_full_disk_is_reported_in_a_line(tmp_path: Path) -> None:
    """The line names file, reason and remedy; no incomplete file is left, and others are read."""
    archive = filled(tmp_path, range(76, 106))
    with no_room(), pytest.raises(FileSystemError) as full:
        archive.append(sample_at(NOON), "20260131T120000.000000Z-new")
    path = tmp_path / "samples" / "2026-01-31" / "20260131T120000.000000Z-new.parquet"
    assert str(full.value) == (
        f"cannot write {path}: File too large. Free some space there, or set state_dir or "
        "warehouse to another place"
    )
    assert len(files(tmp_path)) == 30
    with no_room():
        archive.tidy(NOON, KEPT)  # deletes old files, because deleting needs no space
    assert minutes(archive) == [76, 91]


def test_file_is_on_the_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut therefore leaves no empty file that readers find."""
    synced: list[tuple[bytes, list[str]]] = []

    def fsync(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        visible = [file.name[:8] for file in files(tmp_path) if not file.name.startswith("_")]
        synced.append((path.read_bytes()[:4] if path.is_file() else b"a folder", visible))

    monkeypatch.setattr(os, "fsync", fsync)
    filled(tmp_path, [0])
    assert synced == [(b"PAR1", []), (b"a folder", ["20260131"])]
