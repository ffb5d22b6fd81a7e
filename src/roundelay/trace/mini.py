"""A language for traces that fit on a line: one token per event, from left to right in time.

    p+V2{p,q}     p installs regular view 2       p+V2{p}!      flagged primary
    p~T3{p}       p installs transitional view 3  p+V2{p}!{p,q} the same, with its voters p and q
    pX p^ p^9     crash, recover (9 from storage) p^-           recover, its standing lost
    p/V3          p accepts the Commit token of ring 3: it freezes its old view
    p!a           p originates a                  p!a/s{q,r}%x  safe (/f fifo, /c causal), for q
    p?a           p receives a                                  and r alone, digest of payload x
    p#a=7 p$a=7   p assigns, confirms key 7       p.a p.a=7%x   p delivers a, key and digest known
    p*a p*a:2     p claims a stable, level 1, 2   p-a           p withdraws a
    p( p)         p acquires, releases the token  end{p,q}{r}   quiet end, live components

Of the replicated log:

    p+a           p appends a                     p=a@0         a gets index 0 at p
    p>1           1 entry is stored               p|1           1 is known to be committed
    p<0           cut: none is left               p:1           p has caught up: it has 1
    p&V2=1{p,q}   view 2 opens at base 1, with these voters     p+V2{p,q}!{p,q}* p may vote, and
                  those without the star, in a text that has one, may not
    pX! pX-       power cut, disk lost            p@1%x p@!1%x  snapshot, restore of state x at 1
    p[o.get.x     p begins get(x) on o            p]o.y@1       the reply y, as of 1 entry
    p[o.get.x~    the same, any state will do

An entry can tell more: `p=a@0/3%x` is of term 3, with the digest of x, `p=a@0..3` four entries
from a on, and `p=s.7@0` number 7 of the session that clients named s.

Names of nodes and messages are lower-case letters and digits, so that `pX` is a crash and never a
name. A `#` that starts a word starts a comment. Without any install the group is static.

`parse` says how tokens become rows. How views and messages are identified:

- A view is its number alone: every representative is 0, so that `p+V1{p,q} q+V1{q}` installs one
  view twice, with two contents.
- A message is (sender, incarnation, number). Its first originate in the text decides the sender,
  and the number counts the messages of that incarnation. This holds for the whole text: `q?a p!a`
  receives a message of p. A second originate, even by another node, belongs to the same message. A
  message that is never originated is the world's: nobody sent it.
- An entry is (session, number). Its first append in the text decides: the session is that of this
  life of the node, and numbers count what it appends. One that is never appended is number 0 of a
  named session of its own. The term is the node's regular view.
- A reply belongs to the oldest operation on its object that the node has not answered.
"""

import itertools
import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from roundelay.core.effects import Kind
from roundelay.core.ids import Service
from roundelay.core.log import NAMED
from roundelay.trace.manifest import Manifest
from roundelay.trace.mini_tokens import BEGUN_OF, CRASH_OF, LENGTH_OF, SERVICE_OF, Token, tokens_of
from roundelay.trace.schema import (
    ENTRY_KINDS,
    LOG_KINDS,
    LOG_LAYER,
    LOWER_LAYER,
    REGULAR,
    TRANSITIONAL,
    WORLD,
    Row,
    expand,
)

REPRESENTATIVE = 0
"""The representative of every view: the mini-language names views by their number alone."""

_Message: TypeAlias = tuple[int, int, int]
"""m_src, m_inc, m_seq."""
_ViewRef: TypeAlias = tuple[int, int, int]
"""c_seq, c_rep, c_kind."""


