"""Names on documentation pages exist: files, tests, settings, metrics, steps, database relations.

Belongs here: names within sentences. Belongs elsewhere: commands and examples (`test_pages`), links
(`test_site`).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, get_args

from pydantic import BaseModel

from fairlead.settings import OTHER_VARIABLES, Settings
from tests.docs.blocks import DOCS, ROOT, name_of, pages
from tests.docs.figures import PAGE as FIGURES_PAGE
from tests.docs.figures import figures_page
from tests.docs.settings import PAGE, settings_page

_PATH: Final = re.compile(
    r"`((?:assets|assignors|benchmarks|deploy|docs|examples|fairlead|migrations|orchestration|tests"
    r"|domain|followers|store|surfaces|wire|workflows)/[\w./*-]*\w\.\w+)`"
)
#: The path of a test file, or of any file in tests/; `::` and a test's name may follow.
_TEST: Final = re.compile(
    r"(?<![\w./-])(?P<path>tests/[\w./-]*\w|[\w./-]*\btest_\w+\.py)(?:::(?P<function>\w+))?"
)


def test_files_that_pages_name_exist() -> None:
    missing = [
        f"{name_of(page)}: {path}"
        for page in pages()
        for path in _PATH.findall(page.read_text())
        if not any(ROOT.glob(path)) and not any((ROOT / "fairlead").glob(path))
    ]
    assert missing == []


def test_tests_that_pages_name_exist() -> None:
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


def test_table_of_decisions_has_existing_files_and_names() -> None:
    """Each row of docs/architecture.md's table has files, and names that are in these files."""
    table = (DOCS / "architecture.md").read_text().partition("| question | decided by |")[2]
    for row in re.findall(r"^\|.*\| (.*) \|$", table, re.MULTILINE):
        names, text = re.findall(r"`([^`]+)`", row), ""
        for name in names:
            places = (ROOT / name, ROOT / "fairlead" / name, *(ROOT / "jvm/src").rglob(name))
            found = [place for place in places if place.exists()]
            text += "".join(place.read_text() for place in found if place.is_file())
            assert found or re.search(rf"\b{re.escape(name)}\b", text), (name, row)
    assert "`" in table


#: Names of settings on pages: keys of the file, or environment variables.
_SETTING: Final = re.compile(r"`((?:[a-z]+\.)+[a-z_]+|FAIRLEAD_[A-Z_]+)\b[^`\n]*`")
_STEP: Final = re.compile(r"\b(?:asset|check|job|schedule|sensor)s? `(\w+)`")
_METRIC: Final = re.compile(r"`(fairlead_\w+_(?:bytes|info|ratio|records|seconds|total|worse|up))`")
_SQL: Final = re.compile(r"`fairlead(?:_raw)?\.([a-z_]+)`")
#: Names of files, topics and packages that look like names of database relations.
_NO_RELATIONS: Final = {"toml", "plans", "coordination", "members", "fallback"}


def test_settings_that_pages_name_exist() -> None:
    """Keys such as `kafka.lease` and FAIRLEAD_ variables are settings of Fairlead."""
    known = set(_settings(Settings))
    sections = {name.partition(".")[0] for name in known if "." in name} - {"spark"}
    variables = {f"FAIRLEAD_{name.replace('.', '__').upper()}" for name in known}
    ours = known | variables | OTHER_VARIABLES | {"FAIRLEAD_TEST_LONG"}
    assert _missing(_SETTING, ours, lambda name: name.partition(".")[0] in {*sections, name}) == []


def test_every_figure_is_on_the_page_of_figures() -> None:
    """docs/figures.md is up to date; if it is not, run `python -m tests.docs.figures`."""
    assert FIGURES_PAGE.read_text() == figures_page()


def test_every_setting_is_on_the_page_of_settings() -> None:
    """docs/settings.md is up to date; if it is not, run `python -m tests.docs.settings`."""
    assert PAGE.read_text() == settings_page()
    assert [variable for variable in OTHER_VARIABLES if variable not in PAGE.read_text()] == []


def test_metrics_that_pages_name_exist() -> None:
    """Each metric that a page names is in the list of metrics in docs/monitoring.md."""
    table = set(
        re.findall(r"^- `(fairlead_\w+)`", (DOCS / "monitoring.md").read_text(), re.MULTILINE)
    )
    assert _missing(_METRIC, table) == []


