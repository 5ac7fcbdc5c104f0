"""`fairlead assign`, `fairlead partition`, `fairlead decide`: JSON lines in, JSON lines out.

Belongs here: the commands. Belongs elsewhere: the content of a line (`assign_answers`,
`fairlead.domain.decide_json.lines`), and the line protocol (`fairlead.common.json_lines`).
"""

import json
import sys
from typing import TYPE_CHECKING, BinaryIO

import typer

if TYPE_CHECKING:
    from fairlead.common.json_lines import Answer


def assign() -> None:
    """Solve assignment problems, one JSON object per line.

    {"assignor": "sticky", "topics": {"t0": 3}, "members": {"C0": {"topics": ["t0"]}},
    "lags": {"t0": [5, 3, 2]}} -> {"assignment": ..., "metrics": ...} or {"error": ...}.
    The exit code is 1 if any answer is an error.
    """
    from fairlead.surfaces.cli.assign_answers import answer_problem

    serve(answer_problem)


def partition() -> None:
    """Return the partition that Kafka's producers choose for a key by default.

    {"key": "k", "key_encoding": "utf8", "partitions": 12} -> {"partition": 3} or {"error": ...};
    key_encoding is utf8 or base64. The exit code is 1 if any answer is an error.
    """
    from fairlead.surfaces.cli.assign_answers import answer_record

    serve(answer_record)


def decide() -> None:
    """Decide on groups from samples, one JSON object per line.

    {"topics": {"t": 3}, "members": {"a": {"topics": ["t"]}}, "snapshots": [...]} ->
    {"outcome": "plan" | "no change", "diagnosis": ..., "forecast": ...} or {"error": ...}. A
    decision depends only on its input line. The exit code is 1 if any answer is an error.
    """
    from fairlead.domain.decide_json.lines import answer_question

    serve(answer_question, spare="memory")


def serve(answer: "Answer", *, spare: str = "") -> None:
    """Answer each line of standard input; exit with 1 if any answer is an error.

    `spare` names a key that a line can do without: if its value cannot be parsed, the line is
    answered as if the key were missing.
    """
    from fairlead.common.json_lines import answer_lines

    if sys.stdin is None:  # the parent process has closed standard input
        raise typer.Exit
    source: BinaryIO = sys.stdin.buffer
    failed = False
    for result in answer_lines(source, answer, spare=spare):
        failed |= "error" in result
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()
    raise typer.Exit(code=1 if failed else 0)
