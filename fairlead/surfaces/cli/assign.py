"""`fairlead assign`, `fairlead partition`, `fairlead decide`: JSON lines in, JSON lines out.

Belongs here: the commands. Does not: what a line may say (`assign_answers`,
`fairlead.domain.decide_json.lines`), nor the line protocol (`fairlead.common.json_lines`).
"""

import json
import sys
from typing import TYPE_CHECKING, BinaryIO

import typer

if TYPE_CHECKING:
    from fairlead.common.json_lines import Answer


def assign() -> None:
    """Answer assignment problems, one JSON object a line, each with one line.

    {"assignor": "sticky", "topics": {"t0": 3}, "members": {"C0": {"topics": ["t0"]}},
    "lags": {"t0": [5, 3, 2]}} -> {"assignment": ..., "metrics": ...} or {"error": ...}.
    Exits with 1 when any answer is an error.
    """
    from fairlead.surfaces.cli.assign_answers import answer_problem

    serve(answer_problem)


def partition() -> None:
    """Say which partition the producer's default partitioner gives a key, line by line.

    {"key": "k", "key_encoding": "utf8", "partitions": 12} -> {"partition": 3} or {"error": ...};
    key_encoding is utf8 or base64. Exits with 1 when any answer is an error.
    """
    from fairlead.surfaces.cli.assign_answers import answer_record

    serve(answer_record)


def decide() -> None:
    """Decide on consumer groups from looks at them, one JSON object a line, each with one line.

    {"topics": {"t": 3}, "members": {"a": {"topics": ["t"]}}, "snapshots": [...]} ->
    {"outcome": "plan" | "no change", "diagnosis": ..., "forecast": ...} or {"error": ...}. All that
    a decision knows is in the line. Exits with 1 when any answer is an error.
    """
    from fairlead.domain.decide_json.lines import answer_question

    serve(answer_question, spare="memory")


def serve(answer: "Answer", *, spare: str = "") -> None:
    """Answer standard input line by line; exit with 1 when any answer is an error.

    No line fails for the value of its key `spare`.
    """
    from fairlead.common.json_lines import answer_lines

    if sys.stdin is None:  # closed by whoever started us
        raise typer.Exit
    source: BinaryIO = sys.stdin.buffer
    failed = False
    for result in answer_lines(source, answer, spare=spare):
        failed |= "error" in result
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()
    raise typer.Exit(code=1 if failed else 0)
