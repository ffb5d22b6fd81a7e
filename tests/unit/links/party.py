"""Links of one view on a network that the test owns: nothing moves unless it says so."""

from roundelay.core.contract import Origin
from roundelay.core.effects import CancelTimer, Send, SetTimer, Suspect
from roundelay.core.ids import NodeId, View, ViewId
from roundelay.links.ledger import AHEAD_MAX
from roundelay.links.link import Link, LinkConfig
from roundelay.links.messages import LinkCodec, Message
from roundelay.wire.primitives import Reader, Writer


def write_text(text: str, before: bytes) -> bytes:
    w = Writer()
    w.text(text)
    return before + w.done()


def read_text(data: bytes, start: int) -> str:
    r = Reader(data, start)
    text = r.text()
    r.done()
    return text


CODEC = LinkCodec(write_text, read_text)
NAMES = ("a", "b", "c", "d", "e")


class Party:
    """Some links, the frames between them, their timers, and what each has taken."""

    def __init__(self, size: int = 3, **options: int) -> None:
        self.view = View(ViewId(8, "a"), NAMES[:size])
        self.config = LinkConfig(**options)
        self.links = [Link(self.view, name, CODEC, self.config) for name in self.view.members]
        self.flying: list[tuple[NodeId, int, Message[str]]] = []
        """Sender, receiver and frame of every copy under way."""
        self.armed: list[dict[str, float]] = [{} for _ in self.links]
        self.taken: list[list[list[str]]] = [[[] for _ in self.links] for _ in self.links]
        """By member and sender."""
        self.settled: list[list[str]] = [[] for _ in self.links]
        self.suspects: list[Suspect] = []
        self.sent: list[list[str]] = [[] for _ in self.links]
        for member in range(size):
            self._run(member)

    def say(self, member: int) -> bool:
        """The next content of a member, if its window has room."""
        if not self.links[member].room:
            return False
        text = f"{NAMES[member]}{len(self.sent[member])}"
        self.sent[member].append(text)
        self.links[member].send(text)
        self._run(member)
        return True

    def arrive(self, index: int, copies: int = 1) -> None:
        sender, receiver, message = self.flying.pop(index)
        tag, data = CODEC.encode(message)
        for _ in range(copies):
            self.hear(receiver, sender, CODEC.decode(tag, data, 0))

    def hear(self, member: int, sender: NodeId, message: Message[str]) -> bool:
        said = self.links[member].receive(Origin("g", sender, 0, self.view.id), message)
        self._run(member)
        return said

    def expire(self, member: int, timer: str) -> None:
        if self.armed[member].pop(timer, None) is not None:
            self.links[member].expire(timer)
            self._run(member)

    def settle(self, rounds: int = 60) -> None:
        """Nothing is lost any more, and time passes."""
        for _ in range(rounds):
            while self.flying:
                self.arrive(0)
            for timer in ("missing", "heartbeat"):
                for member in range(len(self.links)):
                    self.expire(member, timer)

    def _run(self, member: int) -> None:
        link = self.links[member]
        for effect in link.out:
            match effect:
                case Send():
                    to = self.view.members if effect.to is None else (effect.to,)
                    others = [n for n in to if n != self.view.members[member]]
                    self.flying += [
                        (self.view.members[member], self.view.members.index(n), effect.message)
                        for n in others
                    ]
                case SetTimer():
                    self.armed[member][effect.timer] = effect.delay_s
                case CancelTimer():
                    self.armed[member].pop(effect.timer, None)
                case Suspect():
                    self.suspects.append(effect)
                case _:
                    raise AssertionError(effect)
        link.out.clear()
        for sender, _, content in link.pop_arrived():
            self.taken[member][sender].append(content)
        self.settled[member] += link.pop_stable()
        self.check()

    def check(self) -> None:
        """What always holds."""
        for member, link in enumerate(self.links):
            ledger = link.ledger
            for sender, held in enumerate(ledger.held):
                taken = self.taken[member][sender]
                assert taken == self.sent[sender][: len(taken)], "each once, in order, no gaps"
                assert len(held) <= self.config.window_packets <= AHEAD_MAX
                lines = [other.ledger.received[sender] for other in self.links]
                assert ledger.stable[sender] <= min(lines), "stable is what all have"
                for number in held:
                    assert ledger.stable[sender] < number
