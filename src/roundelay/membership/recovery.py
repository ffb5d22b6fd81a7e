"""Recovery: a ring that is being formed exchanges what its members hold of their old views.

Follows [Totem95] section 7. The members that come from one old view make up its transitional
view; each offers the items of that view that it holds, and after the exchange they hold the same.
The token shows when the exchange is over: its flag is set while any member has items left. Once the
flag stayed clear for three visits, and all members have all items, the ring can be installed.

Deviations: items are always exchanged, whatever earlier attempts achieved; the flag is cleared by
the member that set it, also if that has nothing left to send; members of other old views keep items
only to serve requests for them.
"""

from collections.abc import Mapping, Sequence

from roundelay.core.contract import Item
from roundelay.core.ids import NodeId, View, ViewId
from roundelay.core.value import value
from roundelay.membership.messages import Commit, RingItem
from roundelay.membership.primary import Ruling, rule
from roundelay.membership.ring import NOBODY, Ring, RingConfig, Token


@value
class Step:
    """What a visit of the forming ring's token asks for."""

    sends: tuple[RingItem, ...]
    token: Token
    """To be forwarded."""
    accused: NodeId | None
    """The member that fails to receive, if there is one: then the token is not forwarded."""
    install: bool
    """All members have all items: the ring is installed after the token was forwarded."""


class Recovery:
    """One attempt to form a ring, from the second rotation of its Commit token on."""

    def __init__(self, me: NodeId, commit: Commit, old: ViewId, config: RingConfig) -> None:
        self.id = commit.ring
        self.members = tuple(entry.node for entry in commit.entries)
        self.entries = commit.entries
        self.lives: Mapping[NodeId, int] = {e.node: e.incarnation for e in commit.entries}
        """The incarnation of each member. A frame of another one is not the member's."""
        self.old = old
        companions = [entry for entry in commit.entries if entry.old == old]
        self.transitional = tuple(entry.node for entry in companions)
        """Members that come from the same old view as this node, itself among them."""
        self.summaries: Mapping[NodeId, bytes] = {e.node: e.summary for e in companions}
        obliged = {*self.transitional, *(node for e in companions for node in e.obligation)}
        self.obligations = tuple(sorted(obliged))
        """Nodes whose messages are delivered even behind a gap: companions that are here, and
        those that were here in an earlier attempt, which a peer may have installed."""
        assert me in self.transitional, f"{me} does not come from its own view"
        self.ring: Ring[RingItem] = Ring(self.members.index(me), len(self.members), config)
        self.ring.hops = len(self.members) - 1  # Its token goes on where the Commit token was.
        self.complete = False
        """All items of the old view are here: from now on a peer may install the ring."""
        self._me = me
        self._queue: dict[tuple[int, ...], Item] = {}
        self.install_seq: int | None = None
        """The number of the last item, known when the flag stayed clear for two visits."""
        self._clear_visits = 0
        """Visits in a row at which the flag was clear."""
        self._flagged = False
        """The flag is set because of this member."""
        self._may_exchange = me != self.representative
        """The ring's token may exist: the representative knows, the others cannot tell."""

    @property
    def successor(self) -> NodeId:
        return self.members[self.ring.successor]

    @property
    def representative(self) -> NodeId:
        return self.members[0]

    @property
    def ruling(self) -> Ruling:
        """Whether the new view is primary."""
        return rule(self.entries)

    @property
    def transitional_view(self) -> View:
        """The view between the old one and the new one."""
        id_ = ViewId(self.id.seq - 1, self.transitional[0])
        return View(id_, self.transitional, transitional=True, previous=self.old)

    @property
    def new_view(self) -> View:
        """The view of this ring, which follows the transitional one."""
        voters, previous = self.ruling.voters, self.transitional_view.id
        return View(self.id, self.members, primary=bool(voters), previous=previous, voters=voters)

    def offer(self, items: Sequence[Item]) -> None:
        """Say what this node holds of the old view and others may lack."""
        self._queue = {item.key: item for item in items}

    def first_token(self, token_seq: int) -> Token:
        """The token that the representative makes of the Commit token. A forged Commit token may
        make it do so once more, when items are under way already: the new token counts them."""
        self._flagged = bool(self._queue)
        self._may_exchange = True
        seq, aru = self.ring.high_seq, self.ring.aru
        behind = NOBODY if aru == seq else self.ring.me
        return Token(token_seq, seq, aru, behind, flag=self._flagged)

    def receive(self, m: RingItem) -> Item | None:
        """Keep an item; it is returned if it is of this node's old view."""
        if not self._may_exchange:
            return None  # Nobody sends before the representative has: it is forged.
        if not self.ring.store(m.seq, m) or m.old != self.old:
            return None
        self._queue.pop(m.item.key, None)  # Somebody was quicker.
        return m.item

    def visit(self, token: Token) -> Step:
        """Use the token, as far as items are left, and see how far the exchange is."""
        # Numbers are given in `visit`; an item gets its own as it is pulled.
        seq = token.seq

        def pull() -> RingItem | None:
            nonlocal seq
            if not self._queue:
                return None
            seq += 1
            key = next(iter(self._queue))
            return RingItem(seq, self.old, self._queue.pop(key))

        visit = self.ring.visit(token, len(self._queue), pull)
        token = self._flag(visit.token)
        self._clear_visits = 0 if token.flag else self._clear_visits + 1
        if self._clear_visits == 2:
            self.install_seq = token.seq
        if self.install_seq is not None and self._clear_visits >= 2:
            self.complete = self.complete or self.ring.aru >= self.install_seq
        accused = None if visit.accused is None else self.members[visit.accused]
        if accused is None:
            self.ring.forward(token)
        install = (
            accused is None
            and self._clear_visits >= 3
            and self.install_seq is not None
            and self.ring.safe_line >= self.install_seq
        )
        assert not install or (self.complete and not self._queue), "installing before the end"
        sends = tuple(item for _, item in (*visit.again, *visit.fresh))
        return Step(sends, token, accused, install)

    def _flag(self, token: Token) -> Token:
        """§7.1: set while items are left here; cleared by the member that set it."""
        flag = token.flag
        if self._queue:
            if not flag:
                flag = self._flagged = True
        elif flag and (self._flagged or self._set_by_nobody(token)):
            flag = self._flagged = False
        if flag == token.flag:
            return token
        return Token(
            token.token_seq,
            token.seq,
            token.aru,
            token.aru_id,
            token.requests,
            token.fcc,
            token.backlog,
            flag,
        )

    def _set_by_nobody(self, token: Token) -> bool:
        """Whether the flag is forged. The representative concludes that if it has seen the flag
        twice and no member sent anything in two rotations: a member with items left sends one,
        unless the window or the buffer is full, and a member with none left clears the flag that it
        set."""
        last = self.ring.last
        return (
            self._me == self.representative
            and last is not None
            and last.flag
            and not last.fcc
            and not token.fcc
            and token.seq < self.ring.config.buffer_packets
        )
