"""The runs of an audit of ST: who sends what to whom, and who misses it.

A case has a few messages, each to some members. Every copy is lost with the same probability, but
a sender always hears itself. Copies for members that a message is not for are lost as well: they
are no loss to anybody, but members that miss them know less. Nothing else is lost: not what members
say without a message, and no message that is sent again.
"""

from collections.abc import Iterator
from random import Random

from roundelay.core.value import value

MESSAGES = 10
"""In each run."""
GAPS_US = (0, 5, 20, 60)
"""Time between two messages, one of these: less than a frame takes, so that their senders have not
heard each other, or more."""


@value
class Sent:
    """One message. Members are numbered by their place, from 0."""

    at_us: int
    source: int
    to: tuple[int, ...]
    missed: tuple[int, ...]
    """By whom, whether it is for them or not."""

    @property
    def lost(self) -> tuple[int, ...]:
        """By whom, of those that it is for."""
        return tuple(member for member in self.missed if member in self.to)


@value
class Case:
    """One run."""

    number: int
    size: int
    loss_percent: float
    messages: tuple[Sent, ...]

    @property
    def losses(self) -> int:
        """Copies that those lack whom they are for."""
        return sum(len(sent.lost) for sent in self.messages)


def draw(number: int, size: int, loss_percent: float) -> Case:
    """The case of that number, always the same: the first that chance gives in which somebody
    misses a message that is for it."""
    random = Random(f"roundelay/audit st/{size}/{loss_percent:g}/{number}")
    while True:
        case = Case(number, size, loss_percent, tuple(_messages(random, size, loss_percent)))
        if case.losses:
            return case


def _messages(random: Random, size: int, loss_percent: float) -> Iterator[Sent]:
    members = range(size)
    at_us = 1000
    for _ in range(MESSAGES):
        source = random.randrange(size)
        to = tuple(sorted(random.sample(members, random.randint(1, size))))
        lost = [random.random() < loss_percent / 100 for _ in members]
        yield Sent(at_us, source, to, tuple(m for m in members if m != source and lost[m]))
        at_us += random.choice(GAPS_US)