def parse(text: str, run: str = "mini") -> tuple[Manifest, list[Row]]:
    """The trace that `text` writes down, as if the simulator had written it.

    `gseq` is the place of the row and `t_ns` a thousand times that. `recover` opens the next
    incarnation, in which the node has no view yet. Keys get the node's regular view for k0 and
    k1 (0, 0 without one); `=7.1` gives k2 and k3. A digest of eight hexadecimal digits is that
    CRC-32, any other text stands for a payload of these bytes. Receive and deliver rows repeat
    the service and the destinations of their message.

    Raises TraceError with the first token that is none.
    """
    tokens = list(tokens_of(text))
    names = sorted(
        {name for t in tokens for name in (t.node, *(t.members or ()), *(t.voters or ())) if name}
    )
    procs = {name: i for i, name in enumerate(names)}
    messages = _identities(tokens, procs)
    entries = _entry_identities(tokens, procs)
    rows = _rows(tokens, procs, messages, entries)
    config = {"messages": {_label(m): name for name, m in messages.items()}}
    if entries:
        config["entries"] = {f"{e.obj}.{e.number}": name for name, e in entries.items()}
    manifest = Manifest(
        run=run,
        nodes=tuple(names),
        mode="views" if any(t.kind is Kind.INSTALL for t in tokens) else "static",
        config=config,
        fsync="always" if any(t.kind in LOG_KINDS or t.able for t in tokens) else "",
        rows=dict(Counter(f"{row.proc}.{row.inc}" for row in rows)),
    )
    return manifest, rows


def _identities(tokens: Iterable[Token], procs: Mapping[str, int]) -> dict[str, _Message]:
    """The identity of each message, from the whole text: a message may be received before its
    originate."""
    incarnation: Counter[str] = Counter()
    sent: Counter[tuple[int, int]] = Counter()
    found: dict[str, _Message] = {}
    mentioned: dict[str, None] = {}
    for t in tokens:
        if t.kind is Kind.RECOVER:
            incarnation[t.node] += 1
        if t.message:
            mentioned[t.message] = None
        if t.kind is Kind.ORIGINATE and t.message not in found:
            sender = procs[t.node], incarnation[t.node]
            found[t.message] = (*sender, sent[sender])
            sent[sender] += 1
    orphans = [name for name in mentioned if name not in found]
    return found | {name: (WORLD, 0, i) for i, name in enumerate(orphans)}


class _Entry(NamedTuple):
    """Who appended an entry, and its number in which session."""

    sender: int
    incarnation: int
    number: int
    obj: str


def _entry_identities(tokens: Iterable[Token], procs: Mapping[str, int]) -> dict[str, _Entry]:
    """The identity of each entry, from the whole text."""
    incarnation: Counter[str] = Counter()
    appended: Counter[tuple[int, int]] = Counter()
    found: dict[str, _Entry] = {}
    mentioned: dict[str, int] = {}
    for t in tokens:
        if t.kind is Kind.RECOVER:
            incarnation[t.node] += 1
        if not t.entry:
            continue
        mentioned.setdefault(t.entry, procs[t.node])
        if t.kind is Kind.APPEND and t.entry not in found and "." not in t.entry:
            life = procs[t.node], incarnation[t.node]
            obj = f"{life[0] + 1:08x}{life[1]:08x}"
            found[t.entry] = _Entry(*life, appended[life], obj)
            appended[life] += 1
    named: dict[str, int] = {}
    for entry, sender in mentioned.items():
        if entry not in found:
            name, _, number = entry.partition(".")
            session = NAMED | named.setdefault(name, len(named))
            found[entry] = _Entry(sender, 0, int(number or 0), f"{session:016x}")
    return found


