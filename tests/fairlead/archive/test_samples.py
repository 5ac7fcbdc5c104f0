"""Samples written to an archive are read back completely."""

from datetime import timedelta, timezone
from pathlib import Path

import pyarrow.compute as pc
import pytest

from fairlead.archive import SampleArchive, Taken, with_history
from fairlead.domain.samples import SAMPLES, new_snapshot_id
from tests.fairlead.archive.archives import MINUTE, NOON, append, files
from tests.samples import samples


def test_samples_can_be_read_at_once(tmp_path: Path) -> None:
    """A written sample can be read immediately, by group and by period (with start and end)."""
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
    """Exactly the requested groups are returned, whether 0, 4 or 100 of 1,000 are requested."""
    archive = SampleArchive(str(tmp_path))
    every = [f"g{number:04}" for number in range(1_000)]
    append(archive, 0, *every)
    chosen = every[:: len(every) // count] if count else []
    assert archive.read(NOON, NOON, chosen)["group"].to_pylist() == chosen


def test_cost_of_the_newest_sample_is_stored(tmp_path: Path) -> None:
    """Another process can read how long the newest sample took; a damaged file is ignored."""
    archive, taken = SampleArchive(str(tmp_path)), Taken(NOON, 1.5, 3, 12)
    assert archive.taken() is None
    archive.note(taken)
    assert SampleArchive(str(tmp_path)).taken() == taken
    for text in ("{", "5", "null", '"text"', "{}", '{"began": 5}', '{"began": "2026-01-31"}'):
        (tmp_path / "samples" / "taken.json").write_text(text)
        assert archive.taken() is None, text
    fields = '"took_s": 1.5, "groups": 3, "partitions": 12'
    (tmp_path / "samples" / "taken.json").write_text(f'{{"began": "2026-01-31T12:00", {fields}}}')
    assert archive.newest(["g"]).num_rows == 0  # the stored time has no zone


def test_incomplete_sample_is_an_error(tmp_path: Path) -> None:
    """Reading a sample that is damaged, is missing or lacks a requested group raises an error."""
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
    """The members' subscriptions are in the newest sample; in earlier samples they are null."""
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
        last = rows.slice(2).select(SAMPLES.names)
        assert last.equals(newest.filter(pc.equal(newest["group"], name)))
    assert with_history(archive, newest.slice(0, 0), timedelta(hours=1)) == {}
