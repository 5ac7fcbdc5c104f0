"""Suggestions for mistyped names.

Belongs here: comparing names, listing the keys of settings, and errors with the path of a key.
Belongs elsewhere: the names of groups and topics.
"""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel


class WrongAt(ValueError):  # noqa: N818 - reads well where it is raised
    """An invalid value in a table of the settings (TOML), found by the validator of this table.

    Parameters
    ----------
    message
        The error.
    keys
        Path from this table to the value.
    """

    def __init__(self, message: str, *keys: str) -> None:
        super().__init__(message)
        self.keys = keys


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to a name; None if no name is similar.

    Examples
    --------
    >>> nearest("bootstrap_server", ["bootstrap_servers", "plan_topic"])
    'bootstrap_servers'
    >>> nearest("colour", ["bootstrap_servers", "plan_topic"])
    """
    folded = {known_name.casefold(): known_name for known_name in sorted(known)}
    close = get_close_matches(name.casefold(), folded, n=1)
    return folded[close[0]] if close else None


def hint(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return the end of an error message for an unknown name: a similar name, or other advice.

    Examples
    --------
    >>> hint("ordres", ["orders", "billing"])
    '; did you mean orders?'
    >>> hint("audit", ["orders", "billing"], "`fairlead groups` lists them")
    '; `fairlead groups` lists them'
    """
    close = nearest(name, known)
    advice = otherwise if close is None else f"did you mean {close}?"
    return f"; {advice}" if advice else ""


def no_such(what: str, name: str, known: Iterable[str]) -> str:
    """Return the error message for an unknown name, with a similar name or all known names.

    Examples
    --------
    >>> no_such("key", "max_move", ["max_moves", "cooldown"])
    'no such key; did you mean max_moves?'
    >>> no_such("key", "colour", ["max_moves", "cooldown"])
    'no such key; known names: cooldown, max_moves'
    """
    names = sorted(known)
    every_name = f"known names: {', '.join(names)}" if names else ""
    return f"no such {what}{hint(name, names, every_name)}"


def known_keys(model: type[BaseModel], way: Sequence[str | int]) -> list[str]:
    """Return the keys of a table of the settings.

    Parameters
    ----------
    model
        The model of all settings.
    way
        Path to the table; numbers are indices of arrays.

    Examples
    --------
    >>> class Topic(BaseModel):
    ...     name: str
    >>> class Cluster(BaseModel):
    ...     topics: tuple[Topic, ...]
    >>> known_keys(Cluster, []), known_keys(Cluster, ["topics", 0])
    (['topics'], ['name'])
    """
    for key in way:
        if isinstance(key, str):
            field = model.model_fields.get(key)
            inner = next(_models(field.annotation), None) if field else None
            if inner is None:
                return []
            model = inner
    return list(model.model_fields)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the pydantic models in a type annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)
