"""The sink: hands each row to the checks that read its kind."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

from roundelay.check.names import Names, Span
from roundelay.check.online.acyclic import Acyclic
from roundelay.check.online.delivery import Integrity, SameView
from roundelay.check.online.evidence import DeliveryEvidence, Stability
from roundelay.check.online.findings import Findings, Tally, ViolationError
from roundelay.check.online.keys import Assigners, KeyBook, Keys
from roundelay.check.online.order import Fifo, Prefix
from roundelay.check.online.primacy import Primacy
from roundelay.check.online.saved import Saved, inner_parts, load, save
from roundelay.check.online.tokens import TokenExclusion
from roundelay.check.online.views import Process, Views
from roundelay.check.online.wellformed import Logs, Receipts, Sendings
from roundelay.check.online.window import EVERYONE, FORGOTTEN, OrderKey, PacketRecord, Window
from roundelay.check.primary import Lineage
from roundelay.check.verdict import Validity, Verdict
from roundelay.core.effects import Kind
from roundelay.trace.schema import LOWER_LAYER, WORLD, Row

COVERED = (
    *("T1", "T2", "T3", "T4", "M1", "M2", "M4", "M10", "D1", "D2", "D3", "D9", "D11"),
    *("O1", "O3f", "O3i", "O4", "O5", "O6", "S1", "S1d", "S4", "S6", "K1", "K3"),
)
"""The properties that can be checked while a run goes on, in the order of reports."""


class Check(Protocol):
    """A property or a few that share their state. Besides it has a method for each kind of row it
    reads, called like that kind. `repeat` takes a delivery of what the process delivered before;
    checks without it do not count such a delivery at all. `cut` takes a delivery that came piece by
    piece, as a whole, with what is known of its first messages; `unknown` one of what is so long
    forgotten that it may be a repetition. Rows of receipts are read only while some check has
    `reads_holders`, as most rows are of that kind."""

    @property
    def names(self) -> tuple[str, ...]: ...


_OnRow = Callable[[Row], None]
_OnMessage = Callable[[Row, Process, PacketRecord], None]
_OnUnknown = Callable[[int, Span], None]
_OnCut = Callable[[Row, PacketRecord | None], None]
_OnDelivery = Callable[[Row, Process, PacketRecord, OrderKey | None], None]


class OnlineChecker:
    """A trace sink that judges the rows of a run as they are written.

    Rows must come in the order of the run, as the simulator writes them. `nodes` is how many there
    are, or their names by number. `properties` may name more than is covered, a whole profile say:
    what is covered of them is checked; without it, everything is. `resilience` is the F of S6.
    `window` is how many messages (spans of messages, where rows cover several) are remembered in
    each configuration: too small, and verdicts become inconclusive when a process lags behind by
    more; too large, and it is only memory. With `strict` the row that breaks a property raises
    ViolationError, so that a simulation stops there. `on_breach` is told of every breach, up to
    `breaches_max` of each property: after so many the property is not checked any more.
    """

    def __init__(
        self,
        nodes: int | Sequence[str],
        properties: Collection[str] | None = None,
        resilience: int | None = None,
        window: int = 10_000,
        *,
        strict: bool = False,
        on_breach: Callable[[Verdict], None] | None = None,
        breaches_max: int = 1,
    ) -> None:
        if window < 1:
            raise ValueError(f"a window of {window} messages remembers nothing")
        names = [f"#{i}" for i in range(nodes)] if isinstance(nodes, int) else list(nodes)
        if properties is None:
            properties = [name for name in COVERED if name != "S6" or resilience is not None]
        self._findings = findings = Findings(
            names,
            properties,
            _raise if strict else on_breach or _ignore,
            self._arm,
            breaches_max,
        )
        self._remember = findings.recent.append  # Only rows that a witness may show.
        self._window = Window(window)
        self._table = self._window.table
        self._views = Views(findings, len(names), self._window)
        self._processes = self._views.processes
        self._logs = Logs(findings)
        self._deliveries = (
            Integrity(findings),
            SameView(findings),
            Fifo(findings),
            Keys(findings, window),
            Acyclic(findings, self._window),
            Prefix(findings, window),
            DeliveryEvidence(findings, resilience),
        )
        self._checks: tuple[Check, ...] = (
            self._logs,
            Sendings(findings),
            Receipts(findings),
            Primacy(findings),
            *self._deliveries,
            Stability(findings),
            Assigners(findings, window),
            TokenExclusion(findings, self._views),
        )
        self._log: _OnRow | None = None
        self._handlers: dict[str, _OnRow] = {}
        self._on: dict[str, list[_OnRow]] = {}
        self._on_token: _OnRow = _ignore_row
        self._on_originate: list[_OnMessage] = []
        self._on_receive: list[_OnMessage] = []
        self._on_stable: list[_OnMessage] = []
        self._on_deliver = (_nothing,) * len(self._deliveries)
        self._on_repeat: list[_OnDelivery] = []
        self._on_cut: list[_OnCut] = []
        self._on_unknown: list[_OnUnknown] = []
        self._arm()

    @property
    def violations(self) -> list[Verdict]:
        """The first breach of each property that broke, in the order in which they did."""
        return self._findings.violations

    @property
    def breaches(self) -> dict[str, int]:
        """How many breaches of each property were found, of those that broke."""
        tallies = self._findings.tallies
        return {name: tallies[name].breaches for name in COVERED if tallies[name].breaches}

    def append(self, row: Row) -> None:
        """Judge the next row of the run."""
        if self._log is not None:
            self._log(row)
        if (handler := self._handlers.get(row.kind)) is not None:
            handler(row)

    def verdicts(self) -> list[Verdict]:
        """What the rows so far show of each property that was asked for and is covered.

        After a breach of T1 to T4 the trace cannot be trusted: what would be fine is inconclusive.
        """
        tallies = self._findings.tallies
        verdicts = [tallies[name].verdict() for name in COVERED if tallies[name].watched]
        broken = next((v for v in self.violations if v.property.startswith("T")), None)
        if broken is None:
            return verdicts
        reason = f"the trace is not well-formed: {broken.reason}"
        return [
            v
            if v.validity is Validity.VIOLATED or v.property.startswith("T")
            else Verdict(v.property, Validity.INCONCLUSIVE, v.instances, reason=reason)
            for v in verdicts
        ]

    def doubt(self, properties: Collection[str], reason: str) -> None:
        """What the caller knows and the rows do not tell makes these properties uncertain from now
        on. Breaches that were found before still count."""
        for name in properties:
            tally = self._findings.tallies[name]
            self._findings.doubt(tally, reason)
            tally.closed = True
        self._arm()

    # To go on later, in another process

    def save(self) -> Saved:
        """All that it knows, as plain tuples, for `load`. Rows of its witnesses are in it."""
        return save(self._parts(), _WIRING)

    def load(self, saved: Sequence[Any]) -> None:
        """Go on where another checker was saved, which was made with the same arguments.

        ValueError if this is not what `save` returned, or was written by another version."""
        load(saved, self._parts())
        self._arm()

    def _parts(self) -> list[object]:
        findings = self._findings
        parts = (findings, self._window, self._views, *self._checks)
        return [*findings.tallies.values(), *inner_parts(parts)]

    # Which checks run

    def _arm(self) -> None:
        """Collect the methods of all checks that can still find something."""
        tallies = self._findings.tallies
        live = [
            check for check in self._checks if not all(tallies[name].closed for name in check.names)
        ]
        self._log = self._logs.append if self._logs in live else None
        self._on_originate = _methods(live, Kind.ORIGINATE)
        self._on_receive = _methods(live, Kind.RECEIVE)
        self._on_stable = _methods(live, Kind.STABLE)
        self._on_deliver = tuple(
            check.deliver if check in live else _nothing for check in self._deliveries
        )
        self._on_repeat = _methods(live, "repeat")
        self._on_cut = _methods(live, "cut")
        self._on_unknown = _methods(live, "unknown")
        lives = (Kind.INSTALL, Kind.FREEZE, Kind.CRASH, Kind.RECOVER, Kind.OPEN)
        kinds = (*lives, Kind.TOKEN, Kind.ORDER)
        self._on = {kind: _methods([self._views, *live], kind) for kind in kinds}
        self._handlers = {kind: self._other for kind, methods in self._on.items() if methods}
        if len(self._on[Kind.TOKEN]) == 1:
            self._on_token = self._on[Kind.TOKEN][0]
            self._handlers[Kind.TOKEN] = self._token
        if self._on_originate or self._on_receive or self._on_stable or self._on_unknown:
            self._handlers |= {
                Kind.ORIGINATE: self._originate,
                Kind.DELIVER: self._deliver,
                Kind.WITHDRAW: self._withdraw,
            }
        if self._on_stable:
            self._handlers[Kind.STABLE] = self._stable
        if any(getattr(check, "reads_holders", False) for check in live):
            self._handlers[Kind.RECEIVE] = self._receive

    # Rows by kind

    def _other(self, row: Row) -> None:
        if row.proc != WORLD:
            self._remember(row)
            for method in self._on[row.kind]:
                method(row)

    def _token(self, row: Row) -> None:
        """As `_other`; most rows of a ring are of this kind."""
        self._remember(row)
        self._on_token(row)

    def _originate(self, row: Row) -> None:
        if row.layer == LOWER_LAYER:
            return
        self._remember(row)
        process = self._processes[row.proc]
        record = self._window.open(row, process.regular)
        if record is not None:
            self._sent(row, process, record)
            return
        for piece, known in self._window.pieces(row, process.regular):
            self._sent(piece, process, known)
        head = self._table.get((row.m_src, row.m_inc, row.m_seq))
        if head is not None and row.digest is not None:
            head.keep_digest(row.count, row.digest)

    def _sent(self, row: Row, process: Process, record: PacketRecord) -> None:
        for method in self._on_originate:
            method(row, process, record)
        record.send(row.proc, process.regular)
        record.holders |= process.bit
        if row.digest is not None:
            record.keep_digest(row.count, row.digest)
        record.dst = EVERYONE if row.dst is None else sum(1 << node for node in set(row.dst))
        self._window.rehome(record, process.regular)

    def _receive(self, row: Row) -> None:
        if row.layer == LOWER_LAYER:
            return
        process = self._processes[row.proc]
        record = self._table.get((row.m_src, row.m_inc, row.m_seq))
        if record is None:
            record = self._window.open(row, process.regular)
        if record is None or record.count != row.count:
            for piece, _ in self._window.pieces(row, process.regular):
                self._receive(piece)
            return
        record.holders |= process.bit
        for method in self._on_receive:
            method(row, process, record)

    def _deliver(self, row: Row) -> None:
        if row.layer == LOWER_LAYER:
            return
        self._remember(row)
        process = self._processes[row.proc]
        record = self._table.get((row.m_src, row.m_inc, row.m_seq))
        if record is None:
            record = self._window.open(row, process.regular)
        if record is None or record.count != row.count:
            for piece, _ in self._window.pieces(row, process.regular):
                self._deliver(piece)
            for cut in self._on_cut:
                cut(row, self._table.get((row.m_src, row.m_inc, row.m_seq)))
            return
        bit = process.bit
        record.holders |= bit
        k2 = row.k2
        key = None if k2 is None else (row.k0 or 0, row.k1 or 0, k2, row.k3 or 0)
        if not record.delivered & bit:
            # Not a loop: each call in a place of its own is what the interpreter makes fast.
            integrity, same_view, fifo, keys, acyclic, prefix, evidence = self._on_deliver
            integrity(row, process, record, key)
            same_view(row, process, record, key)
            fifo(row, process, record, key)
            keys(row, process, record, key)
            acyclic(row, process, record, key)
            prefix(row, process, record, key)
            evidence(row, process, record, key)
            record.delivered |= bit
        elif record.memory == FORGOTTEN:
            for unknown in self._on_unknown:
                unknown(row.proc, record.span)
        else:
            for method in self._on_repeat:
                method(row, process, record, key)

    def _stable(self, row: Row) -> None:
        if row.layer == LOWER_LAYER:
            return
        process = self._processes[row.proc]
        known = self._table.get((row.m_src, row.m_inc, row.m_seq))
        if known is not None and known.count == row.count:
            for method in self._on_stable:
                method(row, process, known)
            return
        for piece, record in self._window.pieces(row, process.regular):
            for method in self._on_stable:
                method(piece, process, record)

    def _withdraw(self, row: Row) -> None:
        if row.layer == LOWER_LAYER:
            return
        process = self._processes[row.proc]
        for _, record in self._window.pieces(row, process.regular):
            record.withdrawn = record.withdrawn or record.origin == row.proc


_WIRING = (Findings, Window, Views, Tally, Names, KeyBook, Lineage)
"""Types of what joins the parts of a checker."""


def _raise(verdict: Verdict) -> None:
    raise ViolationError(verdict)


def _ignore(verdict: Verdict) -> None:
    """Nobody asked to be told of breaches."""


def _ignore_row(row: Row) -> None:
    """Nobody reads rows of this kind."""


def _nothing(row: Row, process: Process, record: PacketRecord, key: OrderKey | None) -> None:
    """In the place of a check that has nothing more to find."""


def _methods(checks: Sequence[object], kind: str) -> list[Any]:
    """What the checks do with rows of this kind."""
    return [getattr(check, kind) for check in checks if hasattr(check, kind)]
