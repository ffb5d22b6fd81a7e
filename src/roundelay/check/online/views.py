"""Where each process is, and what the installs say: M1, M2, M4."""

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roundelay.check import sentences as say
from roundelay.check.online.findings import Findings
from roundelay.check.primary import kept_standing
from roundelay.core.effects import Kind
from roundelay.trace.schema import REGULAR, Row

if TYPE_CHECKING:
    from roundelay.check.online.order import Agreement
    from roundelay.check.online.window import PacketRecord, Window

ABANDONED_MAX = 64
"""How many views that no process is in any more keep their messages, as a process may yet install
one of them. Their messages together fill one window at most. Too few: verdicts about such a late
process become inconclusive; too many: memory."""

CONTENTS_MAX = 4096
"""How many views have their kind and members remembered. Too few: M4 becomes inconclusive when an
older view is installed; too many: memory."""

ViewName = tuple[int, int]
"""seq, rep."""


class Configuration:
    """A view as those in it share it, or the one implicit view of a static group."""

    __slots__ = (
        "agreement",
        "defined",
        "inhabitants",
        "lost",
        "mask",
        "name",
        "rank",
        "records",
        "regular",
    )

    def __init__(
        self,
        name: str,
        rank: ViewName,
        mask: int,
        *,
        regular: bool = True,
        lost: bool = False,
    ) -> None:
        self.name = name
        self.rank = rank
        self.mask = mask
        """Its members."""
        self.regular = regular
        self.defined = True
        """False for what processes are in that installed no view where others did."""
        self.lost = lost
        """Whether it was forgotten once: what was delivered in it before is unknown."""
        self.inhabitants = 0
        """Processes that are in it, or in a transitional view after it."""
        self.records: deque[PacketRecord] = deque()
        """Its part of the window, the oldest first; records sent again in a later view linger."""
        self.agreement: Agreement | None = None
        """The order of its messages, once any is delivered."""

    def same(self, other: "Configuration") -> bool:
        """Whether both are one view, also if it was forgotten in between."""
        return self is other or self.identity == other.identity

    @property
    def identity(self) -> tuple[ViewName, bool, bool]:
        return self.rank, self.regular, self.defined


@dataclass(slots=True)
class Content:
    """What a view's name stands for."""

    kind: int
    members: tuple[int, ...]
    entered: int = 0
    """Mask of the kinds as which it was installed; more than one only if M4 does not hold."""


class Process:
    """A process and where it is."""

    __slots__ = ("bit", "number", "place", "regular")

    def __init__(self, number: int, place: Configuration) -> None:
        self.number = number
        self.bit = 1 << number
        self.place = place
        """The view it is in."""
        self.regular = place
        """That view if it is regular, else the regular one before."""


class Processes(dict[int, Process]):
    """By number."""

    def __missing__(self, number: int) -> Process:
        raise ValueError(f"a row of node number {number}, but there are {len(self)} nodes")


