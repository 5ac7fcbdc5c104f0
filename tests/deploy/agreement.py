"""Check that plan topic and database agree on the plan of group `carts`. Runs in a container."""

import sys

from fairlead.kafka.plan_topic import PlanTopic
from fairlead.settings import load_settings
from fairlead.store.engine import create_store_engine
from fairlead.store.plans import PlanStore
from fairlead.workflows.differences import differences

if __name__ == "__main__":
    settings = load_settings()
    store = PlanStore(create_store_engine(settings.postgres))
    published = store.published("carts")
    with PlanTopic(settings.kafka) as topic:
        assert differences(store, ["carts"], topic=topic, verifier=None) == []
        record = topic.read("carts")
    assert record is not None
    assert published is None or record.value == published.document
    assert store.outbox().outstanding(["carts"]) == []
    sys.stdout.write(str(0 if published is None else published.version))
