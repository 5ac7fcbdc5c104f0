"""Steps are retried if a broker does not answer, but not if a setting is wrong."""

import dagster as dg
import pytest

from assets.partitions import COHORT
from assets.retry_policy import CANNOT_HEAL, RETRIES
from assets.steps import step
from fairlead.errors import FairleadError, KafkaUnavailableError, StoreUnavailableError

AT_ONCE = dg.RetryPolicy(max_retries=RETRIES.max_retries)


def ended(result: dg.ExecuteInProcessResult) -> tuple[int, str]:
    """Return the number of retries of a failed job, and the message of its error."""
    (failure,) = (event for event in result.all_events if event.is_step_failure)
    error = failure.step_failure_data.error
    assert error is not None
    error = error.cause or error
    return sum(event.is_step_restarted for event in result.all_events), error.message


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        *((kind, 0) for kind in CANNOT_HEAL),
        (KafkaUnavailableError, RETRIES.max_retries),
        (StoreUnavailableError, RETRIES.max_retries),
    ],
)
def test_temporary_errors_are_retried(
    error: type[FairleadError], attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step is retried if a service does not answer, but not if a person must fix the error."""
    monkeypatch.setattr("assets.steps.RETRIES", AT_ONCE)

    @step(group_name="test", kinds=set(), changed="nothing", description="Fails.")
    def failing() -> None:
        raise error("so it is")

    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(COHORT, ["orders"])
        result = dg.materialize(
            [failing], instance=instance, partition_key="orders", raise_on_error=False
        )
    tried, message = ended(result)
    assert tried == attempts
    assert "so it is" in message
