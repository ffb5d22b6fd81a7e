"""What the application has not read: when the group slows down, and which frames are refused."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from roundelay.membership.messages import FIRST_TAG
from roundelay.runtime.backlog import SLOW_BYTES, SLOW_PACKETS, SMALL_FRAME_BYTES, Backlog
from roundelay.runtime.inbox import Inbox
from roundelay.runtime.node_log import NodeLog
from roundelay.wire.frame import Frame

MOST = 1_000_000
ENGINE_TAG = 1


class Scene:
    """A backlog whose parts a test sets as it likes. A message is the number of its packets."""

    def __init__(self) -> None:
        self.inbox = Inbox()
        self.core = SimpleNamespace(incomplete_bytes=0)
        self.sending = SimpleNamespace(awaited=False)
        self.log = NodeLog("g", "a", 0.4)
        self.backlog = Backlog(
            self.inbox,
            cast("Any", self.core),
            cast("Any", self.sending),
            MOST,
            lambda message: int(message),
            self.log,
        )

    def unread(self, packets: int, size: int) -> None:
        self.inbox.waiting.extend(cast("Any", [None] * packets))
        self.inbox.bytes = size

    def refuses(self, packets: int = 1, size: int = 1400, tag: int = ENGINE_TAG) -> bool:
        frame = Frame(cast("Any", None), 0, 0, tag, packets, size)
        return self.backlog.refuses(frame)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_node_is_backlogged_by_many_packets_or_by_many_bytes(scene: Scene) -> None:
    slow_bytes = min(SLOW_BYTES, MOST // 2)
    scene.unread(SLOW_PACKETS, slow_bytes)
    assert not scene.backlog.backlogged()
    scene.unread(1, slow_bytes)
    assert scene.backlog.backlogged()
    scene.inbox.waiting.clear()
    scene.unread(1, slow_bytes + 1)
    assert scene.backlog.backlogged()


def test_a_node_is_never_backlogged_while_its_application_waits_for_the_group(scene: Scene) -> None:
    scene.unread(SLOW_PACKETS + 1, MOST)
    scene.sending.awaited = True
    assert not scene.backlog.backlogged()


def test_pieces_of_large_messages_count_but_do_not_block_those_that_complete_them(
    scene: Scene,
) -> None:
    scene.core.incomplete_bytes = 2 * MOST
    assert scene.backlog.unread_bytes == 2 * MOST
    assert not scene.refuses()  # Nothing waits to be read: the frame may complete a message.
    scene.unread(1, 0)
    assert scene.refuses()


def test_frames_that_bring_packets_are_refused_when_there_is_no_room(scene: Scene) -> None:
    scene.unread(1, MOST + 1)
    assert scene.refuses()
    assert scene.refuses(size=SMALL_FRAME_BYTES)
    assert scene.backlog.refused == 2
    assert "packets are refused" in scene.log.warnings()[0]


def test_tokens_and_membership_always_pass(scene: Scene) -> None:
    scene.unread(SLOW_PACKETS + 1, 2 * MOST)
    assert not scene.refuses(packets=0, size=SMALL_FRAME_BYTES)
    assert not scene.refuses(tag=FIRST_TAG)
    assert scene.backlog.refused == 0


def test_the_reserve_is_for_small_frames_and_for_an_application_that_waits(scene: Scene) -> None:
    scene.unread(SLOW_PACKETS + 1, MOST - 1)
    assert scene.refuses()
    assert not scene.refuses(size=SMALL_FRAME_BYTES)
    scene.sending.awaited = True
    assert not scene.refuses()
