"""Check the analysis on stories from public reports: `python -m benchmarks.stories`.

Belongs here: running `fairlead decide`, and the table. Belongs elsewhere: comparing answers
(`answers`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks import harness
from benchmarks.stories.answers import Story
from benchmarks.stories.collected import COLLECTED
from benchmarks.stories.later import LATER
from benchmarks.stories.reported import REPORTED
from benchmarks.stories.retold import RETOLD
from benchmarks.stories.varied import VARIED
from fairlead.common.json_lines import answer_lines
from fairlead.domain.decide_json.lines import answer_question

#: Lists of stories, by the module that defines them.
KINDS: Final = {
    "retold": RETOLD,
    "reported": REPORTED,
    "collected": COLLECTED,
    "later": LATER,
    "varied": VARIED,
}
RESULTS: Final = Path(__file__).parents[1] / "stories.json"


@dataclass(frozen=True)
class Marked:
    """A story, the answer of `fairlead decide`, and what is wrong with the answer."""

    story: Story
    answer: Mapping[str, Any]
    faults: list[str]

    @property
    def words(self) -> str:
        """The answer in the format of `str(Right)`."""
        if "error" in self.answer:
            return "error"
        names = " ".join(self.answer["names"])
        outcome = "plan" if self.answer["outcome"] == "plan" else "no plan"
        return ", ".join(filter(None, (self.answer["diagnosis"], names, outcome)))

    @property
    def row(self) -> tuple[str, ...]:
        """A table row: story, right answer, actual answer, and what is wrong with it."""
        faults = f"wrong: {'; '.join(self.faults)}" if self.faults else "ok"
        return self.story.name, str(self.story.right), self.words, faults


def mark(story: Story) -> Marked:
    """Run `fairlead decide` on a story's group, and compare the answer with the right one."""
    question = story.ask()
    line = json.dumps(question).encode()
    (answer,) = answer_lines([line], answer_question, spare="memory")
    return Marked(story, answer, story.right.faults(question, answer))


def main() -> None:
    """Print a table of all stories, or of the named ones, with the number of right answers."""
    options = harness.parser(__doc__)
    names = [story.name for stories in KINDS.values() for story in stories]
    options.add_argument("names", nargs="*", choices=[[], *names], metavar="NAME", help="a story")
    with harness.measuring(options, RESULTS) as bench:
        chosen, figures = bench.options.names, {}
        for title, stories in KINDS.items():
            marks = [mark(story) for story in stories if not chosen or story.name in chosen]
            right = sum(not marked.faults for marked in marks)
            bench.show(
                f"{title}: {right} of {len(marks)} are right",
                ("story", "right answer", "answer", "faults"),
                [marked.row for marked in marks],
            )
            figures[title] = {
                "right": right,
                "of": len(marks),
                "wrong": {
                    marked.story.name: {
                        "answer": marked.words,
                        "faults": marked.faults,
                        "evidence": marked.answer.get("evidence"),
                    }
                    for marked in marks
                    if marked.faults
                },
            }
        if not chosen:
            bench.write(figures)


if __name__ == "__main__":
    main()
