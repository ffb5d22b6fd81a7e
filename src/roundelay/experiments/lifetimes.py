"""How long the messages of a group live, from the rows of a run as they are written; none is kept.

A message that counts is born when the application hands it over. It is delivered when the last
member has delivered it, and stable when the last member has learnt that all have it: both times
run from its birth, waiting for a token or for a number included.
"""

from collections import Counter

from roundelay.core.effects import Kind
from roundelay.trace.schema import LOWER_LAYER, Row


class _Life:
    """A message that is not yet stable everywhere."""

    __slots__ = ("born", "undelivered", "unstable")

    def __init__(self, born: int, members: int) -> None:
        self.born = born
        self.undelivered = members
        self.unstable = members


class Lifetimes:
    """Sums over the messages that count, and counts of what members did while `counting`.

    For runs in which a row tells of one message.
    """

    def __init__(self, members: int) -> None:
        self.counting = False
        self.delivered = 0
        """Messages that everybody has delivered."""
        self.delivery_ns = 0
        """The sum of their times."""
        self.stable = 0
        """Messages that everybody knows to be stable."""
        self.stability_ns = 0
        self.alive: dict[tuple[int | None, int | None], _Life] = {}
        """By sender and number, messages that count and are not stable everywhere."""
        self.originated: Counter[int] = Counter()
        """By member: messages that it broadcast."""
        self.released: Counter[int] = Counter()
        """By member: how often it handed on the token."""
        self._members = members

    def submitted(self, member: int, number: int, time_ns: int) -> None:
        """A message that counts is handed over."""
        self.alive[member, number] = _Life(time_ns, self._members)

    def append(self, row: Row) -> None:
        """Take the next row of the run."""
        kind = row.kind
        if row.layer == LOWER_LAYER:
            return
        if kind == Kind.DELIVER:
            life = self.alive.get((row.m_src, row.m_seq))
            if life is not None:
                life.undelivered -= 1
                if not life.undelivered:
                    self.delivered += 1
                    self.delivery_ns += row.t_ns - life.born
        elif kind == Kind.STABLE:
            message = row.m_src, row.m_seq
            life = self.alive.get(message)
            if life is not None:
                life.unstable -= 1
                if not life.unstable:
                    self.stable += 1
                    self.stability_ns += row.t_ns - life.born
                    del self.alive[message]
        elif self.counting:
            if kind == Kind.TOKEN and row.tag == "release":
                self.released[row.proc] += 1
            elif kind == Kind.ORIGINATE:
                self.originated[row.proc] += 1
