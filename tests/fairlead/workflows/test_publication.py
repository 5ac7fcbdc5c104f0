"""A pass on a cluster: one more attempt, with new clients, if Kafka does not answer at first."""

from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.domain.reconciliation import Action
from fairlead.errors import KafkaUnavailableError
from fairlead.settings import KafkaSettings, Settings
from fairlead.store import PlanStore
from fairlead.workflows import publication
from fairlead.workflows.publication import FIRST_ATTEMPT_S, publish_groups
from fairlead.workflows.reconciling import StepResult

pytestmark = pytest.mark.postgres


def test_broker_that_died_costs_one_attempt(
    store: PlanStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one is impatient; what it has done is reported beside what the second one does."""
    patience: list[float] = []

    def one_pass(
        _: Any, __: Any, ___: Any, kafka: KafkaSettings, ____: Any
    ) -> Iterator[StepResult]:
        patience.append(kafka.request_timeout_s)
        yield StepResult(f"g{len(patience)}", 1, Action.SEND, "plans-0 at offset 1", (0, 1))
        if len(patience) == 1:
            raise KafkaUnavailableError("the coordinator does not answer")

    monkeypatch.setattr(publication, "_pass", one_pass)
    settings = Settings(kafka=KafkaSettings(request_timeout_s=60.0))  # clock: nothing waits
    _, done = publish_groups(store, [], settings, at_most_s=20.0)
    assert patience == [FIRST_ATTEMPT_S, 20.0]
    assert [result.group for result in done] == ["g1", "g2"]
