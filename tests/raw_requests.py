"""Send single requests of the group protocol, such as JoinGroup, without a consumer."""

from typing import Any, Final

from kafka.admin import KafkaAdminClient
from kafka.protocol.consumer import JoinGroupRequest, SyncGroupRequest

from tests.waiting import eventually

#: Error codes while the group's coordinator moves, which may happen on a busy machine.
_COORDINATOR_MOVES: Final = {14, 15, 16}


def ask(admin: KafkaAdminClient, request: Any) -> Any:
    """Send a request, and repeat it while the group's coordinator moves; return the response."""
    answer: Any = None

    def answered() -> bool:
        nonlocal answer
        answer = admin._manager.run(admin._manager.send, request)  # noqa: SLF001 - no public way to misbehave
        return getattr(answer, "error_code", 0) not in _COORDINATOR_MOVES

    eventually(answered, "the group has a coordinator")
    assert getattr(answer, "error_code", 0) == 0
    return answer


def join_group(admin: KafkaAdminClient, group: str, metadata: bytes, session_ms: int) -> Any:
    """Join a group as a new member; return the response, with its member id and generation."""
    return ask(
        admin,
        JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=session_ms,
            member_id="",
            protocol_type="consumer",
            protocols=[("range", metadata)],
            max_version=3,  # in later versions, a member must first request its id
        ),
    )


def sync_group(admin: KafkaAdminClient, group: str, joined: Any, assignment: bytes) -> None:
    """Assign partitions to the only member of a group."""
    ask(
        admin,
        SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=[(joined.member_id, assignment)],
            max_version=2,
        ),
    )
