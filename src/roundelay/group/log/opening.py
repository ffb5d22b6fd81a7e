"""How a primary view opens: offers, the log that all adopt, and who holds it.

Each member tells what its log held as the view was installed. With the offers of all members that
have journals, everybody computes the same: the best log is adopted, its length is the base of the
new term. A member that holds it, and the mark of the term, on its disk is ready; once a majority
of the voters is, the view is open.

This module only counts and decides; `log` does what follows.
"""

from hashlib import blake2b

from roundelay.core.ids import NodeId, View
from roundelay.core.log import LOG_ID_BYTES, Mark, Place
from roundelay.core.value import value
from roundelay.group.log.messages import Offer, Ready


@value
class Adopted:
    """The log that a view goes on with."""

    log: bytes
    """Its id; empty if there is none yet: the view founds one."""
    generation: int
    place: Place
    digest: int
    donors: tuple[NodeId, ...]
    """Members that held it as the view was installed."""
    contradicts: tuple[NodeId, ...]
    """Members that hold another log, or another one at the same place."""


class Opening:
    """One primary view on its way to be open, at one member."""

    def __init__(self, node: NodeId, view: View, journals: tuple[NodeId, ...]) -> None:
        self.view = view
        self.journals = journals
        """The members that have journals, in their order."""
        self.offers: dict[NodeId, Offer] = {}
        self.adopted: Adopted | None = None
        self.ready: dict[NodeId, int] = {}
        """Members that are ready, and the base that they tell."""
        self.is_open = False
        """A majority of the voters was ready, as far as this node knows."""
        self.contested = False
        """Members contradict what they said, or what others computed from it: somebody forges
        frames, and this view may wait in vain."""
        self._node = node
        self._shown_offer: set[NodeId] = {node}
        """Members that hold our offer ..."""
        self._shown_ready: set[NodeId] = {node}
        """... and that know that we are ready."""

    # Offers

    def offer(self, node: NodeId, m: Offer) -> str:
        """Take in the offer of a member, our own too; why it cannot be true, or an empty text."""
        if len(m.have) != len(self.view.members):
            return "an offer with a bit for nobody"
        if node not in self.journals:
            return "an offer of a member without a journal"
        if m.have[self.view.members.index(self._node)]:
            self._shown_offer.add(node)
        known = self.offers.get(node)
        if known is None:
            if m.place.term >= self.view.id:
                return "an offer of a term that is yet to come"
            self.offers[node] = m
        elif _content(known) != _content(m):
            self.contested = True
            return "another offer of the same member"
        return ""

    @property
    def have(self) -> tuple[bool, ...]:
        """Of which members we hold the offers."""
        return tuple([member in self.offers for member in self.view.members])

    @property
    def missing(self) -> tuple[NodeId, ...]:
        """Members whose offers we lack."""
        return tuple([member for member in self.journals if member not in self.offers])

    @property
    def offered(self) -> bool:
        """Whether all members hold our offer."""
        return self._shown_offer.issuperset(self.journals)

    def adopt(self, able: tuple[NodeId, ...]) -> Adopted:
        """The best log of those offered: of the best generation, the latest term, the greatest
        length. Where there are logs of different ids, that of the able members counts: they were in
        the primary views before this one."""
        offers = self.offers
        some = [node for node in self.journals if offers[node].log]
        if not some:
            self.adopted = Adopted(b"", 0, Place(), 0, self.journals, ())
            return self.adopted
        best = max([n for n in some if n in able] or some, key=lambda n: _rank(offers[n]))
        log = offers[best].log
        ours = [node for node in some if offers[node].log == log]
        best = max(ours, key=lambda n: _rank(offers[n]))
        offer = offers[best]
        equals = [node for node in ours if _rank(offers[node]) == _rank(offer)]
        others = [node for node in some if offers[node].log != log]
        if any(offers[node].digest != offer.digest for node in equals):
            others += equals
        donors = tuple(equals)
        self.adopted = Adopted(
            log, offer.generation, offer.place, offer.digest, donors, tuple(sorted(others))
        )
        return self.adopted

    def mark(self, group: str) -> Mark:
        """The mark of the term that this view begins, the same at all members."""
        adopted, view = self.adopted, self.view
        assert adopted is not None, "a mark before there is a base"
        sessions = tuple([self._session(member) for member in view.members])
        log = adopted.log or new_log(group, view, sessions)
        place = adopted.place
        return Mark(
            view.id,
            place.length,
            view.voters,
            view.members,
            sessions,
            adopted.generation,
            log,
            opened=place.opened,
        )

    def _session(self, member: NodeId) -> int:
        offer = self.offers.get(member)
        return 0 if offer is None else offer.session

    # Ready

    def note_ready(self, node: NodeId, m: Ready) -> str:
        """Take in that a member is ready; why that cannot be true, or an empty text."""
        members = self.view.members
        if len(m.have) != len(members) or len(m.ready) != len(members):
            return "readiness with a bit for nobody"
        if node not in self.journals:
            return "a member without a journal says that it is ready"
        if self.adopted is not None and m.base != self.adopted.place.length:
            self.contested = True
            return "a member is ready at another base"
        me = members.index(self._node)
        if m.have[me]:
            self._shown_offer.add(node)
        if m.ready[me]:
            self._shown_ready.add(node)
        self.ready.setdefault(node, m.base)
        return ""

    @property
    def known_ready(self) -> tuple[bool, ...]:
        return tuple([member in self.ready for member in self.view.members])

    @property
    def readiness_is_known(self) -> bool:
        """Whether all members know that we are ready."""
        return self._shown_ready.issuperset(self.journals)

    @property
    def quorum(self) -> bool:
        """Whether a majority of the voters is ready at the base that we know."""
        if self.adopted is None:
            return False
        base = self.adopted.place.length
        ready = sum(self.ready.get(voter) == base for voter in self.view.voters)
        return 2 * ready > len(self.view.voters)

    @property
    def why(self) -> str:
        """For people: what the opening waits for."""
        if self.missing:
            return f"waits for the offers of {', '.join(self.missing)}"
        absent = [voter for voter in self.view.voters if voter not in self.ready]
        needed = len(self.view.voters) // 2 + 1 - (len(self.view.voters) - len(absent))
        return f"waits for {needed} more of {', '.join(absent)} to hold the log"


def new_log(group: str, view: View, sessions: tuple[int, ...]) -> bytes:
    """The id of a log that a view founds."""
    numbers = b"".join([session.to_bytes(8) for session in sessions])
    text = f"{group}/{view.id}/".encode()
    return blake2b(text + numbers, digest_size=LOG_ID_BYTES).digest()


def _rank(offer: Offer) -> tuple[int, Place]:
    return offer.generation, offer.place


def _content(offer: Offer) -> tuple[object, ...]:
    """What an offer says of the log of its sender, which does not change."""
    return offer.log, offer.generation, offer.place, offer.digest, offer.session
