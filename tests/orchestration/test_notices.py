"""The sensor that tells people: from a plan that a policy leaves to a person, to the message."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from fairlead.domain.policy import Policy
from fairlead.workflows.proposal import Look, carry_out
from tests.fairlead.store.conftest import make_draft
from tests.pipeline import Pipeline
from tests.receiver import Receiver, receiving

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]


@pytest.fixture
def receiver(pipeline: Pipeline) -> Iterator[Receiver]:
    """Return a receiver that the settings name, in Slack's form."""
    with receiving() as receiver:
        pipeline.configure(
            f'[web]\nurl = "https://plans.example"\n[notify]\nurl = "{receiver.url}"\n'
            'format = "slack"\n'
        )
        yield receiver


def an_earlier(pipeline: Pipeline, interval: str) -> None:
    """Let all that is to be told have happened so much earlier."""
    pipeline.sql(
        "UPDATE fairlead_raw.notice SET at = at - %s::interval, next_at = next_at - %s::interval",
        *(interval, interval),
    )


def test_plan_that_waits_for_a_person_is_told_with_its_page(
    pipeline: Pipeline, receiver: Receiver
) -> None:
    """Once, at the first tick after the policy could have approved it."""
    carry_out(pipeline.store, [Look(make_draft("s1"), Policy())], datetime.now(UTC))
    assert pipeline.sensor("notices").skip_message == "Sent 0 messages."
    an_earlier(pipeline, "1 minute")
    assert pipeline.sensor("notices").skip_message == "Sent 1 message."
    assert pipeline.sensor("notices").skip_message == "Sent 0 messages."
    ((_, body),) = receiver.came
    said, link = (block["text"]["text"] for block in json.loads(body)["blocks"])
    assert said == (
        "Version 1 of the plan of group orders waits for a person\nthe heaviest member gets lighter"
    )
    page = "https://plans.example/review?group=orders&amp;version=1"
    assert link == f"<{page}|Open the page>"


def test_tick_says_what_was_not_told(
    pipeline: Pipeline, receiver: Receiver, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the receiver answered; after three days that it is given up."""
    receiver.status = 503
    carry_out(pipeline.store, [Look(make_draft("s1"), Policy())], datetime.now(UTC))
    an_earlier(pipeline, "1 minute")
    assert pipeline.sensor("notices").skip_message == (
        "Sent 0 messages; then the receiver answered 503: ok."
    )
    an_earlier(pipeline, "3 days")
    pipeline.sensor("notices")
    given_up = "Given up after three days: plan.waits of orders: the receiver answered 503"
    assert given_up in capsys.readouterr().err
    pipeline.configure("")
    assert "notify.url is not set" in str(pipeline.sensor("notices").skip_message)
