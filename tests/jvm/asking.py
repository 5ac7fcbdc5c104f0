"""Questions to the jar's classes, which one Java process answers.

Belongs here: asking Checks.java. Does not: starting it (`conftest`).
"""

import json
import subprocess
import threading
from collections.abc import Iterable, Iterator
from typing import Any


class Checks:
    """Asks Checks.java, a line a question."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def lines(self, questions: Iterable[dict[str, Any]]) -> Iterator[str]:
        """Yield the answer to each question, as it stands."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = [json.dumps(question) + "\n" for question in questions]
        asking = threading.Thread(target=self._ask, args=(asked,))
        asking.start()
        for _ in asked:
            answer = self._process.stdout.readline()
            assert answer, "Checks.java ended: its standard error says why"
            yield answer[:-1]
        asking.join()

    def ask(self, what: str, **question: Any) -> Any:
        """Return the answer to one question."""
        (answer,) = self.lines([{"ask": what, **question}])
        return json.loads(answer)

    def _ask(self, asked: list[str]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.writelines(asked)
        self._process.stdin.flush()
