"""Ask one Java process questions about the jar's classes.

Belongs here: starting and asking Checks.java. Belongs elsewhere: the expected answers.
"""

import json
import subprocess
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from fairlead.sandbox.java import BRIEF, find_java


class Checks:
    """A running Checks.java, which reads one question per line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def lines(self, questions: Iterable[dict[str, Any]]) -> list[str]:
        """Return the answer line to each question.

        All answers are read, because an unread answer would be returned for the next question.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = [json.dumps(question) + "\n" for question in questions]
        asking = threading.Thread(target=self._ask, args=(request,))
        asking.start()
        answers = [self._process.stdout.readline() for _ in request]
        assert all(answers), "Checks.java ended: its standard error says why"
        asking.join()
        return [answer[:-1] for answer in answers]

    def ask(self, what: str, **question: Any) -> Any:
        """Return the answer to one question."""
        (answer,) = self.lines([{"ask": what, **question}])
        return json.loads(answer)

    def _ask(self, request: list[str]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.writelines(request)
        self._process.stdin.flush()


@contextmanager
def answering(classpath: str) -> Iterator[Checks]:
    """Run Checks.java until the context ends, on a small heap that must be enough for any input."""
    command = [str(find_java()), *BRIEF, "-Xmx64m", "-cp", classpath, "fairlead.kafka.Checks"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        yield Checks(process)
        assert process.stdin is not None
        process.stdin.close()
