"""Bugs of the replicated log, of catch-up, of votes with a journal, and of the disk below them.

Bugs of the disk are planted into the simulator's own: there they show that the verdicts notice.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from roundelay.core.effects import Install, Persist, Synced
from roundelay.core.ids import NodeId, ViewId
from roundelay.core.log import NAMED, Checkpoint, Entries, Place
from roundelay.group.log import opening, window
from roundelay.group.log.commit import Commit
from roundelay.group.log.learner import Learner
from roundelay.group.log.log import ReplicatedLog
from roundelay.group.log.messages import Offer
from roundelay.group.log.opening import Opening
from roundelay.group.log.reads import Reads
from roundelay.group.log.sending import Sending
from roundelay.group.log.state import LogState
from roundelay.membership import primary, recovery
from roundelay.membership.forming import Forming
from roundelay.membership.messages import CommitEntry, Primary
from roundelay.membership.primary import Ruling, Standing
from roundelay.membership.state import State
from roundelay.sim.disk import Disk, Ending, Kept
from roundelay.sim.host_log import HostLog

from . import planted as others
from .planted import Patch, bug

# The journal


@bug("A record counts as stored once it is written, before the sync.")
def log_stored_before_the_sync() -> list[Patch]:
    def write(self: HostLog, step: Any) -> None:
        original(self, step)
        self._later(0, ("stored", step.number))

    original = HostLog._write
    return [(HostLog, "_write", write)]


@bug("With `interval` a node votes after a power cut.")
def log_interval_votes_after_a_power_cut() -> list[Patch]:
    def sure(self: Disk, ending: Ending) -> bool:
        return False

    return [(Disk, "_may_lack", sure)]


@bug("Damage in the middle of a journal is taken for a torn end.")
def log_damage_taken_for_a_torn_end() -> list[Patch]:
    def torn(self: Disk, end: bool, bad: Kept) -> bool:
        return True

    return [(Disk, "_is_torn", torn)]


@bug("A sync that failed is taken for one that did not.")
def log_failed_sync_ignored() -> list[Patch]:
    def goes_on(self: HostLog) -> bool:
        return False

    return [(HostLog, "_stops_at_a_failed_sync", goes_on)]


# Votes


@bug("With a journal: a view in doubt is stored only with what is stored next.")
def log_attempt_stored_too_late() -> list[Patch]:
    def visit(self: Forming, token: Any) -> Any:
        out = self._state.out
        before = len(out)
        step = original(self, token)
        out[before:] = [effect for effect in out[before:] if not isinstance(effect, Persist)]
        return step

    original = Forming.visit
    return [(Forming, "visit", visit)]


@bug("With a journal: views in doubt are forgotten at a restart.")
def log_attempts_not_stored() -> list[Patch]:
    return others.attempts_not_stored()


@bug("Of the views in doubt only the newest is remembered.")
def log_newest_attempt_only() -> list[Patch]:
    def attempt(self: Standing, view: ViewId, ruling: Ruling) -> bool:
        if ruling.voters:
            self.able = self.able or ruling.founding
            self.attempts = (Primary(view, ruling.voters),)
        return bool(ruling.voters)

    return [(Standing, "attempt", attempt)]


@bug("With a journal: of the views in doubt the last four are remembered.")
def log_attempts_pushed_out() -> list[Patch]:
    return others.attempts_pushed_out()


@bug("A view is the last primary one as soon as it is installed, before it is open.")
def log_last_moves_at_install() -> list[Patch]:
    def enter(self: ReplicatedLog, install: Install) -> None:
        original(self, install)
        view = install.view
        if view.primary and not view.transitional:
            self.out += self._ground.note_open(view)

    original = ReplicatedLog.enter
    return [(ReplicatedLog, "enter", enter)]


@bug("With a journal: a node whose disk was lost votes.")
def log_lost_disk_votes() -> list[Patch]:
    def start(self: Any) -> None:
        self.standing.able = True
        original(self)

    original = State.start
    return [(State, "start", start)]


@bug("With a journal: a node whose disk was lost counts where a view is in doubt.")
def log_lost_disk_counts_in_a_doubt() -> list[Patch]:
    return others.lost_disk_counts_in_a_doubt()


@bug("A view is primary if all voters of the last one are there, lost disks or not.")
def log_all_of_the_last_view() -> list[Patch]:
    def whole(entries: Sequence[CommitEntry]) -> Ruling:
        ruling = original(entries)
        known = [entry.last for entry in entries if entry.last is not None]
        if ruling.voters or not known:
            return ruling
        last = max(known, key=lambda known: known.id)
        if set(last.voters) <= {entry.node for entry in entries}:
            return Ruling(last.voters)
        return ruling

    original = primary.rule
    return [(recovery, "rule", whole)]


@bug("A view that is found open drops all attempts, also later ones.")
def log_open_drops_later_attempts() -> list[Patch]:
    def opened(self: Standing, view: ViewId, voters: tuple[NodeId, ...]) -> None:
        original(self, view, voters)
        self.attempts = ()

    original = Standing.open
    return [(Standing, "open", opened)]


# Openings and commits


@bug("READY leaves before the mark is synced.")
def log_ready_before_the_sync() -> list[Patch]:
    def ready(self: ReplicatedLog) -> bool:
        view = self._view
        return view is not None and self.opening is not None and self.state.place.term == view.id

    def acknowledge(self: ReplicatedLog, *, again: bool = False) -> None:
        view = self._view
        if view is not None and self.state.stored.term == view.id:
            original(self, again=again)

    original = ReplicatedLog._acknowledge
    return [
        (ReplicatedLog, "_ready", property(ready)),
        (ReplicatedLog, "_acknowledge", acknowledge),
    ]


@bug("The adopted log is chosen from the offers of a majority.")
def log_offers_of_a_majority() -> list[Patch]:
    def adopt(self: Opening, able: tuple[NodeId, ...]) -> Any:
        everybody = self.journals
        self.journals = tuple(node for node in everybody if node in self.offers)
        try:
            return original(self, able)
        finally:
            self.journals = everybody

    def missing(self: Opening) -> tuple[NodeId, ...]:
        lacked = tuple(node for node in self.journals if node not in self.offers)
        if not any(offer.log for offer in self.offers.values()):
            return lacked  # Nothing is to be adopted: the log is being founded.
        return () if 2 * len(lacked) < len(self.journals) else lacked

    original = Opening.adopt
    return [(Opening, "adopt", adopt), (Opening, "missing", property(missing))]


@bug("The longest log wins, whatever its term.")
def log_longest_wins() -> list[Patch]:
    def rank(offer: Offer) -> tuple[int, Any]:
        return offer.generation, (offer.place.length, offer.place.term)

    def adopt(self: ReplicatedLog) -> None:
        opened, mine = self.opening, self.state
        if opened is not None and opened.adopted is None and not opened.missing:
            best = opened.adopt(self._ground.able_members).place
            opened.adopted = None
            common = mine.end_of(best.term)
            if mine.place > best and common is not None:
                mine.cut(min(common, best))
        original(self)

    original = ReplicatedLog._adopt
    return [(opening, "_rank", rank), (ReplicatedLog, "_adopt", adopt)]


@bug("Acknowledgments of members that are no voters count.")
def log_others_acknowledge() -> list[Patch]:
    def acknowledge(self: Commit, node: NodeId, length: int, opened: int) -> bool:
        voters = self._view.voters
        if node not in voters:
            behind = [
                v for v in voters if self._acks.get(v, Place()) < Place(self._view.id, length)
            ]
            if behind:
                return original(self, behind[0], length, opened)
        return original(self, node, length, opened)

    original = Commit.acknowledge
    return [(Commit, "acknowledge", acknowledge)]


@bug("Log packets are sent in a primary view before it is open.")
def log_packets_before_the_opening() -> list[Patch]:
    def feed(self: ReplicatedLog) -> None:
        moved = self._moved
        self._moved = moved or self.opening is not None
        original(self)
        self._moved = moved

    original = ReplicatedLog._feed
    return [(ReplicatedLog, "_feed", feed)]


@bug("Log packets of a transitional view get indexes.")
def log_transitional_deliveries() -> list[Patch]:
    def enter(self: ReplicatedLog, install: Install) -> None:
        if not install.view.transitional:
            original(self, install)

    def agree(self: ReplicatedLog, why: str) -> None:
        pass  # Else the node stops: digests tell that its log is another one.

    original = ReplicatedLog.enter
    return [(ReplicatedLog, "enter", enter), (ReplicatedLog, "_fork", agree)]


# Sessions


@bug("What was sent in the old view is sent again as if it were new.")
def log_sent_again_as_new() -> list[Patch]:
    def compare(self: Sending, table: Any, place: Place) -> None:
        self.take_back()

    def note(self: Sending, head: Any, end: Place) -> None:
        if any(parcel.session == head.session for parcel in self._away):
            noted(self, head, end)

    def fresh(self: LogState, arrival: Any) -> Any:
        if arrival.session & NAMED:
            return original(self, arrival)
        return arrival

    original, noted = LogState._fresh, Sending.note_entries
    return [
        (Sending, "compare", compare),
        (Sending, "note_entries", note),
        (LogState, "_fresh", fresh),
    ]


@bug("A message that a client repeats gets a second index.")
def log_duplicate_indexed() -> list[Patch]:
    def fresh(self: LogState, arrival: Any) -> Any:
        return arrival if arrival.count else original(self, arrival)

    original = LogState._fresh
    return [(LogState, "_fresh", fresh)]


@bug("A snapshot is without the table of sessions.")
def log_snapshot_without_sessions() -> list[Patch]:
    def at(self: LogState, index: int) -> Checkpoint:
        return replace(original(self, index), sessions=())

    original = LogState.at
    return [(LogState, "at", at)]


# Catching up


@bug("A learner takes what it fetches by the index alone, and never compares digests.")
def log_chunks_by_index() -> list[Patch]:
    def ask(self: Learner) -> None:
        real = self._state.place
        length = min(real.length, self._target.length)
        self._state.place = max(real, Place(self._target.term, length))
        original(self)
        self._state.place = real

    def take(self: Learner, entries: Entries) -> None:
        if entries.head.index == self._state.length:
            self._state.append(entries)
            self._fill_if_whole()

    def agree(self: ReplicatedLog, why: str) -> None:
        pass

    original = Learner._ask
    return [
        (Learner, "_ask", ask),
        (Learner, "_take_entries", take),
        (ReplicatedLog, "_fork", agree),
    ]


@bug("A learner joins the window though packets are missing before it.")
def log_window_joined_with_a_gap() -> list[Patch]:
    def follows(self: window.LiveWindow, ordinal: int) -> bool:
        return ordinal <= self.last

    return [(window.LiveWindow, "follows", follows)]


# Reads


@bug("A member of an open view answers reads from what it knows itself.")
def log_read_answered_locally() -> list[Patch]:
    def sync(self: ReplicatedLog, request: int) -> None:
        if self._moved:
            self.out.append(Synced(request, self.state.committed))
        else:
            original(self, request)

    original = ReplicatedLog.sync
    return [(ReplicatedLog, "sync", sync)]


@bug("Answers of members that are no voters count.")
def log_others_answer_probes() -> list[Patch]:
    def answer(self: Reads, node: NodeId, number: int, length: int) -> bool:
        if node not in self._voters and self._voters:
            silent = [voter for voter in self._voters if voter not in self._lengths]
            return original(self, (*silent, node)[0], number, length)
        return original(self, node, number, length)

    original = Reads.answer
    return [(Reads, "answer", answer)]


# Recovery


@bug("A node cuts off what it knew to be committed, where it should stop.")
def log_cut_below_committed() -> list[Patch]:
    def can_cut(self: LogState, place: Place) -> bool:
        self.committed = min(self.committed, place.length)
        self.settled = min(self.settled, place.length)
        return original(self, place)

    original = LogState.can_cut
    return [(LogState, "can_cut", can_cut)]