def test_steps_that_pages_name_exist() -> None:
    code = "".join(_sources("assets", "orchestration"))
    names = {*re.findall(r"def (\w+)\(", code), *re.findall(r'"(\w+)"', code)}
    assert _missing(_STEP, names) == []


def test_sensors_that_run_by_default_are_in_the_readme() -> None:
    code = "".join(_sources("orchestration"))
    running = re.findall(
        r"@dg\.sensor\((?:(?!\n@|\ndef ).)*?DefaultSensorStatus\.RUNNING.*?\ndef (\w+)\(",
        code,
        re.DOTALL,
    )
    by_default, _, _ = (ROOT / "README.md").read_text().partition("**Off until you switch it on:**")
    assert set(re.findall(r"\| sensor `(\w+)`", by_default)) == set(running)


def test_drawing_of_the_pipeline_has_the_dependencies_of_assets() -> None:
    """The arrows between assets in the drawing are the dependencies in the code."""
    drawing = (DOCS / "pipeline.svg").read_text()
    boxes = {
        name: tuple(map(int, box))
        for *box, name in re.findall(
            r'<rect x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)".*\n.*class="name">(\S+)<',
            drawing,
        )
    }
    code = {path.stem: path.read_text() for path in (ROOT / "assets").glob("*.py")}
    deps = {
        (found[1], name)
        for name, text in code.items()
        if (found := re.search(r"^    deps=\[(\w+)\],$", text, re.MULTILINE))
    }
    arrows = set()
    for path in re.findall(r'class="line" d="M(\S+ \S+)"', drawing):
        x, y, *steps = re.findall(r"[HV]?\d+", path)
        end = dict([("H", int(x)), ("V", int(y)), *((step[0], int(step[1:])) for step in steps)])
        arrows.add((_box_at(boxes, int(x), int(y)), _box_at(boxes, end["H"], end["V"])))
    assert {arrow for arrow in arrows if set(arrow) <= boxes.keys() & code.keys()} <= deps
    reached = set(arrows)
    while more := {(a, d) for a, b in reached for c, d in arrows if b == c} - reached:
        reached |= more
    assert deps <= reached


def _box_at(boxes: Mapping[str, tuple[int, ...]], x: int, y: int) -> str:
    """Return the box that this end of an arrow touches, to within 4 px."""
    (name,) = (
        name
        for name, (left, top, width, height) in boxes.items()
        if left - 4 <= x <= left + width + 4 and top - 4 <= y <= top + height + 4
    )
    return name


def test_the_table_of_clients_names_each_fallback() -> None:
    page = (DOCS / "consumers/index.md").read_text()
    row = re.search(r"^\| without a valid plan \|(.*)\|$", page, re.MULTILINE)
    assert row is not None
    java = (ROOT / "jvm/src/main/java/fairlead/kafka/Fallback.java").read_text()
    assert [cell.split("`")[1] for cell in row[1].split("|")] == ["range"] * 4
    assert '"range"' in java
    brokers = (ROOT / "jvm/src/main/java/fairlead/kafka/BrokerSettings.java").read_text()
    assert 'Settings.FALLBACK, "uniform", "keep"' in brokers
    assert 'ON_LAPSE, "keep", "uniform"' in brokers
    assert "without a plan gets the broker's `uniform`; after a plan has ended it keeps" in page


def test_rights_of_confluent_kafka_are_those_of_the_table() -> None:
    """The page of confluent-kafka and the table of rights agree about the coordination topic."""
    table = re.search(
        r"`fairlead\.coordination` \|.*\| only confluent-kafka: (.*) \|",
        (DOCS / "trust.md").read_text(),
    )
    page = re.search(
        r"Rights\]\S+ (.*) on the coordination topic",
        (DOCS / "consumers/confluent-kafka.md").read_text(),
    )
    assert table is not None
    assert page is not None
    assert set(re.findall("[A-Z_]{4,}", page[1])) == set(table[1].split(", "))


def test_relations_that_pages_name_exist() -> None:
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
    """Yield the dotted name of each setting."""
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
