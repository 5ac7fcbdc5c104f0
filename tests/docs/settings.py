"""Write docs/settings.md from the descriptions in the models: `python -m tests.docs.settings`."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import BaseModel, SecretStr, TypeAdapter
from pydantic_core import PydanticUndefined

from fairlead.settings import Settings
from tests.docs.blocks import DOCS

PAGE: Final = DOCS / "settings.md"
#: Sections that another page documents.
_ELSEWHERE: Final = {"discovery", "policies"}
_HEAD: Final = """\
# Settings

Which settings are there? They are in `fairlead.toml`, in the directory where a process starts, or
in environment variables, which take precedence. The variable of `kafka.plan_topic` is
`FAIRLEAD_KAFKA__PLAN_TOPIC`, with two underscores for the dot. Durations are ISO 8601 (`PT6H`) or
seconds. Defaults are in brackets. [Policies](policies.md) explains `[discovery]` and
`[[policies]]`; security settings have [their own page](own-cluster.md#security-settings).

Two more variables: `FAIRLEAD_CONFIG` (`fairlead.toml`) is the path of the file.
`FAIRLEAD_CACHE_DIR` (the user's cache directory) is the directory for downloads of the sandbox.
"""


def settings_page() -> str:
    """Return the page, with a list of settings for each section of the file."""
    sections: dict[str, list[str]] = {}
    for name, default, description in _rows(Settings):
        section, _, key = name.rpartition(".")
        sections.setdefault(section, []).append(f"- `{key}` ({default}): {description}")
    tables = [
        "\n".join([f"\n## {f'`[{section}]`' if section else 'At the top of the file'}\n", *rows])
        for section, rows in sections.items()
    ]
    return "\n".join([_HEAD.rstrip("\n"), *tables]) + "\n"


def _rows(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the name, default and description of every setting."""
    for name, field in model.model_fields.items():
        tables = [
            part
            for part in (field.annotation, *get_args(field.annotation))
            if isinstance(part, type) and issubclass(part, BaseModel)
        ]
        if prefix + name in _ELSEWHERE:
            continue
        for table in tables:
            yield from _rows(table, f"{prefix}{name}.")
        if not tables:
            default = field.get_default(call_default_factory=True)
            assert field.description, f"{prefix}{name} has no description"
            yield prefix + name, _written(default), field.description


def _written(default: Any) -> str:
    """Return a default value as the page shows it."""
    if default is PydanticUndefined:
        return "required"
    if default is None:
        return "none"
    if isinstance(default, SecretStr):
        default = default.get_secret_value()
    if isinstance(default, timedelta):
        iso = TypeAdapter(timedelta).dump_python(default, mode="json")
        default = iso if "T" in iso else f"P{default.days}D"
    return f"`{default if isinstance(default, str | Path) else json.dumps(default)}`"


if __name__ == "__main__":
    PAGE.write_text(settings_page())
