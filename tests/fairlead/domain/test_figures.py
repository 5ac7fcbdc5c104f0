"""Each figure is defined once, and computed in one file."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from fairlead.domain.figures import FIGURES, figure

ROOT: Final = Path(__file__).parents[3]
PRODUCT: Final = ("fairlead", "assets", "assignors", "orchestration", "fairlead_planner")

_METRICS: Final = "assignors/metrics.py"
_FORECAST: Final = "fairlead/domain/analysis/forecast.py"
_LAG: Final = "fairlead/domain/samples/lag.py"
_RACKS: Final = "fairlead/domain/analysis/racks.py"
_FIGURES: Final = "fairlead/domain/figures.py"
_VIEWS: Final = "migrations/sql/views.sql"
#: The file that computes each figure, and the functions there that return it under another name.
HOMES: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        ("late_s", "utilisation", "caught_up_s", "loss_s", "capacity_share"), (_FORECAST,)
    ),
    "consumers_wanted": ("fairlead/domain/analysis/sizing.py", "size"),
    **dict.fromkeys(
        ("count_min", "count_max", "balance_score", "lag_max", "lag_mean"), (_METRICS,)
    ),
    **dict.fromkeys(("gap", "kept", "placed", "topic_spread"), (_METRICS,)),
    "moved": (_METRICS, "moved_partitions"),
    "lag_lower_bound": ("assignors/lower_bound.py",),
    "rack_gb_per_day": (_RACKS, "gb_per_day", "daily_gb"),
    "rack_cost_per_day": (_RACKS, "cost_per_day"),
    "imbalance": (_FIGURES,),
    "adherence": (_FIGURES,),
    "lag": ("fairlead/domain/analysis/looks.py",),
    **dict.fromkeys(("time_lag_s", "arrival_rate", "consumption_rate", "lost"), (_LAG,)),
    "cost": ("fairlead/domain/analysis/costs.py",),
    "records_per_s": ("fairlead/domain/analysis/capacities.py",),
    "time_share": (_VIEWS,),
    **dict.fromkeys(("seconds_per_record", "busy"), ("fairlead/domain/analysis/reported_work.py",)),
    # Sums and largest values of a look's rows, in the query that shows them.
    **dict.fromkeys(
        ("behind_now_s", "lag_now", "lag_max_now"), ("fairlead/store/history_queries.py",)
    ),
    "rebalances": ("migrations/sql/history.sql",),
}
_REPLAYED: Final = "partition-seconds beyond the objective, of a replay"
#: Where a name does not stand for the figure, and what it is there.
OTHERS: Final = {
    ("fairlead/domain/analysis/estimate.py", "records_per_s"): "in work, and back in records",
    ("fairlead/domain/analysis/steps.py", "kept"): "the forecast of the present owners",
    **{
        (f"fairlead/domain/analysis/{module}.py", "busy"): "members that had something to read"
        for module in ("commits",)
    },
    ("fairlead/domain/decide_json/lines.py", "seconds_per_record"): "the figure of all partitions",
    (
        "fairlead/store/history_queries.py",
        "seconds_per_record",
    ): "the mean of a topic, weighted by arrivals",
    ("fairlead/store/monitoring.py", "lag"): "rows of all groups",
    ("fairlead/surfaces/backtest/observing.py", "late_s"): _REPLAYED,
    ("fairlead/surfaces/backtest/replay.py", "late_s"): _REPLAYED,
    ("fairlead/surfaces/backtest/replay.py", "moved"): "moves so far, of a replay",
    ("fairlead/surfaces/survey/page.py", "lag"): "a text that shows the figure",
    ("fairlead/workflows/diagnosing.py", "kept"): "a look that is kept",
    # Second computations, which have yet to take the figure from its home.
    ("fairlead/surfaces/backtest/replay.py", "placed"): "the same",
}
#: Names that variables of algorithms have, too: only keys and fields of these names count.
EVERYDAY: Final = {"busy", "cost", "gap", "kept", "lag", "late_s", "lost", "moved", "placed"}
#: What hands a value on, or declares a column.
_PASSING: Final = {
    *("ARRAY", "field", "float64", "int64", "mapped_column"),
    *("float", "get", "int", "round", "str", "text", "tolist"),
}


def test_every_figure_has_one_home_that_is_there() -> None:
    """A figure without a home, or a home without its file, is a mistake here."""
    assert set(HOMES) == set(FIGURES)
    assert [home for home, *_ in HOMES.values() if not (ROOT / home).exists()] == []


def test_no_figure_is_computed_a_second_time() -> None:
    """Everything else passes figures on, or sums up what is stored."""
    files = [
        *(file for folder in PRODUCT for file in sorted((ROOT / folder).rglob("*.py"))),
        *sorted((ROOT / "migrations/sql").glob("*.sql")),
    ]
    found = {
        (file.relative_to(ROOT).as_posix(), name): line
        for file in files
        for line, name in _computed_in(file)
    }
    assert {
        place: line
        for place, line in found.items()
        if place not in OTHERS and place[0] != HOMES[place[1]][0]
    } == {}
    assert set(OTHERS) <= set(found), "an exception that nothing needs any more"


def _computed_in(file: Path) -> Iterator[tuple[int, str]]:
    source = file.read_text()
    yield from computed_in_sql(source)
    if file.suffix == ".py":
        yield from computed(source)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('row = {"late_s": backlog / rate}', "late_s"),
        ('row["late_s"] = float(row["late_s"]) * 2', "late_s"),
        ("Findings(utilisation=max(arrivals, capacity))", "utilisation"),
        ("imbalance = heaviest / mean", "imbalance"),
        ("self.adherence = share(owned, planned)", "adherence"),
        ("def adherence(owned, planned):\n    return owned / planned", "adherence"),
        ("PlanFacts(moved=int((before != after).sum()))", "moved"),
        ('seconds = backlog / rate\nrow = {"late_s": seconds}', "late_s"),
    ],
)
def test_a_second_computation_is_found(source: str, name: str) -> None:
    """By arithmetic, or by a call that does not read the figure itself."""
    assert [found for _, found in computed(source)] == [name]


@pytest.mark.parametrize(
    "source",
    [
        'row = {"late_s": analysis.kept.late_s}',
        'Findings(late_s=float(row["late_s"]), moved=draft.moved or 0)',
        "late_s = sum(day.late_s for day in days)",
        "adherence = adherence(owned, planned)",
        "moved = owner.sum() - before",
        'schema = {"late_s": pa.float64()}',
        "Candidate(moved=moved_partitions(before, after))",
    ],
)
def test_what_passes_a_figure_on_is_none(source: str) -> None:
    """Nor is a sum of stored ones, or another thing of an everyday name."""
    assert list(computed(source)) == []


def test_a_second_computation_in_sql_is_found() -> None:
    """By arithmetic before the name; a sum or the largest of stored rows is none."""
    query = "SELECT a.lag_max / nullif(a.lag_mean, 0) AS imbalance, max(late_s) AS late_s FROM a"
    assert list(computed_in_sql(query)) == [(1, "imbalance")]


def computed(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and name of each figure that a module computes, not passes on."""
    for scope in ast.walk(ast.parse(source)):
        if not isinstance(scope, ast.Module | ast.FunctionDef):
            continue
        given = [each for node in _own(scope) for each in _given(node)]
        for name, value, is_field in given:
            if name not in FIGURES or not (is_field or name not in EVERYDAY):
                continue
            meant = [value]
            if isinstance(value, ast.Name):  # what this function gives that name to
                meant = [held for other, held, field in given if other == value.id and not field]
            if any(_computes(name, each) for each in meant):
                yield value.lineno, name


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield a scope and its nodes, but not those of functions in it."""
    yield scope
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, ast.FunctionDef):
            yield from _own(node)


def _given(node: ast.AST) -> Iterator[tuple[str, ast.expr, bool]]:
    """Yield what a node gives a name to, with whether the name is a key or a field."""
    if isinstance(node, ast.Call):
        yield from ((key.arg, key.value, True) for key in node.keywords if key.arg)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                yield str(key.value), value, True
    elif isinstance(node, ast.FunctionDef) and node.name.lstrip("_") not in EVERYDAY:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Return) and inner.value is not None:
                yield node.name.lstrip("_"), inner.value, False
    elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            place = target.slice if isinstance(target, ast.Subscript) else target
            yield _name(place), node.value, not isinstance(place, ast.Name)


def _name(node: ast.AST) -> str:
    """Return the name of a variable, attribute or key."""
    return str(next((vars(node)[key] for key in ("id", "attr", "value") if key in vars(node)), ""))


def _computes(name: str, value: ast.expr) -> bool:
    """Whether an expression works a figure out: by arithmetic, or by calls that do not read it."""
    nodes = list(ast.walk(value))
    if any(isinstance(node, ast.BinOp) and not isinstance(node.op, ast.BitOr) for node in nodes):
        return True
    calls = {_name(node.func) for node in nodes if isinstance(node, ast.Call)}
    return bool(calls - _PASSING) and not {name, *HOMES[name][1:]} & set(map(_name, nodes))


def computed_in_sql(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and name of each figure that a query computes by arithmetic."""
    for match in re.finditer(r"\bAS (\w+)\b", source):
        name, depth, place = match[1], 0, match.start()
        while place > 0 and (depth or source[place - 1] not in ",("):
            place -= 1
            depth += {")": 1, "(": -1}.get(source[place], 0)
        expression = re.split(r"\bSELECT\b", source[place : match.start()])[-1]
        if name in FIGURES and re.search(r"[*/]|\s[-+]\s", expression):
            yield source.count("\n", 0, match.start()) + 1, name


def test_values_are_written_by_their_units() -> None:
    """Lengths of time, shares, counts; and a word where nothing is known."""
    assert figure("late_s").text(7300.0) == "2 h"
    assert figure("adherence").text(0.9999) == "99.9 %"
    assert figure("lag_max_predicted").text(18_125) == "18,125"
    assert figure("rack_cost_per_day").text(1234.5) == "1,234.50"
    assert figure("rack_gb_per_day").text(None) == "unknown"
    assert [figure(name).text(None) for name in ("late_s", "caught_up_s", "loss_s")] == [
        *("unknown", "never", "none")
    ]