class Views:
    """Follows every process through its views.

    Until somebody installs a view the group is taken to be static. From then on a process that
    installed none is nowhere: no promise about views is owed to it.
    """

    names = ("M1", "M2", "M4")

    def __init__(self, findings: Findings, nodes: int, window: "Window") -> None:
        self.findings = findings
        self.m1, self.m2, self.m4 = map(findings.tally, self.names)
        self.outside = Configuration("the static group", (0, 0), (1 << nodes) - 1)
        """Where a process begins a life: the static group, or no view at all."""
        self.processes = Processes((i, Process(i, self.outside)) for i in range(nodes))
        self._window = window
        self._known: dict[tuple[int, int, int], Configuration] = {}
        self._contents: dict[ViewName, Content] = {}
        self._forgotten: ViewName | None = None
        """The greatest view whose members are forgotten."""
        self._latest: dict[int, tuple[int, int, int]] = {}
        """By process: seq, rep and kind of the view it installed last."""
        self._abandoned: deque[Configuration] = deque()

    def install(self, row: Row) -> None:
        outside = self.outside
        outside.name, outside.mask, outside.defined = "no view", 0, False
        outside.agreement = None
        members = row.members or ()
        view = row.c_seq or 0, row.c_rep or 0
        self._check(row, view, members)
        process = self.processes[row.proc]
        place = self._enter(row, view, members)
        self._move(process, place, place if place.regular else process.regular)

    def crash(self, row: Row) -> None:
        self._move(self.processes[row.proc], self.outside, self.outside)

    def recover(self, row: Row) -> None:
        self.crash(row)
        if not kept_standing(row):
            self._latest.pop(row.proc, None)

    def _check(self, row: Row, view: ViewName, members: tuple[int, ...]) -> None:
        who, kind = self.findings.name(row.proc), row.c_kind or 0
        named = self._named(view, kind)
        self.m1.instances += 1
        if row.proc not in members:
            reason = say.not_in_view(who, self._with_members(view, kind, members))
            self.findings.report_breach(self.m1, reason, row)
        latest = self._latest.get(row.proc)
        self._latest[row.proc] = *view, kind
        if latest is not None:
            self.m2.instances += 1
            if view <= latest[:2]:
                reason = say.view_goes_back(who, named, self._named(latest[:2], latest[2]))
                earlier = self._install(row.proc, latest[:2], row)
                self.findings.report_breach(self.m2, reason, earlier, row)
        self.m4.instances += 1
        content = self._contents.get(view)
        if content is None:
            if self._older(view):
                reason = f"{who} installs {named}, older than views already forgotten"
                self.findings.doubt(self.m4, reason)
        elif (content.kind, content.members) != (kind, tuple(sorted(members))):
            first = self._install(None, view, row)
            reason = say.two_views(
                say.SOMEBODY if first is None else self.findings.name(first.proc),
                who,
                self._with_members(view, content.kind, content.members),
                self._with_members(view, kind, members),
            )
            self.findings.report_breach(self.m4, reason, first, row)

    def _enter(self, row: Row, view: ViewName, members: tuple[int, ...]) -> Configuration:
        """The configuration that the row installs."""
        kind = row.c_kind or 0
        known = self._known.get((*view, kind))
        if known is not None:
            return known
        lost = self._older(view)
        content = self._contents.get(view)
        if content is None:
            self._shorten()
            content = self._contents[view] = Content(kind, tuple(sorted(members)))
        else:
            lost = bool(content.entered >> kind & 1)
        content.entered |= 1 << kind
        mask = sum(1 << member for member in set(members) if member >= 0)
        regular = kind == REGULAR
        place = Configuration(self._named(view, kind), view, mask, regular=regular, lost=lost)
        self._known[*view, kind] = place
        return place

    def _older(self, view: ViewName) -> bool:
        """Whether it is older than some view that is forgotten: it may be that one."""
        return self._forgotten is not None and view <= self._forgotten

    def _shorten(self) -> None:
        """Forget the content of the oldest view, unless somebody is still in it."""
        if len(self._contents) < CONTENTS_MAX:
            return
        view = next(iter(self._contents))
        content = self._contents.pop(view)
        place = self._known.get((*view, content.kind))
        if place is not None and place.inhabitants:
            self._contents[view] = content
        elif not self._older(view):
            self._forgotten = view

    def _move(self, process: Process, place: Configuration, regular: Configuration) -> None:
        left = (process.place, process.regular)
        process.place, process.regular = place, regular
        place.inhabitants += 1
        regular.inhabitants += 1
        for old in left:
            old.inhabitants -= 1
            if old.inhabitants <= 0 and old is not self.outside:
                self._abandoned.append(old)
        self._forget()

    def _forget(self) -> None:
        """Let abandoned views go once they are many or hold much."""
        abandoned = self._abandoned
        while abandoned and (
            len(abandoned) > ABANDONED_MAX
            or sum(len(place.records) for place in abandoned) > self._window.size
        ):
            place = abandoned.popleft()
            if place.inhabitants > 0 or place in abandoned:
                continue  # Somebody came back to it.
            self._window.forget(place)
            place.agreement = None
            for view in [view for view, known in self._known.items() if known is place]:
                del self._known[view]

    def _named(self, view: ViewName, kind: int) -> str:
        return self.findings.words.view(*view, kind)

    def _with_members(self, view: ViewName, kind: int, members: tuple[int, ...]) -> str:
        return self.findings.words.view_of(*view, kind, members)

    def _install(self, proc: int | None, view: ViewName, before: Row) -> Row | None:
        """A remembered install of a view, by this process or any, other than `before`; the
        latest."""
        for row in reversed(self.findings.recent):
            named = row.kind == Kind.INSTALL and (row.c_seq, row.c_rep) == view
            if named and proc in (None, row.proc) and row is not before:
                return row
        return None
