"""Some of the kills that `python -m tests.fairlead.workflows.killing` does by the hundred."""

import pytest

from fairlead.settings import Settings
from tests.conftest import KafkaTopic
from tests.fairlead.workflows.killing import Killing
from tests.lengths import form

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


def test_all_agree_after_each_of_some_kills(
    settings: Settings, kafka_topic: KafkaTopic, store_url: str
) -> None:
    """Killed, or frozen until another run is over: no gap, nothing on its way, one plan."""
    name = kafka_topic(config={"cleanup.policy": "compact"})
    killing = Killing(store_url, settings.kafka.model_copy(update={"plan_topic": name}), seed=1)
    for _ in range(form(short=3, long=60)):
        killing.kill_one()
    killing.close()
