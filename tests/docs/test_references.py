"""What pages name of the repository is there: files, tests, settings, metrics, steps, SQL.

Belongs here: names within sentences. Does not: commands and examples, which are run or checked
(`test_pages`), links (`test_site`).
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, get_args

from pydantic import BaseModel

from fairlead.settings import OTHER_VARIABLES, Settings
from tests.docs.blocks import DOCS, ROOT, name_of, pages

_PATH: Final = re.compile(
    r"`((?:assets|assignors|benchmarks|deploy|docs|examples|fairlead|migrations|orchestration|tests"
    r"|domain|followers|store|surfaces|wire|workflows)/[\w./*-]*\w\.\w+)`"
)
#: A path of tests, or any file of them, and the function that is meant.
_TEST: Final = re.compile(
    r"(?<![\w./-])(?P<path>tests/[\w./-]*\w|[\w./-]*\btest_\w+\.py)(?:::(?P<function>\w+))?"
)


def test_files_that_pages_name_exist() -> None:
    """Code that looks like a path in the repository, or in the library, is one."""
    missing = [
        f"{name_of(page)}: {path}"
        for page in pages()
        for path in _PATH.findall(page.read_text())
        if not any(ROOT.glob(path)) and not any((ROOT / "fairlead").glob(path))
    ]
    assert missing == []


def test_tests_that_pages_name_exist() -> None:
    """By their whole paths, and, where a page names a function, with it."""
    named = [(page, found) for page in pages() for found in _TEST.finditer(page.read_text())]
    missing = [
        f"{name_of(page)}: {found[0]}"
        for page, found in named
        if not (ROOT / found["path"]).exists()
        or (
            found["function"]
            and f"def {found['function']}(" not in (ROOT / found["path"]).read_text()
        )
    ]
    assert named
    assert missing == []


def test_the_table_of_decisions_names_what_is_there() -> None:
    """Files and folders exist; every other name of a row is in a file that the row names."""
    table = (DOCS / "architecture.md").read_text().partition("| question | decided by |")[2]
    for row in re.findall(r"^\|.*\| (.*) \|$", table, re.MULTILINE):
        names, text = re.findall(r"`([^`]+)`", row), ""
        for name in names:
            places = (ROOT / name, ROOT / "fairlead" / name, *(ROOT / "jvm/src").rglob(name))
            found = [place for place in places if place.exists()]
            text += "".join(place.read_text() for place in found if place.is_file())
            assert found or re.search(rf"\b{re.escape(name)}\b", text), (name, row)
    assert "`" in table


#: What the pages call settings, in the words of the file and of the environment.
_SETTING: Final = re.compile(r"`((?:[a-z]+\.)+[a-z_]+|FAIRLEAD_[A-Z_]+)\b[^`\n]*`")
_STEP: Final = re.compile(r"\b(?:asset|check|job|schedule|sensor)s? `(\w+)`")
_METRIC: Final = re.compile(r"`(fairlead_\w+_(?:bytes|info|ratio|records|seconds|total|worse|up))`")
_SQL: Final = re.compile(r"`fairlead(?:_raw)?\.([a-z_]+)`")
#: What looks like a relation, and is a file, a topic or a package.
_NO_RELATIONS: Final = {"toml", "plans", "pins", "members", "fallback"}


def test_settings_that_pages_name_exist() -> None:
    """Those of a section, such as `kafka.lease`, and variables; Spark's own are Spark's."""
    known = set(_settings(Settings))
    sections = {name.partition(".")[0] for name in known if "." in name} - {"spark"}
    variables = {f"FAIRLEAD_{name.replace('.', '__').upper()}" for name in known}
    ours = known | variables | OTHER_VARIABLES | {"FAIRLEAD_TEST_LONG"}
    assert _missing(_SETTING, ours, lambda name: name.partition(".")[0] in {*sections, name}) == []


def test_metrics_that_pages_name_exist() -> None:
    """Each is in the table that the exporter's own metrics are held against."""
    table = set(re.findall(r"^\| `(\w+)` \|", (DOCS / "monitoring.md").read_text(), re.MULTILINE))
    assert _missing(_METRIC, table) == []


def test_steps_that_pages_name_exist() -> None:
    """Assets, checks, jobs, schedules and sensors, by the names that Dagster has for them."""
    code = "".join(_sources("assets", "orchestration"))
    names = {*re.findall(r"def (\w+)\(", code), *re.findall(r'"(\w+)"', code)}
    assert _missing(_STEP, names) == []


def test_relations_that_pages_name_exist() -> None:
    """Views, tables and functions of both schemas; packages are no relations."""
    code = "".join(_sources("migrations", "fairlead/store"))
    names = {*re.findall(r"fairlead(?:_raw)?\.(\w+)", code), *re.findall(r'"(\w+)"', code)}
    packages = {path.name for path in (ROOT / "fairlead").iterdir() if path.is_dir()}
    modules = {path.stem for path in (ROOT / "fairlead").glob("*.py")}
    assert _missing(_SQL, names | packages | modules | _NO_RELATIONS) == []


def _missing(
    pattern: re.Pattern[str], known: set[str], meant: Callable[[str], bool] = lambda _: True
) -> list[str]:
    named = [(page, name) for page in pages() for name in pattern.findall(page.read_text())]
    assert any(name in known for _, name in named)
    return [f"{name_of(page)}: {name}" for page, name in named if meant(name) and name not in known]


def _settings(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Yield each setting by its path."""
    for name, field in model.model_fields.items():
        yield prefix + name
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from _settings(part, f"{prefix}{name}.")


def _sources(*folders: str) -> Iterator[str]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".sql"}:
                yield path.read_text()
