"""Members of one view that order by slots, on a network that the test owns."""

from collections import deque

from roundelay.protocols.atop.atom import Atom, Stamp, Tag
from roundelay.protocols.atop.slots import Weights, owners

VIEW = 7


class Members:
    """ATOMs of one view, and by receiver and sender what has not arrived."""

    def __init__(self, size: int) -> None:
        self.atoms: list[Atom[str]] = [Atom(VIEW, size, me) for me in range(size)]
        self.flying: list[list[deque[tuple[Tag, str | None]]]] = [
            [deque() for _ in range(size)] for _ in range(size)
        ]
        self.logs: list[list[tuple[str, Stamp]]] = [[] for _ in range(size)]
        self.sent: dict[str, tuple[int, Tag]] = {}
        """By body: its sender and its tag."""
        self.weights: dict[int, Weights] = {0: (1,) * size}
        self.dummies = 0

    def send(self, member: int, *, count: int = 0) -> Tag:
        """Send a content, or a dummy that fills `count` slots."""
        tag = self.atoms[member].stamp(count or 1)
        body = None if count else f"{'pqrstu'[member]}{len(self.sent)}"
        if body is None:
            self.dummies += 1
        else:
            self.sent[body] = (member, tag)
        for receiver, queues in enumerate(self.flying):
            if receiver != member:
                queues[member].append((tag, body))
        self._take(member, member, tag, body)
        return tag

    def distribute(self, weights: Weights) -> None:
        """The first member makes a new distribution."""
        keeper = self.atoms[0]
        number = keeper.newest + 1
        assert keeper.learn(number, weights)
        self.weights[number] = weights

    def arrive(self, receiver: int, sender: int) -> bool:
        """The next content of a sender arrives; False if there is none."""
        queue = self.flying[receiver][sender]
        if not queue:
            return False
        self._take(receiver, sender, *queue.popleft())
        return True

    def arrive_all(self) -> None:
        for receiver, queues in enumerate(self.flying):
            for sender in range(len(queues)):
                while self.arrive(receiver, sender):
                    pass

    def close(self, member: int) -> None:
        self.logs[member] += self.atoms[member].close()

    def _take(self, receiver: int, sender: int, tag: Tag, body: str | None) -> None:
        atom = self.atoms[receiver]
        assert atom.plausible(sender, tag), tag
        self.logs[receiver] += atom.arrive(sender, tag, body)

    def stamp(self, body: str) -> Stamp:
        """The place that follows from the tag of a content and the list of owners alone."""
        sender, tag = self.sent[body]
        owner = owners(VIEW, tag.distribution, self.weights[tag.distribution])
        left, slot = tag.number, 0
        while owner(slot) != sender or left:
            left -= owner(slot) == sender
            slot += 1
        return Stamp(tag.distribution, slot)

    def check_log(self, member: int) -> None:
        """A log is in the order of places, and each content is at its own."""
        log = self.logs[member]
        assert log == sorted(log, key=lambda entry: entry[1])
        for body, stamp in log:
            assert stamp == self.stamp(body)