def _rows(
    tokens: Sequence[Token],
    procs: Mapping[str, int],
    messages: Mapping[str, _Message],
    entries: Mapping[str, _Entry],
) -> list[Row]:
    def numbers(names: tuple[str, ...] | None) -> tuple[int, ...] | None:
        return None if names is None else tuple(sorted(procs[name] for name in names))

    origins: dict[str, Token] = {}
    for t in tokens:
        if t.kind is Kind.ORIGINATE:
            origins.setdefault(t.message, t)
    told = any(t.able for t in tokens)  # Then the text says of every node whether it may vote.
    lives: dict[int, _Life] = {}
    rows: list[Row] = []
    for place, t in enumerate(tokens):
        proc = procs[t.node] if t.node else WORLD
        life = lives.setdefault(proc, _Life())
        prev_c = None
        if t.kind is Kind.RECOVER:
            life = lives[proc] = _Life(life.inc + 1)
        elif t.kind is Kind.INSTALL:
            assert t.seq is not None
            assert t.c_kind is not None
            prev_c = life.view
            life.enter((t.seq, REPRESENTATIVE, t.c_kind))

        c_seq, c_rep, c_kind = life.view or (None, None, None)
        m_src, m_inc, m_seq = messages[t.message] if t.message else (None, None, None)
        k0: int | None = t.seq if t.kind in (Kind.RECOVER, Kind.FREEZE, Kind.OPEN) else None
        k1: int | None = REPRESENTATIVE if t.kind in (Kind.FREEZE, Kind.OPEN) else None
        obj = t.obj or None
        if t.entry:
            m_src, m_inc, m_seq, obj = entries[t.entry]
        if t.kind is Kind.ENTRY:
            k0, k1 = life.regular if t.seq is None else (t.seq, REPRESENTATIVE)
        k2 = k3 = None
        if t.key is not None:
            (k0, k1), (k2, k3) = life.regular, t.key
        # Receive and deliver rows repeat the service and destinations of the originate row.
        origin = t if t.kind is Kind.ORIGINATE else None
        if t.kind in (Kind.RECEIVE, Kind.DELIVER):
            origin = origins.get(t.message)
        rows.append(
            Row(
                kind=t.kind.value,
                proc=proc,
                inc=life.inc,
                lseq=life.lseq,
                gseq=place,
                t_ns=place * 1000,
                layer=_layer(t.kind),
                tag=t.tag,
                m_src=m_src,
                m_inc=m_inc,
                m_seq=m_seq,
                svc=None if origin is None else int(origin.service),
                dst=None if origin is None else numbers(origin.members),
                k0=k0,
                k1=k1,
                k2=k2,
                k3=k3,
                level=int(t.able) if told and t.kind is Kind.INSTALL else t.level,
                c_seq=c_seq,
                c_rep=c_rep,
                c_kind=c_kind,
                members=numbers(t.members) if t.kind in _WITH_MEMBERS else None,
                prev_c=prev_c,
                primary=t.primary if t.kind is Kind.INSTALL else None,
                voters=numbers(t.voters),
                digest=t.digest,
                count=t.count,
                cause=life.call(t, life.lseq),
                idx=t.idx,
                obj=obj,
                op=t.op,
                arg=t.arg,
                res=t.res,
            )
        )
        life.lseq += 1
    return rows


_WITH_MEMBERS = frozenset({Kind.INSTALL, Kind.END, Kind.OPEN})


def _layer(kind: Kind) -> str:
    return LOG_LAYER if kind in LOG_KINDS else "to"


class _Life:
    """One incarnation of a node while its rows are made."""

    __slots__ = ("calls", "inc", "lseq", "regular", "view")

    def __init__(self, inc: int = 0) -> None:
        self.inc = inc
        self.lseq = 0
        self.view: _ViewRef | None = None
        self.regular: tuple[int, int] = (0, 0)
        self.calls: dict[str, list[int]] = {}
        """By object: the operations without a reply."""

    def enter(self, view: _ViewRef) -> None:
        self.view = view
        if view[2] == REGULAR:
            self.regular = view[:2]

    def call(self, t: Token, lseq: int) -> int | None:
        """Of a reply: the row of the operation that it ends."""
        waiting = self.calls.setdefault(t.obj, [])
        if t.kind is Kind.INVOKE:
            waiting.append(lseq)
        return waiting.pop(0) if t.kind is Kind.REPLY and waiting else None


def _label(message: _Message) -> str:
    """A message as a key of the manifest, which keeps the names of messages."""
    return ".".join(map(str, message))


def render(rows: Iterable[Row], manifest: Manifest) -> str:
    """The rows as one line of the mini-language, for people: a witness, a small scenario.

    Rows that `parse` made come back as the same text. Of other rows it writes what the language
    has: frames, faults, timers and the layer below are left out, node names are reduced to letters
    and digits, messages are called a, b, c in order of appearance, and views are numbered anew if
    two share a number.
    """
    shown = [
        row
        for row in expand(rows)
        if row.kind in _STATES
        or row.kind in LOG_KINDS
        or (row.kind in _ABOUT_MESSAGES and row.m_seq is not None and row.layer != LOWER_LAYER)
    ]
    names = _Names(shown, manifest)
    tokens: list[str] = []
    previous = ""
    for row in shown:
        token = names.token(row)
        if row.kind == previous == Kind.END:
            tokens[-1] += token.removeprefix("end")
        else:
            tokens.append(token)
        previous = row.kind
    return " ".join(tokens)


