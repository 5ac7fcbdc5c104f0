"""Sample files: complete ones are read, damaged ones are moved to the folder `damaged`."""

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fairlead.archive import SampleArchive
from fairlead.errors import FileSystemError
from tests.fairlead.archive.archives import (
    KEPT,
    NOON,
    append,
    damaged,
    files,
    filled,
    minutes,
    sample_at,
)
from tests.full_disk import no_room


def _written(sample: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(sample, sink)
    return bytes(sink.getvalue())


#: For each kind of damage: a function that damages a file's content, and the logged reason.
DAMAGE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "Parquet file size is 0 bytes"),
    "cut": (lambda content: content[:300], "magic bytes not found in footer"),
    "text": (lambda _: b"what is this?", "magic bytes not found in footer"),
    "less": (lambda _: _written(sample_at(NOON).drop_columns(["racks"])), "columns"),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_file_is_set_aside_and_the_others_are_read(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The first read moves the file unchanged, and logs the file's name and the reason once."""
    archive = filled(tmp_path, range(3))
    file = files(tmp_path)[0].rename(files(tmp_path)[1].with_stem("20260131T115930.000000Z-bad"))
    damage, why = DAMAGE[how]
    file.write_bytes(damage(file.read_bytes()))
    content = file.read_bytes()
    assert minutes(archive) == [0, 1]
    (record,) = caplog.records
    assert (record.levelname, record.exc_info) == ("WARNING", None)
    assert str(file) in record.getMessage()
    assert why in record.getMessage()
    assert damaged(tmp_path) == [content]
    assert [name.partition("-")[2] for name in archive.damaged()] == [f"2026-01-31-{file.name}"]
    assert minutes(archive) == [0, 1]
    assert len(caplog.records) == 1


def test_file_with_an_unknown_name_is_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log escapes the file's name, because a name could contain terminal control codes."""
    archive = filled(tmp_path, range(20))
    for name in ("backup\x1b[31m", "20260131T1130Z-foreign"):
        files(tmp_path)[0].with_name(f"{name}.parquet").write_bytes(b"something")
    assert minutes(archive) == list(range(20))
    assert damaged(tmp_path) == [b"something"] * 2
    assert caplog.text.count("its name does not begin with a time") == 2
    assert "\x1b" not in caplog.text


def test_damaged_rows_are_never_read(tmp_path: Path) -> None:
    """If one byte of a file is changed, reading returns the original rows or none."""
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
    """The damaged file is not moved, and tidying still removes outdated samples."""
    archive = filled(tmp_path, range(1, 4))
    (tmp_path / "samples" / "damaged").write_text("a file where the folder is to be")
    file = files(tmp_path)[0]
    file.write_bytes(b"damaged")
    assert minutes(archive) == [1, 2]
    assert "The file cannot be moved to" in caplog.text
    archive.tidy(NOON + timedelta(hours=2), KEPT)
    assert minutes(archive) == [1]  # tidying has removed the other sample
    assert file.read_bytes() == b"damaged"


def test_full_disk_is_reported_in_a_line(tmp_path: Path) -> None:
    """The error names the file, the reason and the remedy; no incomplete file is left."""
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
        archive.tidy(NOON, KEPT)  # old files can be deleted although the disk is full
    assert minutes(archive) == [76, 91]


def test_file_is_on_the_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a file were named before it is synced, a power cut could leave an empty sample file."""
    synced: list[tuple[bytes, list[str]]] = []

    def fsync(handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        visible = [file.name[:8] for file in files(tmp_path) if not file.name.startswith("_")]
        synced.append((path.read_bytes()[:4] if path.is_file() else b"a folder", visible))

    monkeypatch.setattr(os, "fsync", fsync)
    filled(tmp_path, [0])
    assert synced == [(b"PAR1", []), (b"a folder", ["20260131"])]
