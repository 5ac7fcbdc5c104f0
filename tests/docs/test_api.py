"""The names of the public API, so that it changes only deliberately."""

import importlib
import re
from typing import Final

import yaml

from tests.docs.blocks import ROOT

_SHOWN: Final = re.compile(r"^::: (\S+)\n((?:    .*\n)*)", re.MULTILINE)
#: Module -> public names. A change here changes the API and needs an entry in CHANGELOG.md.
PUBLIC: Final = {
    "assignors.assignment": {"Assignment"},
    "assignors.member": {"InvalidProblemError", "Member"},
    "assignors.metrics": {"Metrics", "measure"},
    "assignors.problem": {"Problem"},
    "assignors.registry": {"assign", "check_options", "option_defaults"},
    "fairlead.followers": {"FollowOptions", "FollowerStatus"},
    "fairlead.followers.aiokafka": {"PlanAssignor", "PlanConsumer"},
    "fairlead.followers.confluent": {"PlanConsumer"},
    "fairlead.followers.kafka_python": {"PlanAssignor", "PlanConsumer"},
    "fairlead_planner": {"PlannerComponent", "definitions"},
}


def test_public_names_are_these() -> None:
    """The modules and public names in docs/api.md are those in `PUBLIC`."""
    found = {}
    for name, options in _SHOWN.findall((ROOT / "docs/api.md").read_text()):
        module = importlib.import_module(name)
        members = (yaml.safe_load(options) or {}).get("options", {}).get("members")
        found[name] = set(members or module.__all__)
        assert [public for public in found[name] if not hasattr(module, public)] == []
    assert found == PUBLIC
