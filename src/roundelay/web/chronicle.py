"""What happened to the groups, in order: views, faults, suspicions, bursts of retransmissions.

Nodes tell what they noticed, in the words of their log. To that come what only somebody outside
sees, a node that ends or is stopped, and what was done on the page. What several nodes tell of one
view is one entry.
"""

import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from roundelay.web.watching import State, Watched

ENTRIES_MAX = 1500
"""Entries that are kept of each group. Too few: a fault is gone before anybody looks; too many:
memory, and a list that nobody reads."""
GROUPS_MAX = 50
"""Groups of which entries are kept; for one more, the one that was quiet for longest is
forgotten."""
BURST_SHARE, BURST_PACKETS = 0.05, 5
"""The share and the number of packets within one question that came more than once, from which on
it is a burst. Less: a single lost packet is one; more: small bursts go unnoticed."""
BURST_NS = 2_000_000_000
"""Bursts of one node that follow each other within this time are one entry."""
SAME_NS = 10_000_000_000
"""Entries of the same words within this time are one entry, of several nodes."""

NOTABLE = ("view", "fault", "suspicion", "gone", "silent")
"""Kinds of entries whose diagrams are likely to be asked for."""

SAID = {
    ("up", "gone"): ("gone", "{} does not run any more"),
    ("silent", "gone"): ("gone", "{} does not run any more"),
    ("up", "silent"): ("silent", "{} does not answer: it is stopped, or its event loop is held up"),
    ("silent", "up"): ("back", "{} answers again"),
    ("gone", "up"): ("back", "{} runs again"),
}


@dataclass
class Entry:
    """Something that happened."""

    id: int
    changed: int
    """Grows with every change of any entry."""
    t_ns: int
    """On the monotonic clock of this machine."""
    kind: str
    sentence: str
    at: dict[str, int] = field(default_factory=dict)
    """By node that tells of it: when."""
    more: dict[str, Any] = field(default_factory=dict)


