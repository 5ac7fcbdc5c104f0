"""Two people in two browsers decide on plans that need two approvers.

Real consumers follow the plans. Each browser sends the headers that a proxy would add.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import Browser, Page, expect

from fairlead.domain.policy import Policy
from fairlead.domain.records import StoredPlan
from fairlead.kafka.gateway import KafkaGateway
from fairlead.kafka.plan_topic import PlanTopic
from fairlead.sandbox import Services
from fairlead.settings import KafkaSettings, Settings, WebSettings
from fairlead.store.engine import create_store_engine
from fairlead.store.plans import PlanStore
from fairlead.surfaces.web import build_app
from fairlead.wire.document import MemberShare
from fairlead.workflows.delivery import PublishOptions
from fairlead.workflows.page_acts import take_up
from fairlead.workflows.reconciling import reconcile
from tests.conftest import KafkaTopic
from tests.fairlead.followers.helpers import Fleet, Member
from tests.fixtures.plans import make_draft, make_metrics
from tests.lengths import form
from tests.logins import logins
from tests.serving import serving
from tests.stored import record_plan
from tests.ui.conftest import HEIGHT, PATIENCE_MS, WIDTH, create_topic, keep
from tests.ui.running import free_port
from tests.ui.test_person import assert_open_to_all
from tests.waiting import PATIENCE_S, eventually

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

SECRET = "s" * 40
LEASE = timedelta(seconds=3)
#: Duration of the freeze. Because clocks may differ, plan followers keep a plan for a minute after
#: its lease. Therefore only the long form shows that the lease is renewed during the freeze.
HELD = form(short=2 * LEASE, long=LEASE + timedelta(seconds=75))
POLICIES = (Policy(four_eyes="proxy"),)
NAMES = ("worker-1", "worker-2")
FIRST = ([0], [1, 2, 3])
SECOND = ([0, 1, 2], [3])


@dataclass
class Team:
    """A group of plan followers, its planner, and web pages on which people decide.

    Parameters
    ----------
    planner, gateway, topic
        The planner's store, Kafka gateway and plan topic.
    fleet, members, records
        The group, its consumers by name, and the topic that they read.
    address
        Address of the web pages.
    """

    planner: PlanStore
    gateway: KafkaGateway
    topic: PlanTopic
    fleet: Fleet
    members: dict[str, Member]
    records: str
    address: str

    def propose(self, snapshot: str, shares: tuple[list[int], ...]) -> StoredPlan:
        """Store a proposed plan that needs two approvers."""
        members = {
            name: MemberShare((self.records,), {self.records: np.array(share, np.int32)})
            for name, share in zip(NAMES, shares, strict=True)
        }
        moves = pa.table(
            {
                "topic": [self.records],
                "partition": pa.array([1], pa.int32()),
                "previous_member": [NAMES[0]],
                "member": [NAMES[1]],
                "weight": [60_000.0],
                "reason": ["worker-1 has most lag"],
            }
        )
        draft = make_draft(
            snapshot,
            group=self.fleet.group,
            snapshot_at=datetime.now(UTC),
            expires_at=None,
            four_eyes="proxy",
            partition_counts={self.records: 4},
            members=members,
            weights={self.records: np.ones(4)},
            moves=moves,
            observed=make_metrics(forecast_time_lag_s=900.0),
            predicted=make_metrics(
                lag_max=110_000, gap=0.05, kept=2, moved=1, forecast_time_lag_s=20.0
            ),
        )
        return record_plan(self.planner, draft)

    def work(self) -> None:
        """Carry out requests of web pages and publish approved plans, as the sensor does."""
        groups, options, now = [self.fleet.group], PublishOptions(LEASE), datetime.now(UTC)
        take_up(
            self.planner,
            groups,
            policies=POLICIES,
            live=self.gateway.live_group,
            topic=self.topic,
            options=options,
            now=now,
        )
        list(
            reconcile(
                self.planner,
                groups,
                live=self.gateway.live_groups,
                topic=self.topic,
                options=options,
                now=now,
            )
        )

    def state(self, version: int) -> str:
        """Return the state of a version of the plan."""
        return self.planner.get(self.fleet.group, version).state

    def follow(self, shares: tuple[list[int], ...]) -> bool:
        """Return whether the consumers own exactly these partitions."""
        owned = (self.members[name].owned for name in NAMES)
        return [sorted(member.get(self.records, [])) for member in owned] == [*shares]


@pytest.fixture
def team(services: Services, kafka_topic: KafkaTopic, migrated: str) -> Iterator[Team]:
    """Return a group of two plan followers, its planner, and the web pages."""
    plans = kafka_topic(config={"cleanup.policy": "compact"})
    records = "refunds"  # the pictures of the documentation show this name
    create_topic(services, records, partitions=4)
    kafka = KafkaSettings(
        bootstrap_servers=services.bootstrap_servers,
        plan_topic=plans,
        request_timeout_s=PATIENCE_S,
    )
    port = free_port()
    with ExitStack() as stack:
        make = stack.enter_context(logins(migrated))
        engines = {
            role: create_store_engine(make(role, name=role))
            for role in ("fairlead_planner", "fairlead_web")
        }
        for engine in engines.values():
            stack.callback(engine.dispose)
        url = f"http://127.0.0.1:{port}"
        web = WebSettings.model_validate({"url": url, "header": {"secret": SECRET}})
        settings = Settings(web=web, policies=POLICIES)
        stack.enter_context(serving(build_app(engines["fairlead_web"], settings), port=port))
        fleet = Fleet(services, records, plans, [records])
        stack.callback(fleet.close)
        members = {name: fleet.join(name) for name in NAMES}
        eventually(
            lambda: all(member.owned.get(records) for member in members.values()), "they settle"
        )
        yield Team(
            PlanStore(engines["fairlead_planner"]),
            stack.enter_context(KafkaGateway(kafka)),
            stack.enter_context(PlanTopic(kafka)),
            fleet,
            members,
            records,
            url,
        )


@pytest.fixture
def people(browser: Browser) -> Iterator[tuple[Page, Page]]:
    """Return two browser pages that send the proxy's headers for different people."""
    with ExitStack() as stack:

        def open_for(name: str) -> Page:
            context = browser.new_context(
                viewport={"width": WIDTH, "height": HEIGHT},
                locale="en-US",
                extra_http_headers={"X-Forwarded-Email": name, "X-Fairlead-Secret": SECRET},
            )
            context.set_default_timeout(PATIENCE_MS)
            stack.callback(context.close)
            return context.new_page()

        expect.set_options(timeout=PATIENCE_MS)
        yield open_for("Kim@example.com"), open_for("lee@example.com")


