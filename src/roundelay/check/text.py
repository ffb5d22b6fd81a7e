"""A report for people: a table of verdicts, and a witness as one line per event."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from roundelay.check.checker import Report
from roundelay.check.log.history import entries, entry_name
from roundelay.check.model import Config, Message, Model
from roundelay.check.profiles import Standing
from roundelay.check.property import PROPERTIES
from roundelay.check.verdict import Validity, Verdict
from roundelay.core.effects import Kind
from roundelay.core.ids import Service
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import LOG_KINDS, REGULAR, WORLD, Row

WIDTH = 100
"""Columns of text; longer sentences are folded."""

_SHOWN = (Validity.VIOLATED, Validity.OUTSIDE, Validity.INCONCLUSIVE, Validity.OK)
"""The order of verdicts in a table; vacuous ones come last, in one line."""

_ALIKE = 3
"""Up to so many verdicts that have the same reason get a line each; more of them share one line."""


def table(report: Report, manifest: Manifest | None = None, *, everything: bool = False) -> str:
    """The verdicts, gravest first, as aligned text that ends with a line break.

    Vacuous verdicts fill a line of names, unless `everything` is to be seen.
    """
    shown = (*_SHOWN, Validity.VACUOUS) if everything else _SHOWN
    lines = [_heading(report, manifest), ""]
    entries = [_Line(report, verdict) for verdict in report.verdicts]
    width = max((len(entry.verdict) for entry in entries), default=7)
    lines.append(f"     {'verdict':<{width}}  instances  promise")
    for validity in shown:
        for group in _alike([e for e in entries if e.validity is validity], everything):
            lines += _lines(group, width)
    vacuous = [v.property for v in report.verdicts if v.validity is Validity.VACUOUS]
    if vacuous and not everything:
        lines += ["", *_fold(f"vacuous, never put to the test: {' '.join(vacuous)}", 0)]
    return "\n".join(lines) + "\n"


def _heading(report: Report, manifest: Manifest | None) -> str:
    counts = [
        f"{count} {validity}"
        for validity in (*_SHOWN, Validity.VACUOUS)
        if (count := sum(v.validity is validity for v in report.verdicts))
    ]
    run = f"{manifest.run}, " if manifest is not None and manifest.run else ""
    return f"{run}held to {report.profile.name}: {', '.join(counts) or 'nothing to check'}"


class _Line:
    """One verdict in words."""

    def __init__(self, report: Report, verdict: Verdict) -> None:
        self.name = verdict.property
        self.validity = verdict.validity
        optional = report.profile.standing(verdict.property) is Standing.OPTIONAL
        self.verdict = f"{verdict.validity}{' (optional)' if optional else ''}"
        self.instances = str(verdict.instances)
        self.title = PROPERTIES[verdict.property].title
        self.reason = "" if verdict.validity is Validity.VACUOUS else verdict.reason


def _alike(entries: Sequence[_Line], everything: bool) -> Iterator[list[_Line]]:
    """The lines in groups: those that only repeat one reason are told together."""
    by_reason: dict[tuple[str, str], list[_Line]] = {}
    for entry in entries:
        by_reason.setdefault((entry.verdict, entry.reason), []).append(entry)
    for group in by_reason.values():
        if everything or len(group) <= _ALIKE or not group[0].reason:
            yield from ([entry] for entry in group)
        else:
            yield group


def _lines(group: Sequence[_Line], width: int) -> Iterator[str]:
    first = group[0]
    indent = 5 + width + 2
    if len(group) == 1:
        yield f"{first.name:<5}{first.verdict:<{width}}  {first.instances:>9}  {first.title}"
    else:
        names = " ".join(entry.name for entry in group)
        head = f"{len(group):>3}  {first.verdict:<{width}}  "
        yield from textwrap.wrap(names, WIDTH, initial_indent=head, subsequent_indent=" " * indent)
    if first.reason:
        yield from _fold(first.reason, indent)


def _fold(text: str, indent: int) -> list[str]:
    space = " " * indent
    return textwrap.wrap(text, WIDTH, initial_indent=space, subsequent_indent=space)


def witness_lines(verdict: Verdict, manifest: Manifest | None) -> list[str]:
    """One line for each row of a witness: when, where, what happened."""
    names = Model(manifest, [])
    said = [_Words(names, row, verdict.property == "D11") for row in verdict.witness]
    times = [_time(row.t_ns) for row in verdict.witness]
    nodes = ["" if row.proc == WORLD else names.name(row.proc) for row in verdict.witness]
    time_width, node_width = _widest(times), _widest(nodes)
    return [
        f"{time:>{time_width}}  {node:<{node_width}}  {words.text()}".rstrip()
        for time, node, words in zip(times, nodes, said, strict=True)
    ]


def _widest(texts: Iterable[str]) -> int:
    return max(map(len, texts), default=0)


def _time(t_ns: int) -> str:
    return f"{t_ns / 1e6:.3f} ms"


class _Words:
    """What a row says happened."""

    def __init__(self, names: Model, row: Row, digest: bool) -> None:
        self._names = names
        self._row = row
        self._digest = digest

    def text(self) -> str:
        row = self._row
        match row.kind:
            case Kind.ORIGINATE:
                safe = ", safe" if row.svc == Service.SAFE else ""
                to = f" for {self._names.names(row.dst)}" if row.dst is not None else ""
                return f"originates {self._message()}{to}{safe}{self._bytes()}{self._where()}"
            case Kind.ORDER:
                return f"gives {self._message()} the key {self._key()}"
            case Kind.CONFIRM:
                return f"confirms {self._message()} with key {self._key()}"
            case Kind.DELIVER:
                key = f" with key {self._key()}" if row.k2 is not None else ""
                return f"delivers {self._message()}{key}{self._bytes()}{self._where()}"
            case Kind.STABLE:
                return f"claims {self._message()} stable, level {row.level or 1}"
            case Kind.SUBMIT | Kind.RECEIVE | Kind.WITHDRAW:
                return f"{row.kind}s {self._message()}"
            case Kind.INSTALL:
                primary = ", primary" if row.primary else ""
                if primary and row.voters is not None:
                    primary += f" with voters {self._names.names(row.voters)}"
                members = self._names.names(row.members or ())
                return f"installs {self._view()}{{{members}}}{primary}{self._vote()}"
            case Kind.GATHER:
                return f"begins to gather: {row.tag.replace('_', ' ')}"
            case Kind.FREEZE:
                ring = self._names.view(Config(row.k0 or 0, row.k1 or 0, REGULAR))
                return f"accepts the Commit token of {ring} and freezes its view"
            case Kind.CRASH:
                return f"crashes ({row.tag})" if row.tag else "crashes"
            case Kind.RECOVER:
                number = "" if row.k0 is None else f", with view number {row.k0} from storage"
                lost = ", its standing lost" if row.level == 0 else ""
                return f"recovers as incarnation {row.inc}{number}{lost}"
            case Kind.TOKEN:
                return f"{row.tag}s the token"
            case Kind.END:
                return f"a quiet end with {self._names.names(row.members or ())} up and connected"
            case kind if kind in LOG_KINDS or kind in (Kind.INVOKE, Kind.REPLY):
                return self._of_log()
            case Kind.FAULT:
                return "the faults end" if row.tag == "heal" else f"fault: {row.tag}"
        return f"{row.kind} {row.tag}".rstrip()

    def _of_log(self) -> str:
        """What happened to the replicated log, or to an object on it."""
        row, index = self._row, self._row.idx or 0
        match row.kind:
            case Kind.APPEND:
                if row.tag:
                    return f"hears that the session of {self._entries()} is forgotten"
                return f"appends {self._entries()}"
            case Kind.ENTRY:
                last = f" to {index + row.count - 1}" if row.count > 1 else ""
                term = self._names.view(Config(row.k0 or 0, row.k1 or 0, REGULAR))
                return f"gives {self._entries()} the index {index}{last}, in term {term}"
            case Kind.STORED:
                return f"has {entries(index)} on disk"
            case Kind.COMMIT:
                return f"knows {entries(index)} to be committed"
            case Kind.CUT:
                return f"cuts its log to {entries(index)}"
            case Kind.CAUGHT:
                return f"has caught up with {entries(index)}"
            case Kind.OPEN:
                view = self._names.view(Config(row.k0 or 0, row.k1 or 0, REGULAR))
                voters = self._names.names(row.members or ())
                if row.tag:
                    how = "joins a" if row.tag == "follows" else "has the mark of a new"
                    return f"{how} generation, of {view}, from index {index} on"
                return f"finds {view} open from index {index} on, with voters {voters}"
            case Kind.SNAPSHOT:
                return f"takes a snapshot after {entries(index)}{self._state()}"
            case Kind.RESTORE:
                return f"restores a snapshot after {entries(index)}{self._state()}"
            case Kind.INVOKE:
                stale = ", of any state" if row.level == 0 else ""
                return f"begins {row.op} on {row.obj}{stale}"
        as_of = "" if row.idx is None else f", as of {entries(row.idx)}"
        return f"has its answer on {row.obj}{as_of}"

    def _entries(self) -> str:
        row = self._row
        number = row.m_seq or 0
        written = self._names.manifest and self._names.manifest.config.get("entries")
        name = entry_name(self._names.words, written, row, number)
        return f"{name}..{number + row.count - 1}" if row.count > 1 else name

    def _state(self) -> str:
        row = self._row
        return "" if row.digest is None else f", state {row.digest & 0xFFFFFFFF:08x}"

    def _vote(self) -> str:
        """Where there is a log, whether the node may vote."""
        logged = self._names.manifest is not None and self._names.manifest.fsync
        return ", not able to vote" if logged and self._row.level == 0 else ""

    def _message(self) -> str:
        row = self._row
        if row.m_src is None or row.m_seq is None:
            return "a message"
        label = self._names.label(Message(row.m_src, row.m_inc or 0, row.m_seq))
        return f"{label}..{row.m_seq + row.count - 1}" if row.count > 1 else label

    def _key(self) -> str:
        row = self._row
        return f"{row.k2}.{row.k3}" if row.k3 else str(row.k2)

    def _view(self) -> str:
        row = self._row
        return self._names.view(Config(row.c_seq or 0, row.c_rep or 0, row.c_kind or 0))

    def _where(self) -> str:
        return "" if self._row.c_seq is None else f" in {self._view()}"

    def _bytes(self) -> str:
        show = self._digest and self._row.digest is not None
        return f", checksum {(self._row.digest or 0) & 0xFFFFFFFF:08x}" if show else ""
