"""Bugs that a reader of the paper, or a tired programmer, could have written.

Each is a patch of one or two methods of the product, in force within `planted(name)`. There is no
switch for any of them in the product.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from roundelay.core.contract import Conclusion, Item, Origin
from roundelay.core.effects import Deliver, Effect, Persist, SetTimer
from roundelay.core.ids import Packet, Service, ViewId
from roundelay.group import assembler, packer
from roundelay.membership import forming, primary, recovery, state, storage
from roundelay.membership.broken_links import BrokenLinks
from roundelay.membership.config import CONSENSUS
from roundelay.membership.expulsions import Expulsions
from roundelay.membership.failures import Failures
from roundelay.membership.forming import Forming
from roundelay.membership.gather import Gather
from roundelay.membership.machine import Membership
from roundelay.membership.messages import (
    MESSAGES,
    STEP,
    Commit,
    CommitEntry,
    Join,
    Primary,
    RingItem,
)
from roundelay.membership.phase import GatherReason, Phase
from roundelay.membership.primary import Standing
from roundelay.membership.recovery import Recovery
from roundelay.membership.ring import NOBODY, Ring, Token
from roundelay.membership.state import State
from roundelay.protocols.dtp.repetitions import ACK, Repetitions
from roundelay.protocols.totem import TotemEngine

Patch = tuple[Any, str, Any]
BUGS: dict[str, tuple[str, Callable[[], list[Patch]]]] = {}
"""By name: what is wrong, and the patches."""


def bug(about: str) -> Callable[[Callable[[], list[Patch]]], Callable[[], list[Patch]]]:
    """Register the patches below under the function's name."""

    def register(patches: Callable[[], list[Patch]]) -> Callable[[], list[Patch]]:
        BUGS[patches.__name__] = (about, patches)
        return patches

    return register


@contextmanager
def planted(name: str) -> Iterator[None]:
    """The product with this bug in it."""
    patches = [patch.object(*where) for where in BUGS[name][1]()]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in reversed(patches):
            each.stop()


# The ring


@bug("A safe message is delivered after one rotation instead of two.")
def one_rotation_safe() -> list[Patch]:
    forward = Ring.forward

    def hasty(self: Ring[Any], token: Token) -> None:
        forward(self, token)
        self.safe_line = max(self.safe_line, token.aru)

    return [(Ring, "forward", hasty)]


@bug("Whoever has more than aru says raises it, whoever had lowered it.")
def anybody_raises_aru() -> list[Patch]:
    def lower(self: Ring[Any], token: Token, here: int, due: int) -> tuple[int, int]:
        return self.aru, NOBODY if self.aru == due else self.me

    return [(Ring, "_lower", lower)]


@bug("A copy of a token is used like the token.")
def token_seq_ignored() -> list[Patch]:
    def accepts(self: Ring[Any], token: Token) -> bool:
        return token.seq <= self.limit

    return [(Ring, "accepts", accepts)]


@bug("On an accelerated ring, all that the token tells of is asked for, as on another ring.")
def accelerated_asks_at_once() -> list[Patch]:
    return [(Ring, "_sent", lambda self, token: token.seq)]


@bug("Who lacks packets that may still be on their way does not lower aru, though it counts them.")
def accelerated_safe_too_early() -> list[Patch]:
    original = Ring._lower

    def lower(self: Ring[Any], token: Token, here: int, due: int) -> tuple[int, int]:
        if self.aru < due:
            return original(self, token, here, due)
        if token.aru_id in (NOBODY, self.me):
            return max(token.aru, here), NOBODY
        return token.aru, token.aru_id

    return [(Ring, "_lower", lower)]


@bug("Only the token is a sign of the token: packets of the next sender are not.")
def no_sign_by_packets() -> list[Patch]:
    original = TotemEngine._store

    def store(self: TotemEngine, seq: int, packet: Packet) -> None:
        self._has_token = packet.span.node  # As if it had been heard of before.
        original(self, seq, packet)

    return [(TotemEngine, "_store", store)]


@bug("A token that was sent again for nothing is sent again as early in the next rotation.")
def no_patience() -> list[Patch]:
    original = TotemEngine._on_token

    def on_token(self: TotemEngine, token: Token) -> None:
        self._sent_again = False
        original(self, token)

    return [(TotemEngine, "_on_token", on_token)]