_ABOUT_MESSAGES = {
    Kind.ORIGINATE: "!",
    Kind.RECEIVE: "?",
    Kind.ORDER: "#",
    Kind.CONFIRM: "$",
    Kind.DELIVER: ".",
    Kind.STABLE: "*",
    Kind.WITHDRAW: "-",
}
_STATES = frozenset(
    {
        Kind.INSTALL,
        Kind.FREEZE,
        Kind.CRASH,
        Kind.RECOVER,
        Kind.TOKEN,
        Kind.END,
        Kind.INVOKE,
        Kind.REPLY,
    }
)
_LENGTH_SIGN = {kind: sign for sign, kind in LENGTH_OF.items()}
_CRASH_SIGN = {how: sign for sign, how in CRASH_OF.items()}
_LETTER = {service: letter for letter, service in SERVICE_OF.items()}


class _Names:
    """The names under which nodes, messages and views of some rows appear in a text."""

    def __init__(self, rows: Sequence[Row], manifest: Manifest) -> None:
        self.nodes = _plain_names(manifest.nodes)
        self.log = bool(manifest.fsync)
        self.messages = _message_names(rows, manifest)
        self.entries = _entry_names(rows, manifest)
        self.views = _view_numbers(rows)

    def token(self, row: Row) -> str:
        if row.kind == Kind.END:
            return f"end{self._set(row.members)}"
        node = self._node(row.proc)
        if row.kind == Kind.INSTALL:
            sign = "~T" if row.c_kind == TRANSITIONAL else "+V"
            mark = "!" if row.primary else ""
            mark += self._set(row.voters) if mark and row.voters is not None else ""
            mark += "*" if self.log and row.level else ""
            return f"{node}{sign}{self._view(row)}{self._set(row.members)}{mark}"
        if row.kind in LOG_KINDS or row.kind in (Kind.INVOKE, Kind.REPLY):
            return node + self._of_log(row)
        if row.kind == Kind.FREEZE:
            return f"{node}/V{self.views[row.k0 or 0, row.k1 or 0]}"
        if row.kind == Kind.CRASH:
            return node + _CRASH_SIGN.get(row.tag, "X")
        if row.kind == Kind.RECOVER:
            lost = "-" if row.level == 0 else ""
            return f"{node}^{lost or ('' if row.k0 is None else row.k0)}"
        if row.kind == Kind.TOKEN:
            return f"{node}{')' if row.tag == 'release' else '('}"
        message = self.messages[row.m_src, row.m_inc, row.m_seq]
        return f"{node}{_ABOUT_MESSAGES[Kind(row.kind)]}{message}{self._rest(row)}"

    def _of_log(self, row: Row) -> str:
        digest = "" if row.digest is None else f"%{row.digest & 0xFFFFFFFF:08x}"
        at = "" if row.idx is None else f"@{row.idx}"
        if row.kind == Kind.OPEN:
            view = self.views[row.k0 or 0, row.k1 or 0]
            begun = next((sign or "" for sign, tag in BEGUN_OF.items() if tag == row.tag), "")
            return f"&V{view}={row.idx}{self._set(row.members)}{begun}"
        if row.kind == Kind.APPEND:
            return f"+{self.entries[row.obj, row.m_seq]}{'~' if row.tag else ''}"
        if row.kind == Kind.ENTRY:
            term = self._term(row)
            last = "" if row.count == 1 else f"..{(row.idx or 0) + row.count - 1}"
            return f"={self.entries[row.obj, row.m_seq]}{at}{last}{term}{digest}"
        if row.kind in (Kind.SNAPSHOT, Kind.RESTORE):
            return f"@{'!' if row.kind == Kind.RESTORE else ''}{row.idx}{digest}"
        if row.kind == Kind.INVOKE:
            rest = "" if row.arg is None else f".{row.arg & 0xFFFFFFFF:08x}"
            return f"[{_plain(row.obj)}.{_plain(row.op)}{rest}{'~' if row.level == 0 else ''}"
        if row.kind == Kind.REPLY:
            rest = "" if row.res is None else f".{row.res & 0xFFFFFFFF:08x}"
            return f"]{_plain(row.obj)}{rest}{at}"
        return f"{_LENGTH_SIGN[Kind(row.kind)]}{row.idx}"

    def _term(self, row: Row) -> str:
        """The term of an entry, unless it is the regular view that the node is in."""
        term = row.k0 or 0, row.k1 or 0
        if row.c_kind == REGULAR and term == (row.c_seq, row.c_rep):
            return ""
        if term not in self.views:
            return ""
        return f"/{self.views[term]}"

    def _rest(self, row: Row) -> str:
        """What follows the name of the message."""
        if row.kind == Kind.STABLE:
            return "" if row.level in (None, 1) else f":{row.level}"
        rest = ""
        if row.kind == Kind.ORIGINATE:
            rest += f"/{_LETTER[Service(row.svc)]}" if row.svc in _LETTER else ""
            rest += "" if row.dst is None else self._set(row.dst)
        if row.kind in (Kind.ORDER, Kind.CONFIRM, Kind.DELIVER) and row.k2 is not None:
            rest += f"={row.k2}.{row.k3}" if row.k3 else f"={row.k2}"
        if row.kind in (Kind.ORIGINATE, Kind.DELIVER) and row.digest is not None:
            rest += f"%{row.digest & 0xFFFFFFFF:08x}"
        return rest

    def _node(self, proc: int) -> str:
        return self.nodes[proc] if 0 <= proc < len(self.nodes) else f"n{proc % 2**15}"

    def _view(self, row: Row) -> int:
        return self.views[row.c_seq or 0, row.c_rep or 0]

    def _set(self, procs: tuple[int, ...] | None) -> str:
        return "{" + ",".join(self._node(proc) for proc in procs or ()) + "}"


