"""What following plans costs at a rebalance."""

import pytest

from benchmarks.consumers import CLIENTS, Client
from benchmarks.rebalance import GOALS, Cost, measure
from fairlead.sandbox import Services


@pytest.mark.kafka
@pytest.mark.test_long(
    guarded_by="tests/fairlead/followers/test_clients.py::test_plan_of_five_megabytes_is_adopted"
)
@pytest.mark.parametrize("client", CLIENTS)
def test_rebalance_with_plans_is_nearly_as_fast_as_range(
    services: Services, client: Client
) -> None:
    """Ten members, from the last one's join until all are assigned, plain and following in turns.

    What else the machine does comes between: the claim holds when one of five looks finds it so.
    """
    looks: list[Cost] = []
    while len(looks) < 5 and not any(look.ratio <= GOALS[client] for look in looks):
        servers = services.bootstrap_servers
        looks.append(measure(servers, client, 10, rounds=5, heartbeat_s=0.1))
    assert any(look.ratio <= GOALS[client] for look in looks), looks