@bug("Read literally, the paper accuses whoever finds itself named, never another.")
def literal_fail_to_receive() -> list[Patch]:
    def stalled(self: Ring[Any], aru: int, aru_id: int) -> int | None:
        return None  # The literal rule names the finder, and nobody may give itself up.

    return [(Ring, "_stalled", stalled)]


@bug("Who accuses a member goes on using the token that it took out of the ring.")
def accuser_uses_the_token_again() -> list[Patch]:
    def use(self: TotemEngine, token: Token, **how: Any) -> None:
        original(self, token, **how)
        self.stopped = False

    original = TotemEngine._use
    return [(TotemEngine, "_use", use)]


@bug("Whoever filled the window in the last rotation fills it again in the next.")
def window_kept_for_ever() -> list[Patch]:
    def share(self: Ring[Any], others: int, backlog: int, waiting: int) -> int:
        everywhere = backlog + waiting
        window = self.config.window_packets
        return max(1, window * waiting // everywhere) if everywhere > 0 else window

    return [(Ring, "_share", share)]


@bug("Packets are forgotten as soon as they are delivered here.")
def discarded_too_early() -> list[Patch]:
    def settle(self: TotemEngine) -> None:
        self.ring.discard(self.delivered)

    return [(TotemEngine, "_claim_stable", settle)]


@bug("An agreed message overtakes a safe one that waits.")
def agreed_overtakes_safe() -> list[Patch]:
    def deliver(self: TotemEngine) -> None:
        done: set[int] = self.__dict__.setdefault("_overtook", set())
        if self.delivered == 0 and self.ring.safe_line == 0 and self.ring.discarded == 0:
            done.clear()
        for seq in range(self.delivered + 1, self.ring.aru + 1):
            packet = self.ring.have[seq]
            if seq in done or (packet.service is Service.SAFE and seq > self.ring.safe_line):
                continue
            done.add(seq)
            self._out.append(Deliver(packet, self.view.id, (seq, 0)))
        while self.delivered + 1 in done:
            self.delivered += 1
            done.discard(self.delivered)

    return [(TotemEngine, "_deliver", deliver)]


# The end of a view


@bug("Everything held is delivered at the end of a view, whoever sent it, behind a gap too.")
def gap_ignored() -> list[Patch]:
    conclude = TotemEngine.conclude

    def all_of_it(self: TotemEngine, summaries: Any, transitional: Any, obligations: Any) -> Any:
        return conclude(self, summaries, transitional, self.view.members)

    return [(TotemEngine, "conclude", all_of_it)]


@bug("What is safe by this node's own observation is delivered in the old view.")
def own_safe_line_counts() -> list[Patch]:
    conclude = TotemEngine.conclude

    def by_own_line(self: TotemEngine, summaries: Any, transitional: Any, obligations: Any) -> Any:
        regular = []
        while (packet := self.ring.have.get(self.delivered + 1)) is not None:
            if packet.service is Service.SAFE and self.delivered + 1 > self.ring._last_aru:
                break
            self.delivered += 1
            regular.append(Deliver(packet, self.view.id, (self.delivered, 0)))
        end = conclude(self, summaries, transitional, obligations)
        return Conclusion((*regular, *end.regular), end.transitional, end.withdrawn)

    return [(TotemEngine, "conclude", by_own_line)]


@bug("The engine goes on delivering after its summary was given.")
def not_frozen() -> list[Patch]:
    freeze = TotemEngine.freeze

    def thaw(self: TotemEngine) -> bytes:
        summary = freeze(self)
        self.frozen = False
        return summary

    return [(TotemEngine, "freeze", thaw)]


@bug("Direct packets of the old ring are still taken during recovery.")
def old_ring_not_sealed() -> list[Patch]:
    def receive(self: Membership, origin: Origin, message: Any) -> list[Effect[Any]]:
        direct = type(message) not in MESSAGES and origin.view == self.view.id
        if direct and self.phase is Phase.RECOVERY:
            self.guard.engine.receive(origin, message)
            return []
        return original(self, origin, message)

    original = Membership.receive
    return [(Membership, "receive", receive)]


@bug("Who was here in an attempt that failed is forgotten: no obligations.")
def no_obligations() -> list[Patch]:
    init = Recovery.__init__

    def forgetful(self: Recovery, *args: Any) -> None:
        init(self, *args)
        self.obligations = self.transitional

    return [(Recovery, "__init__", forgetful)]


@bug(
    "After an attempt that failed, only its members are owed anything, not those of one before it."
)
def older_obligations_forgotten() -> list[Patch]:
    def visit(self: Forming, token: Token) -> recovery.Step:
        ring, complete = self.recovery, self.recovery is not None and self.recovery.complete
        step = original(self, token)
        if ring is not None and ring.complete and not complete and self._state.obligation:
            self._state.obligation = ring.transitional
        return step

    original = Forming.visit
    return [(Forming, "visit", visit)]


@bug("An item of another ring that has the same number counts as ours: ours is never sent.")
def items_of_two_rings_mixed_up() -> list[Patch]:
    def receive(self: Recovery, m: RingItem) -> Item | None:
        item = original(self, m)
        self._queue.pop(m.item.key, None)
        return item

    original = Recovery.receive
    return [(Recovery, "receive", receive)]


def believe(m: Commit, sent: Commit, view: Any) -> bool:
    """In place of the check that would refuse what a planted bug makes of a Commit token."""
    return True


@bug("Companions are those who were members, not those who come from the same view.")
def transitional_by_name() -> list[Patch]:
    def enter(self: Forming, m: Commit) -> recovery.Step | None:
        view = self._state.view
        entries = tuple(
            CommitEntry(
                e.node,
                view.id if e.node in view.members else e.old,
                e.summary or totem_summary(),
                tuple(n for n in e.obligation if n in view.members),
                e.last,
                e.attempts,
                e.able,
                e.founders,
                e.incarnation,
            )
            for e in m.entries
        )
        return original(self, Commit(m.ring, m.token_seq, m.index, entries))

    def totem_summary() -> bytes:
        return bytes(16)

    original = Forming._enter_recovery
    return [(Forming, "_enter_recovery", enter), (forming, "is_sound", believe)]


@bug("Nothing is exchanged: everybody concludes with what it holds.")
def nothing_exchanged() -> list[Patch]:
    def seal(self: TotemEngine, summaries: Any) -> list[Any]:
        return []

    return [(TotemEngine, "seal", seal)]


@bug("The flag of the exchange is cleared only by a node that has items left.")
def literal_retransmission_flag() -> list[Patch]:
    def flag(self: Recovery, token: Token) -> Token:
        if not self._queue:
            return token
        flagged = token.flag
        if not flagged:
            flagged = self._flagged = True
        elif self._flagged:
            flagged = self._flagged = False
        return Token(
            token.token_seq,
            token.seq,
            token.aru,
            token.aru_id,
            token.requests,
            token.fcc,
            token.backlog,
            flagged,
        )

    return [(Recovery, "_flag", flag)]


@bug("A ring is installed as soon as nobody has items left, whoever has received them.")
def installed_without_aru() -> list[Patch]:
    visit = Recovery.visit

    def hasty(self: Recovery, token: Token) -> recovery.Step:
        step = visit(self, token)
        return recovery.Step(step.sends, step.token, step.accused, self._clear_visits >= 2)

    return [(Recovery, "visit", hasty)]


# Gather and Commit


@bug("A Commit token of the first rotation that comes again counts as the second.")
def commit_copy_accepted() -> list[Patch]:
    def on_commit(self: Forming, m: Commit) -> recovery.Step | None:
        now = self._state
        if now.phase is Phase.COMMIT and m.ring == now.ring_id and m.index < len(m.entries):
            filled = tuple(
                e if e.old is not None else CommitEntry(e.node, ViewId(0, e.node))
                for e in m.entries
            )
            return original(self, Commit(m.ring, self._commit_seq + 1, len(filled), filled))
        return original(self, m)

    original = Forming.on_commit
    return [(Forming, "on_commit", on_commit), (forming, "is_sound", believe)]


@bug("The ring number is written to storage only at start.")
def number_not_stored() -> list[Patch]:
    def persist(self: State) -> None:
        seq = self.__dict__.setdefault("first_seq", self.ring_id.seq)
        self.emit(Persist(storage.pack(seq, self.standing)))

    return [(State, "persist", persist)]


@bug("The ring number is written to storage after the Commit token has left.")
def number_stored_too_late() -> list[Patch]:
    def accept(self: Forming, m: Commit) -> recovery.Step | None:
        out = self._state.out
        start = len(out)
        step = original(self, m)
        if len(m.entries) > 1:
            out[start:] = sorted(out[start:], key=lambda effect: isinstance(effect, Persist))
        return step

    original = Forming.accept
    return [(Forming, "accept", accept)]


@bug("A node that starts takes the number it finds, instead of a new one.")
def number_not_raised_at_start() -> list[Patch]:
    def read(boot: Any) -> storage.Stored:
        found = original(boot)
        return storage.Stored(max(0, found.seq - STEP), found.standing, found.kept)

    original = storage.read_storage
    return [(state, "read_storage", read)]


# Primary views


@bug("A node that lost its storage votes.")
def lost_disk_votes() -> list[Patch]:
    def read(boot: Any) -> storage.Stored:
        found = original(boot)
        found.standing.able = True
        return found

    original = storage.read_storage
    return [(state, "read_storage", read)]


@bug("A node that lost its storage counts where a view is in doubt.")
def lost_disk_counts_in_a_doubt() -> list[Patch]:
    def everybody(entries: Sequence[CommitEntry]) -> primary.Ruling:
        ruling = original(entries)
        if ruling.voters or not ruling.why.startswith("needs one of"):
            return ruling
        return original([replace(entry, able=True) for entry in entries])

    original = primary.rule
    return [(recovery, "rule", everybody)]


@bug("Of the views in doubt the last four are remembered.")
def attempts_pushed_out() -> list[Patch]:
    def attempt(self: Standing, view: ViewId, ruling: primary.Ruling) -> bool:
        if ruling.voters:
            self.able = self.able or ruling.founding
            self.attempts = (*self.attempts, Primary(view, ruling.voters))[-4:]
        return bool(ruling.voters)

    return [(Standing, "attempt", attempt)]


@bug("Views in doubt are forgotten at a restart.")
def attempts_not_stored() -> list[Patch]:
    def pack(seq: int, standing: Standing) -> bytes:
        return original(seq, Standing(standing.able, standing.last))

    original = storage.pack
    return [(state, "pack", pack)]


@bug("A view in doubt is stored after the token has left.")
def attempt_stored_too_late() -> list[Patch]:
    def visit(self: Forming, token: Token) -> recovery.Step:
        out = self._state.out
        before = len(out)
        step = original(self, token)
        if not step.install:
            out[before:] = sorted(out[before:], key=lambda effect: isinstance(effect, Persist))
        return step

    original = Forming.visit
    return [(Forming, "visit", visit)]


@bug("The last primary view is forgotten at a restart, and the node votes all the same.")
def last_primary_not_stored() -> list[Patch]:
    def pack(seq: int, standing: Standing) -> bytes:
        return original(seq, Standing(standing.able, None))

    original = storage.pack
    return [(state, "pack", pack)]


@bug("Half of the voters is taken for a majority.")
def half_is_a_majority() -> list[Patch]:
    def present(able: Any, voters: Any) -> int:
        count = original(able, voters)
        return count + 1 if 2 * count == len(voters) else count

    original = primary._present
    return [(primary, "_present", present)]


@bug("Consensus does not end the wait: its timer goes on and gives everybody up.")
def literal_consensus_timer() -> list[Patch]:
    def check(self: Membership, *, alone: bool = False) -> None:
        waiting = self.gather.commit_wait
        original(self, alone=alone)
        if self.gather.commit_wait and not waiting:
            self._state.emit(SetTimer(CONSENSUS, self.config.ring_retransmit_s))
            self.proposal.agreed = {self.node}

    original = Membership._check_consensus
    return [(Membership, "_check_consensus", check)]


@bug("A Join is looked at before the old round is abandoned: consensus seems reached already.")
def literal_join_in_commit() -> list[Patch]:
    def on_join(self: Membership, origin: Origin, m: Join) -> None:
        forming = self.phase in (Phase.COMMIT, Phase.RECOVERY)
        agreed = set(self.proposal.agreed)
        if forming and m.ring_seq >= self.ring_id.seq:
            self._gather(GatherReason.RING_ABANDONED)
            self.proposal.agreed |= agreed
            self._check_consensus()
        original(self, origin, m)

    original = Membership._on_join
    return [(Membership, "_on_join", on_join)]


@bug("An outsider's Join is heeded even if it gives us up: the two expel each other for ever.")
def literal_outsider_join() -> list[Patch]:
    def is_stale(self: Gather, origin: Origin, m: Join, *, forming: bool) -> bool:
        now = self._state
        return origin.node in now.view.members and m.ring_seq < now.ring_id.seq

    return [(Gather, "_is_stale", is_stale)]


@bug("A ring that is installed is left if the successor is not heard to have installed it too.")
def installed_and_left() -> list[Patch]:
    def on_loss(self: Membership) -> None:
        if self.phase is Phase.OPERATIONAL:
            self._gather(GatherReason.RING_STUCK)
        else:
            original(self)

    original = Membership._on_loss
    return [(Membership, "_on_loss", on_loss)]


@bug("Rings that have nothing to say do not say so: they never find each other.")
def no_merge_detection() -> list[Patch]:
    def silent(self: Membership) -> None:
        self.guard.multicast = False

    return [(Membership, "_on_merge_timer", silent)]


@bug("A membership that fails again and again is tried again and again.")
def no_forced_failure() -> list[Patch]:
    def count(self: Failures, members: Any) -> tuple[str, ...]:
        return ()

    return [(Failures, "count", count)]


@bug("The engine of a new view starts before the queue knows what the old view left.")
def engine_started_too_early() -> list[Patch]:
    def install(self: Membership) -> None:
        original(self)
        self._start_engine()

    original = Membership._install
    return [(Membership, "_install", install)]


@bug("Whoever was given up twice is left alone, also if it was merely out of reach.")
def pauses_for_everybody() -> list[Patch]:
    def note_install(self: Expulsions, gone: Any) -> list[tuple[str, float]]:
        gone = list(gone)
        self._deaf.update(gone)
        return original(self, gone)

    original = Expulsions.note_install
    return [(Expulsions, "note_install", note_install)]


@bug("Whoever cannot be in one view with a member, for want of a link, is tried again at once.")
def bad_link_tried_at_once() -> list[Patch]:
    def count(self: BrokenLinks, node: str, other: str) -> list[Any]:
        return []

    return [(BrokenLinks, "_count", count)]


@bug("A ring that has spoken in one period says nothing in the next.")
def merge_detection_at_half_speed() -> list[Patch]:
    def on_merge_timer(self: Membership) -> None:
        original(self)
        out = self._state.out
        effect = out[-1]
        assert isinstance(effect, SetTimer)
        out[-1] = SetTimer(effect.timer, 2 * effect.delay_s)

    original = Membership._on_merge_timer
    return [(Membership, "_on_merge_timer", on_merge_timer)]


# The group layer


@bug("Pieces of a large message are joined across a change of view.")
def pieces_joined_across_views() -> list[Patch]:
    def forget(self: assembler.Assembler) -> None:
        pass

    def start_view(self: packer.Packer) -> None:
        piece = self._piece
        original(self)
        self._piece = piece

    original = packer.Packer.start_view
    return [(assembler.Assembler, "forget", forget), (packer.Packer, "start_view", start_view)]


@bug("Messages that wait for a token are lost when the view changes.")
def queue_lost_with_the_view() -> list[Patch]:
    def start_view(self: packer.Packer) -> None:
        original(self)
        while self.pull() is not None:
            pass

    original = packer.Packer.start_view
    return [(packer.Packer, "start_view", start_view)]


# Engines of the DTP family


@bug("Who asks for what it lacks is given no more time than who says nothing.")
def who_asks_is_silent() -> list[Patch]:
    def reset(self: Repetitions, timer: str) -> None:
        if timer != ACK:
            original(self, timer)

    original = Repetitions.reset
    return [(Repetitions, "reset", reset)]