def step(
    page: Page,
    address: str,
    link: str,
    button: str,
    *,
    reason: str,
    stored: str = "",
    picture: str = "",
) -> None:
    """Open a page, follow an action's link, send the form with a reason, and check the result.

    The result shows the `stored` reason: by default, the reason of this form.
    """
    page.goto(address)
    page.get_by_role("link", name=link, exact=True).click()
    page.get_by_label("Reason").fill(reason)
    if picture:
        keep(page, picture, whole=True)
        assert_open_to_all(page)
    page.get_by_role("button", name=button).click()
    expect(page.get_by_text(f": {stored or reason}.").first).to_be_visible()
    if picture:
        assert_open_to_all(page)


@pytest.mark.test_long(
    guarded_by="tests/fairlead/surfaces/web/test_acting.py::test_two_people_agree"
)
def test_two_people_approve_freeze_unfreeze_and_roll_back(
    team: Team, people: tuple[Page, Page]
) -> None:
    """Each action needs the requests of both people, except a freeze, which needs one.

    Consumers follow the resulting plans.
    """
    kim, lee = people
    group = f"{team.address}/group?group={team.fleet.group}"
    review = f"{team.address}/review?group={team.fleet.group}&version="

    team.propose("s1", FIRST)
    step(kim, f"{review}1", "Approve", "Approve", reason="it relieves worker-1")
    expect(kim.get_by_text("another person must request the same")).to_be_visible()
    # The second request of the same person does not count. The page shows the first reason.
    again = {"reason": "once more", "stored": "it relieves worker-1"}
    step(kim, f"{review}1", "Approve", "Approve", **again)
    team.work()
    assert team.state(1) == "proposed"
    step(lee, f"{review}1", "Approve", "Approve", reason="agreed with Kim", picture="act-approve")
    team.work()
    assert team.state(1) == "published"
    eventually(lambda: team.follow(FIRST), "the plan is followed")

    team.propose("s2", SECOND)
    for page in (kim, lee):
        step(page, f"{review}2", "Approve", "Approve", reason="the second")
    step(kim, group, "Freeze", "Freeze", reason="incident 4711", picture="act-freeze")
    lease = team.planner.get(team.fleet.group, 1).lease_until
    assert lease is not None
    until = datetime.now(UTC) + HELD
    while datetime.now(UTC) < until:
        team.work()
        assert team.follow(FIRST)
        time.sleep(0.2)  # clock: the pause between ticks of the sensor
    now = team.planner.get(team.fleet.group, 1).lease_until
    assert now is not None
    assert now > lease + HELD / 2
    assert (team.state(1), team.state(2)) == ("published", "approved")
    lee.goto(group)
    expect(lee.get_by_text("incident 4711").first).to_be_visible()
    expect(lee.get_by_text("wait: frozen")).to_be_visible()
    keep(lee, "act-frozen")

    step(lee, group, "Unfreeze", "Unfreeze", reason="it is over")
    team.work()
    assert team.state(2) == "approved"
    step(kim, group, "Unfreeze", "Unfreeze", reason="over, too")
    team.work()
    assert (team.state(1), team.state(2)) == ("superseded", "published")
    eventually(lambda: team.follow(SECOND), "the second plan is followed")

    step(
        kim,
        f"{review}1",
        "Roll back to version 1",
        "Roll back to",
        reason="worker-1 got slow",
        picture="act-back",
    )
    team.work()
    kim.reload()
    expect(kim.get_by_text("version 3, which goes back to version 1")).to_be_visible()
    keep(kim, "act-answered")
    step(lee, f"{review}3", "Approve", "Approve", reason="it did")
    team.work()
    assert (team.state(2), team.state(3)) == ("superseded", "published")
    eventually(lambda: team.follow(FIRST), "the way back is followed")
