"""`fairlead simulate`: scenarios by name, side by side."""

import json

import pytest
from typer.testing import CliRunner

from fairlead.simulation.catalogue import SCENARIOS, UnknownScenarioError
from fairlead.surfaces.cli import app


def test_without_arguments_scenarios_are_listed() -> None:
    """Whoever does not know their names learns them, with what happens in each."""
    listed = json.loads(CliRunner().invoke(app, ["simulate", "--json"]).stdout)
    assert [row["scenario"] for row in listed] == list(SCENARIOS)
    assert "skew" in CliRunner().invoke(app, ["simulate"]).stdout


@pytest.mark.long
def test_figures_stand_side_by_side() -> None:
    """Each of the chosen in each of the scenarios; equal seeds, equal figures."""
    arguments = ["simulate", "skew", "even", "--hours", "7", "--seed", "3", "--json"]
    arguments += ["--controller", "never planned", "--controller", "planner"]
    first, second = (CliRunner().invoke(app, arguments) for _ in range(2))
    assert first.stdout == second.stdout
    rows = {(row["scenario"], row["controller"]): row for row in json.loads(first.stdout)}
    assert list(rows) == [
        (scenario, who) for scenario in ("skew", "even") for who in ("never planned", "planner")
    ]
    assert rows["skew", "never planned"]["late"] == 20 * 60
    assert rows["skew", "planner"]["late"] < 12
    assert rows["skew", "planner"]["plans"] >= 1
    assert rows["even", "planner"]["plans"] == 0


def test_a_scenario_is_tried_with_another_client() -> None:
    """Consumers that read in chunks are late elsewhere than those that read in proportion."""
    arguments = ["simulate", "skew", "--hours", "7", "--controller", "never planned", "--json"]
    usual, chunks = (
        json.loads(CliRunner().invoke(app, [*arguments, *client]).stdout)[0]["late"]
        for client in ([], ["--client", "kafka-python"])
    )
    assert 0 < chunks < usual


def test_unknown_names_are_said_before_anything_runs() -> None:
    """The message says which there are."""
    for arguments in (
        ["nonsense"],
        ["skew", "--controller", "nonsense"],
        ["skew", "--client", "nonsense"],
    ):
        error = CliRunner().invoke(app, ["simulate", *arguments]).exception
        assert isinstance(error, UnknownScenarioError)
        assert "there are" in str(error)
