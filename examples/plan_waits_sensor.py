"""A Dagster sensor that reports plans that wait for approval. Replace `send` with your own.

Set the environment variable READER_URL to the URL of Fairlead's database, such as
postgresql://reader@localhost/fairlead, for a login with the role fairlead_reader.
"""

import json
import os
from urllib.parse import urlencode

import dagster as dg
import psycopg

# Address at which people reach the pages of `fairlead serve`.
PAGES = "http://localhost:9464"
# Omits plans that are younger than a minute, because a policy may still approve them automatically.
WAITING = """
SELECT group_id, version, reason
FROM fairlead.plan_history
WHERE state = 'proposed' AND NOT shadow AND proposed_at < now() - interval '1 minute'
ORDER BY proposed_at, group_id
"""


def send(text: str) -> None:
    """Print the text. If this function raises an error, the next tick sends the text again."""
    # With dagster-slack: add `resources={"slack": SlackResource(token=...)}` to Definitions, give
    # the sensor an argument `slack: SlackResource`, and pass it on to this function, which calls
    # `slack.get_client().chat_postMessage(channel="#kafka", text=html.escape(text, quote=False))`.
    print(text)


@dg.sensor(minimum_interval_seconds=60, default_status=dg.DefaultSensorStatus.RUNNING)
def plans_that_wait(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Send one text about all waiting plans that have not been reported yet."""
    with psycopg.connect(os.environ["READER_URL"]) as connection:
        waiting = connection.execute(WAITING).fetchall()
    reported = json.loads(context.cursor or "[]")
    new = [plan for plan in waiting if [plan[0], plan[1]] not in reported]
    if new:
        send(
            "\n".join(
                f"Version {version} of the plan of group {group} waits for a decision: {reason} "
                f"{PAGES}/review?{urlencode({'group': group, 'version': version})}"
                for group, version, reason in new
            )
        )
    context.update_cursor(json.dumps([[group, version] for group, version, _ in waiting]))
    return dg.SkipReason(f"Plans that wait: {len(waiting)}, of which new: {len(new)}.")


defs = dg.Definitions(sensors=[plans_that_wait])
