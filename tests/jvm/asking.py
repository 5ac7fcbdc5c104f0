"""Ask one Java process many questions, one JSON line each.

Belongs here: starting and asking Java programs. Belongs elsewhere: the expected answers.
"""

import json
import subprocess
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from fairlead.sandbox.java import BRIEF, find_java


class Program:
    """A running Java program, which reads one question per line."""

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
        assert all(answers), "the Java program ended: its standard error says why"
        asking.join()
        return [answer[:-1] for answer in answers]

    def ask(self, what: str, **question: Any) -> Any:
        """Return the answer to one question."""
        (answer,) = self.lines([{"ask": what, **question}])
        answered = json.loads(answer)
        assert not isinstance(answered, dict) or "error" not in answered, answered
        return answered

    def _ask(self, request: list[str]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.writelines(request)
        self._process.stdin.flush()


@contextmanager
def answering(*arguments: str) -> Iterator[Program]:
    """Run a Java program until the context ends."""
    command = [str(find_java()), *BRIEF, *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        yield Program(process)
        assert process.stdin is not None
        process.stdin.close()
