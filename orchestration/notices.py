"""The sensor that tells people what happens, by the webhook of the settings.

Belongs here: when it sends. Does not: what is told, and how (`fairlead.surfaces.notices`).
"""

import dagster as dg

from assets.about import about
from assets.resources import SettingsResource, StoreResource
from fairlead.common.words import plural
from fairlead.surfaces.notices.sending import tell
from orchestration.outages import skip_while_away


@dg.sensor(
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Tells people by the webhook of notify.url that a plan waits for them, that one "
    "made a group worse, of brakes, and of groups that are overloaded or lose records.",
    **about("history"),
)
@skip_while_away
def notices(
    context: dg.SensorEvaluationContext, store: StoreResource, settings: SettingsResource
) -> dg.SkipReason:
    """Send what is due, for a quarter of a minute at most."""
    current = settings.get()
    with store.connect() as engine:
        told = tell(engine, current)
    for line in told.given_up:
        context.log.warning("Given up after three days: %s", line)
    if current.notify.url is None:
        return dg.SkipReason("Nobody is told anything: notify.url is not set.")
    sent = f"Sent {plural(told.sent, 'message')}"
    return dg.SkipReason(f"{sent}; then {told.failed}." if told.failed else f"{sent}.")
