"""The right answer to a story, and how an actual answer differs from it.

Belongs here: the comparison. Belongs elsewhere: the stories (`reported`, `retold`), running the
analysis (`__main__`).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Right:
    """The right answer about a group.

    Parameters
    ----------
    because
        Why this answer is right, in one sentence.
    diagnoses
        Right diagnoses, separated by `|`. After a leading `!`: wrong diagnoses; all others are
        right.
    names
        Members or partitions that the answer must name, separated by blanks; None: not checked.
    also
        Members or partitions that the answer may name, too.
    plan
        Whether the answer must be a plan or must not be one; None: both are right.
    places
        Whether the plan must give every partition an owner.
    more
        Right numbers of additional consumers. The answer must give one of these numbers. A None in
        the tuple means that more consumers cannot help. If `more` is None, this is not checked.
    says, never
        Regular expressions that the evidence must, or must not, contain.
    """

    because: str
    diagnoses: str
    names: str | None = None
    also: str = ""
    plan: bool | None = False
    places: bool = False
    more: tuple[int | None, ...] | None = None
    says: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    def faults(self, question: Mapping[str, Any], answer: Mapping[str, Any]) -> list[str]:
        """Return what is wrong with an answer of `fairlead decide`, one text per fault."""
        if "error" in answer:
            return [f"error: {answer['error']}"]
        checks = (
            (self._diagnosis(answer["diagnosis"]), "diagnosis"),
            (self._names(set(answer["names"])), "names"),
            (self.plan in (None, answer["outcome"] == "plan"), "plan"),
            (not self.places or _places_all(question, answer), "partitions without an owner"),
            (self.more is None or _more(answer) in self.more, f"{_more(answer)} more consumers"),
        )
        evidence = answer["evidence"]
        return [
            *(what for right, what in checks if not right),
            *(f"does not say {word!r}" for word in self.says if not _found(word, evidence)),
            *(f"says {word!r}" for word in self.never if _found(word, evidence)),
        ]

    def _diagnosis(self, answered: str) -> bool:
        listed = self.diagnoses.removeprefix("!").split("|")
        return (answered in listed) != self.diagnoses.startswith("!")

    def _names(self, answered: set[str]) -> bool:
        if self.names is None:
            return True
        wanted = set(self.names.split())
        return wanted <= answered <= wanted | set(self.also.split())

    def __str__(self) -> str:
        words = [self.diagnoses.replace("!", "not ").replace("|", " or ")]
        words += [self.names] if self.names else []
        words += [] if self.plan is None else ["plan" if self.plan else "no plan"]
        return ", ".join(words)


@dataclass(frozen=True)
class Story:
    """A consumer group from a public report.

    Parameters
    ----------
    name
        A few words, joined by hyphens.
    source
        URLs of the report.
    text
        What happened, in plain sentences.
    right
        The right answer.
    ask
        Returns the input for `fairlead decide`.
    """

    name: str
    source: str
    text: str
    right: Right
    ask: Callable[[], Mapping[str, Any]]


def _places_all(question: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    assigned = answer.get("assignment") or {}
    placed = {
        (topic, number)
        for topics in assigned.values()
        for topic, numbers in topics.items()
        for number in numbers
    }
    return placed == {
        (topic, number) for topic, count in question["topics"].items() for number in range(count)
    }


def _more(answer: Mapping[str, Any]) -> int | None:
    consumers = answer["consumers"]
    wanted: int | None = consumers["wanted"]
    return None if wanted is None else wanted - int(consumers["now"])


def _found(word: str, text: str) -> bool:
    return re.search(word, text, re.IGNORECASE) is not None
