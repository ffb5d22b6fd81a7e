"""What sealed traffic promises, watched while a run goes on: of all that is opened, somewhere.

- It was sealed by a host of the group, byte for byte.
- It was sent at most five seconds ago.
- Each incarnation of a host opens it once at most.
- Once something of a boot was opened, nothing of an earlier boot of the same node is.
"""

from typing import TYPE_CHECKING

from roundelay.core.ids import NodeId
from roundelay.sim.intruder import OLD_NS

if TYPE_CHECKING:
    from roundelay.sim.world import World

Life = tuple[NodeId, int]


class SealWatch:
    """Is told of everything that hosts open, and raises AssertionError at the first breach."""

    def __init__(self) -> None:
        self._opened: dict[Life, set[bytes]] = {}
        """By host and incarnation: headers of what it opened."""
        self._newest: dict[tuple[Life, NodeId], int] = {}
        """By host, its incarnation, and sender: the newest incarnation that was believed."""

    def opens(self, world: "World", node: NodeId, data: bytes) -> None:
        assert world.capture is not None
        captured = world.capture.sent(data)
        assert captured is not None, f"{node} has opened what nobody has sealed"
        life = (node, world.hosts[node].incarnation)
        sender, incarnation = captured.life
        age_ns = world.loop.now - captured.time_ns
        assert age_ns <= OLD_NS, f"{node} has opened what {sender} sent {age_ns / 1e9:.3f} s ago"
        header, opened = data[:36], self._opened.setdefault(life, set())
        assert header not in opened, f"{node} has opened the same datagram of {sender} twice"
        opened.add(header)
        newest = self._newest.get((life, sender), incarnation)
        assert incarnation >= newest, f"{node} believes a dead incarnation of {sender}"
        self._newest[life, sender] = incarnation
