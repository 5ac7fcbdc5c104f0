"""The line of a key, however TOML writes it."""

import pytest

from fairlead.common.toml_lines import line_of

DOCUMENT = """\
# a comment
state_dir = "here"

[kafka]
plan_topic = "plans"
properties = {"a.b" = 1}

[[policies]]
groups = \"\"\"
[[policies]]
\"\"\"
options.sticky-lag-aware.band = 0.1
approval = {automatic = true}

[[policies]]
  [policies.approval]
  hours = [
    "22:00-06:00",  # a stretch
    "12:00-13:00",
  ]
"""


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (["state_dir"], 2),
        (["kafka"], 4),
        (["kafka", "plan_topic"], 5),
        (["kafka", "properties", "a.b"], 6),
        (["policies", 0], 8),
        (["policies", 0, "groups"], 9),
        (["policies", 0, "options", "sticky-lag-aware", "band"], 12),
        (["policies", 0, "options", "sticky-lag-aware", "horizon"], 12),
        (["policies", 0, "approval", "automatic"], 13),
        (["policies", 1], 15),
        (["policies", 1, "groups"], 15),
        (["policies", 1, "approval", "hours", 1], 17),
        (["postgres", "url"], None),
    ],
)
def test_line_is_that_of_the_statement_that_sets_the_key(
    keys: list[str | int], line: int | None
) -> None:
    """In tables, arrays of tables, dotted keys, inline tables and values of several lines."""
    assert line_of(DOCUMENT, keys) == line