def _plain_names(names: Sequence[str]) -> list[str]:
    plain = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in names]
    if "" in plain or len(set(plain)) < len(plain):
        return [f"n{i}" for i in range(len(names))]
    return plain


def _message_names(
    rows: Iterable[Row], manifest: Manifest
) -> dict[tuple[int | None, int | None, int | None], str]:
    given = manifest.config.get("messages")
    given = given if isinstance(given, dict) else {}
    letters = (
        letter + (str(round_) if round_ else "")
        for round_ in itertools.count()
        for letter in string.ascii_lowercase
    )
    free = (name for name in letters if name not in given.values())
    names: dict[tuple[int | None, int | None, int | None], str] = {}
    for row in rows:
        message = row.m_src, row.m_inc, row.m_seq
        if row.kind in _ABOUT_MESSAGES and message not in names:
            names[message] = given.get(".".join(map(str, message))) or next(free)
    return names


def _plain(name: str | None) -> str:
    return re.sub(r"[^a-z0-9]", "", (name or "").lower()) or "o"


def _entry_names(
    rows: Iterable[Row], manifest: Manifest
) -> dict[tuple[str | None, int | None], str]:
    """Names of the first entries of rows: those of the text, or numbers in named sessions."""
    given = manifest.config.get("entries")
    given = given if isinstance(given, dict) else {}
    names: dict[tuple[str | None, int | None], str] = {}
    sessions: dict[str | None, str] = {}
    for row in rows:
        entry = row.obj, row.m_seq
        if row.kind in ENTRY_KINDS and entry not in names:
            session = sessions.setdefault(row.obj, f"s{len(sessions)}")
            names[entry] = given.get(f"{row.obj}.{row.m_seq}") or f"{session}.{row.m_seq}"
    return names


def _view_numbers(rows: Sequence[Row]) -> dict[tuple[int, int], int]:
    """The number of each view: its own, unless two views share one because both sides of a
    partition took it."""
    ids = {(row.c_seq or 0, row.c_rep or 0) for row in rows if row.kind == Kind.INSTALL}
    named = (Kind.FREEZE, Kind.OPEN)
    ids |= {(row.k0 or 0, row.k1 or 0) for row in rows if row.kind in named}
    ids |= {(row.k0, row.k1 or 0) for row in rows if row.kind == Kind.ENTRY and row.k0}
    if len({seq for seq, _ in ids}) == len(ids):
        return {(seq, rep): seq for seq, rep in ids}
    return {view: number for number, view in enumerate(sorted(ids), 1)}