class Chronicle:
    """The entries of all groups."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, deque[Entry]] = {}
        self._changes: dict[str, int] = {}
        self._count = 0
        self._touched = 0
        self._bursts: dict[tuple[str, str], Entry] = {}
        self._counted: dict[tuple[str, str], tuple[int, int]] = {}

    # What others tell

    def on_told(self, watched: Watched, recent: Mapping[str, Any]) -> None:
        """A node answered."""
        with self._lock:
            for told in recent["happened"]:
                self._add_told(watched, told)
            self._look_for_burst(watched)

    def on_state(self, watched: Watched, before: State) -> None:
        """A node is found in another state than before."""
        said = SAID.get((before, watched.state))
        if said is not None:
            with self._lock:
                kind, sentence = said
                self._add(
                    watched.group,
                    time.monotonic_ns(),
                    kind,
                    sentence.format(watched.node),
                    watched.node,
                )

    def on_fault(self, group: str, kind: str, sentence: str, nodes: tuple[str, ...]) -> None:
        """Something was done to a group on the page."""
        with self._lock:
            self._add(group, time.monotonic_ns(), "fault", sentence, "", fault=kind, to=list(nodes))

    # What is asked

    def changes(self) -> dict[str, int]:
        """By group: a number that grows with every change."""
        with self._lock:
            return dict(self._changes)

    def since(self, group: str, changed: int) -> list[dict[str, Any]]:
        """The entries of a group that are new or have changed since that number."""
        with self._lock:
            found = [e for e in self._entries.get(group, ()) if e.changed > changed]
            offset_ns = time.time_ns() - time.monotonic_ns()
            return [_document(entry, offset_ns) for entry in found]

    def notable(self, after: int, until_ns: int) -> list[tuple[int, str, int]]:
        """Views, faults, suspicions and ends that are newer than entry number `after` and older
        than a time, as (number, group, time)."""
        with self._lock:
            return sorted(
                (e.id, group, e.t_ns)
                for group, entries in self._entries.items()
                for e in entries
                if e.id > after and e.t_ns <= until_ns and e.kind in NOTABLE
            )

    def faults(self, group: str, start_ns: int, end_ns: int) -> list[tuple[int, str]]:
        """What was done between two times, as (time, kind)."""
        with self._lock:
            return [
                (e.t_ns, str(e.more.get("fault", "")))
                for e in self._entries.get(group, ())
                if e.kind == "fault" and start_ns <= e.t_ns <= end_ns
            ]

    # Under the lock

    def _add_told(self, watched: Watched, told: Mapping[str, Any]) -> None:
        t_ns = int(told["t_ns"]) + watched.shift_ns
        kind, sentence = str(told["kind"]), str(told["sentence"])
        more = {k: v for k, v in told.items() if k not in ("kind", "sentence", "t_ns", "number")}
        entry = self._same(watched.group, kind, sentence, more, t_ns)
        if entry is None:
            self._add(watched.group, t_ns, kind, sentence, watched.node, **more)
            return
        entry.at.setdefault(watched.node, t_ns)
        entry.t_ns = min(entry.t_ns, t_ns)
        if len(sentence) > len(entry.sentence):  # Who noticed the cause says more.
            entry.sentence = sentence
        self._touch(watched.group, entry)

    def _same(
        self, group: str, kind: str, sentence: str, more: Mapping[str, Any], t_ns: int
    ) -> Entry | None:
        """The entry about the same thing, told by another node."""
        view = more.get("view")
        for entry in reversed(self._entries.get(group, ())):
            if entry.kind != kind:
                continue
            if view is not None:
                if entry.more.get("view") == view:
                    return entry
            elif entry.sentence == sentence and abs(entry.t_ns - t_ns) < SAME_NS:
                return entry
        return None

    def _add(
        self, group: str, t_ns: int, kind: str, sentence: str, node: str, **more: Any
    ) -> Entry:
        if group not in self._entries and len(self._entries) >= GROUPS_MAX:
            oldest = min(self._entries, key=lambda name: self._entries[name][-1].t_ns)
            del self._entries[oldest], self._changes[oldest]
        self._count += 1
        entry = Entry(self._count, 0, t_ns, kind, sentence, {node: t_ns} if node else {}, more)
        self._entries.setdefault(group, deque(maxlen=ENTRIES_MAX)).append(entry)
        self._touch(group, entry)
        return entry

    def _touch(self, group: str, entry: Entry) -> None:
        self._touched += 1
        self._changes[group] = entry.changed = self._touched

    def _look_for_burst(self, watched: Watched) -> None:
        """Whether many packets came more than once since the last question."""
        assert watched.status is not None
        key, counters = (watched.group, watched.node), watched.status["counters"]
        received = int(counters["packets_received"])
        new = int(counters["packets_delivered"]) - int(counters["packets_own"])
        before, self._counted[key] = self._counted.get(key), (received, new)
        if before is None or received < before[0]:
            return
        arrived = received - before[0]
        repeated = arrived - (new - before[1])
        if repeated < BURST_PACKETS or repeated < arrived * BURST_SHARE:
            return
        now, entry = time.monotonic_ns(), self._bursts.get(key)
        if entry is None or now - int(entry.more["until_ns"]) > BURST_NS:
            entry = self._add(
                watched.group, now, "repeats", "", watched.node, repeated=0, arrived=0
            )
            self._bursts[key] = entry
        entry.more["until_ns"] = now
        entry.more["repeated"] += repeated
        entry.more["arrived"] += arrived
        entry.sentence = (
            f"{entry.more['repeated']:,} of {entry.more['arrived']:,} packets came more than once "
            f"at {watched.node}: some were lost, here or at others"
        )
        self._touch(watched.group, entry)


def _document(entry: Entry, offset_ns: int) -> dict[str, Any]:
    """An entry for the page; times are milliseconds since the epoch, and nanoseconds as text, which
    JavaScript cannot hold as a number."""

    def ms(t_ns: int) -> float:
        return round((t_ns + offset_ns) / 1e6, 3)

    return {
        "id": entry.id,
        "changed": entry.changed,
        "t_ms": ms(entry.t_ns),
        "t_ns": str(entry.t_ns),
        "kind": entry.kind,
        "sentence": entry.sentence,
        "at": {node: ms(t_ns) for node, t_ns in entry.at.items()},
        **{k: v for k, v in entry.more.items() if k in _SHOWN},
    }


_SHOWN = ("view", "members", "primary", "gone", "come", "fault", "to", "about")


def newest(entries: Iterable[Mapping[str, Any]]) -> int:
    """The number to go on with."""
    return max((int(entry["changed"]) for entry in entries), default=0)
