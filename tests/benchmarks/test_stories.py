"""Diagnoses for the stories, which are groups rebuilt from public reports."""

import pytest

from benchmarks.stories.__main__ import mark
from benchmarks.stories.answers import Right, Story
from benchmarks.stories.collected import COLLECTED
from benchmarks.stories.later import LATER
from benchmarks.stories.reported import REPORTED
from benchmarks.stories.retold import RETOLD
from benchmarks.stories.varied import VARIED

_STORIES = [*RETOLD, *REPORTED, *COLLECTED, *LATER, *VARIED]
#: Stories for which the answer is still wrong, with the reason.
_WRONG = {
    "one-broker-throttles": "Three quarters of a partition are read: commits alone do not exclude "
    "that its records are a third more expensive.",
    "a-dump-seen-once": "The last sample counts as the present rate, as when an increase lasts.",
    "warm-up-after-a-deploy": "The mean speed of the newest steps counts, although each of them is "
    "faster than the one before.",
    "out-of-memory-every-five-minutes": "A consumer that stops and starts again counts as fast as "
    "when it runs, because a pause that is over is not a speed.",
    "rate-limit-for-the-whole-pipeline": "Consumers got slower when one more joined: expensive "
    "partitions explain that as well as a limit that all share.",
    "one-of-three-control-partitions": "Three quarters of a partition are read, as in "
    "one-broker-throttles.",
    "no-assignment-after-broker-restart": "If no partition has a known owner, owners may be "
    "unreadable.",
}


def test_every_story_has_a_unique_name_and_a_source() -> None:
    assert len({story.name for story in _STORIES}) == len(_STORIES)
    assert all(story.source.startswith("https://") for story in _STORIES)


@pytest.mark.parametrize("story", _STORIES, ids=[story.name for story in _STORIES])
def test_story_is_answered_right(story: Story) -> None:
    """The answer is wrong for the stories in `_WRONG`, and right for all other stories."""
    assert bool(mark(story).faults) == (story.name in _WRONG)


@pytest.mark.parametrize(
    ("right", "faults"),
    [
        (Right("", "healthy|recovering", says=("behind",), never=("stuck",)), []),
        (Right("", "!stuck partition", names="t-0", also="t-1"), []),
        (Right("", "healthy"), ["diagnosis"]),
        (Right("", "!recovering"), ["diagnosis"]),
        (Right("", "recovering", names=""), ["names"]),
        (Right("", "recovering", names="t-0 t-1"), ["names"]),
        (Right("", "recovering", plan=True), ["plan"]),
        (Right("", "recovering", places=True), ["partitions without an owner"]),
        (Right("", "recovering", more=(None, 0)), ["1 more consumers"]),
        (Right("", "recovering", says=("owner",)), ["does not say 'owner'"]),
        (Right("", "recovering", never=("BEHIND",)), ["says 'BEHIND'"]),
    ],
)
def test_each_part_of_an_answer_is_compared(right: Right, faults: list[str]) -> None:
    answer = {
        "diagnosis": "recovering",
        "names": ["t-0"],
        "outcome": "no change",
        "evidence": "t-0 is 8 min behind.",
        "consumers": {"now": 2, "wanted": 3},
    }
    assert right.faults({"topics": {"t": 2}}, answer) == faults
