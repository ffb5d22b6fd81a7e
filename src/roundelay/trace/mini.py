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

Names of nodes and messages are lower-case letters and digits, so that `pX` is a crash and never a
name. A `#` that starts a word starts a comment. Without any install the group is static.

`parse` says how tokens become rows. How views and messages are identified:

- A view is its number alone: every representative is 0, so that `p+V1{p,q} q+V1{q}` installs one
  view twice, with two contents.
- A message is (sender, incarnation, number). Its first originate in the text decides the sender,
  and the number counts the messages of that incarnation. This holds for the whole text: `q?a p!a`
  receives a message of p. A second originate, even by another node, belongs to the same message. A
  message that is never originated is the world's: nobody sent it.
"""

import itertools
import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias
from zlib import crc32

from roundelay.core.effects import Kind
from roundelay.core.ids import Service
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.schema import LOWER_LAYER, REGULAR, TRANSITIONAL, WORLD, Row, expand

REPRESENTATIVE = 0
"""The representative of every view: the mini-language names views by their number alone."""

_Message: TypeAlias = tuple[int, int, int]
"""m_src, m_inc, m_seq."""
_ViewRef: TypeAlias = tuple[int, int, int]
"""c_seq, c_rep, c_kind."""

_NAME = r"[a-z0-9]+"
_SET = rf"\{{(?:{_NAME}(?:,{_NAME})*)?\}}"
_NUMBER = r"[0-9]{1,18}"  # Eighteen digits fit the 64 bits of a column.
_TOKEN = re.compile(
    rf"""
      (?P<end>end(?:{_SET})+)
    | (?P<node>{_NAME}) (?:
          (?P<view>\+V|~T) (?P<seq>{_NUMBER}) (?P<members>{_SET})
                            (?P<primary>!(?P<voters>{_SET})?)?
        | (?P<freeze>/V)    (?P<ring>{_NUMBER})
        | (?P<life>X|\^(?:(?P<stable_seq>{_NUMBER})|(?P<lost>-))?)
        | (?P<token>[()])
        | (?P<originate>!)  (?P<m1>{_NAME}) (?:/(?P<service>[fcs]))? (?P<dst>{_SET})?
                            (?:%(?P<digest1>\w+))?
        | (?P<keyed>[\#$])  (?P<m2>{_NAME}) =(?P<key2>{_NUMBER}(?:\.{_NUMBER})?)
        | (?P<deliver>\.)   (?P<m3>{_NAME}) (?:=(?P<key3>{_NUMBER}(?:\.{_NUMBER})?))?
                            (?:%(?P<digest3>\w+))?
        | (?P<stable>\*)    (?P<m4>{_NAME}) (?::(?P<level>[0-9]))?
        | (?P<bare>[?-])    (?P<m5>{_NAME})
      )
    """,
    re.VERBOSE | re.ASCII,
)
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*", re.MULTILINE)
_DIGEST = re.compile(r"[0-9a-f]{8}")

_EXAMPLES = {
    "+": "p+V2{p,q}",
    "~": "p~T3{p}",
    "X": "pX",
    "^": "p^9",
    "/": "p/V3",
    "!": "p!a/s{q,r}%x",
    "?": "p?a",
    "#": "p#a=7",
    "$": "p$a=7",
    ".": "p.a=7%x",
    "*": "p*a:2",
    "-": "p-a",
    "(": "p(",
    ")": "p)",
}
_SERVICES = {"f": Service.FIFO, "c": Service.CAUSAL, "s": Service.SAFE}
_KEYED = {"#": Kind.ORDER, "$": Kind.CONFIRM}
_BARE = {"?": Kind.RECEIVE, "-": Kind.WITHDRAW}


class _Token(NamedTuple):
    """One event as written; nodes and messages are names, not numbers yet."""

    kind: Kind
    node: str = ""
    message: str = ""
    seq: int | None = None
    """The number of the view installed, of the ring being formed, or read from stable storage."""
    c_kind: int | None = None
    members: tuple[str, ...] | None = None
    """The members of a view or of a live component, or the destinations of a message."""
    primary: bool = False
    voters: tuple[str, ...] | None = None
    service: Service = Service.AGREED
    key: tuple[int, int] | None = None
    digest: int | None = None
    level: int | None = None
    tag: str = ""


def parse(text: str, run: str = "mini") -> tuple[Manifest, list[Row]]:
    """The trace that `text` writes down, as if the simulator had written it.

    `gseq` is the place of the row and `t_ns` a thousand times that. `recover` opens the next
    incarnation, in which the node has no view yet. Keys get the node's regular view for k0 and
    k1 (0, 0 without one); `=7.1` gives k2 and k3. A digest of eight hexadecimal digits is that
    CRC-32, any other text stands for a payload of these bytes. Receive and deliver rows repeat
    the service and the destinations of their message.

    Raises TraceError with the first token that is none.
    """
    tokens = list(_tokens(text))
    names = sorted(
        {name for t in tokens for name in (t.node, *(t.members or ()), *(t.voters or ())) if name}
    )
    procs = {name: i for i, name in enumerate(names)}
    messages = _identities(tokens, procs)
    rows = _rows(tokens, procs, messages)
    manifest = Manifest(
        run=run,
        nodes=tuple(names),
        mode="views" if any(t.kind is Kind.INSTALL for t in tokens) else "static",
        config={"messages": {_label(m): name for name, m in messages.items()}},
        rows=dict(Counter(f"{row.proc}.{row.inc}" for row in rows)),
    )
    return manifest, rows


def _tokens(text: str) -> Iterator[_Token]:
    for line_number, line in enumerate(_COMMENT.sub("", text).splitlines(), 1):
        for match in re.finditer(r"\S+", line):
            word = match.group()
            if (parts := _TOKEN.fullmatch(word)) is None:
                raise _not_a_token(word, line_number, match.start() + 1)
            if (twice := _repeated(word)) is not None:
                raise TraceError(
                    f"line {line_number}, column {match.start() + 1}: {word!r} names {twice} "
                    f"twice in one set; name it once"
                )
            yield from _events(parts)


def _not_a_token(word: str, line_number: int, column: int) -> TraceError:
    shown = word if len(word) <= 40 else word[:37] + "..."
    if word.startswith("end"):
        example = "end{p,q}{r}"
    else:
        operator = re.search(r"[^A-WYZa-z0-9_]", word)
        example = _EXAMPLES.get(operator.group() if operator else "", "p!a, p.a=7 or p+V2{p,q}")
    hint = ", and names are lower-case" if re.search(r"[A-UWYZ]", word) else ""
    return TraceError(
        f"line {line_number}, column {column}: {shown!r} is not an event of the mini-language; "
        f"write it like {example}{hint}"
    )


def _repeated(word: str) -> str | None:
    for group in re.findall(r"\{([^}]*)\}", word):
        name, times = Counter(group.split(",")).most_common(1)[0]
        if times > 1:
            return str(name)
    return None


def _events(t: re.Match[str]) -> Iterator[_Token]:
    """The token's events: one, but one per component for `end`."""
    node: str = t["node"]
    if t["end"]:
        for component in re.findall(_SET, t["end"]):
            yield _Token(Kind.END, members=_set(component))
    elif t["view"]:
        yield _Token(
            Kind.INSTALL,
            node,
            seq=int(t["seq"]),
            c_kind=REGULAR if t["view"] == "+V" else TRANSITIONAL,
            members=_set(t["members"]),
            primary=bool(t["primary"]),
            voters=None if t["voters"] is None else _set(t["voters"]),
        )
    elif t["freeze"]:
        yield _Token(Kind.FREEZE, node, seq=int(t["ring"]))
    elif t["life"]:
        if t["life"] == "X":
            yield _Token(Kind.CRASH, node)
            return
        seq = None if t["stable_seq"] is None else int(t["stable_seq"])
        yield _Token(Kind.RECOVER, node, seq=seq, level=0 if t["lost"] else 1)
    elif t["token"]:
        yield _Token(Kind.TOKEN, node, tag="acquire" if t["token"] == "(" else "release")
    elif t["originate"]:
        yield _Token(
            Kind.ORIGINATE,
            node,
            t["m1"],
            members=None if t["dst"] is None else _set(t["dst"]),
            service=_SERVICES.get(t["service"], Service.AGREED),
            digest=_digest(t["digest1"]),
        )
    elif t["keyed"]:
        yield _Token(_KEYED[t["keyed"]], node, t["m2"], key=_key(t["key2"]))
    elif t["deliver"]:
        key, digest = _key(t["key3"]), _digest(t["digest3"])
        yield _Token(Kind.DELIVER, node, t["m3"], key=key, digest=digest)
    elif t["stable"]:
        yield _Token(Kind.STABLE, node, t["m4"], level=int(t["level"] or 1))
    else:
        yield _Token(_BARE[t["bare"]], node, t["m5"])


def _set(text: str) -> tuple[str, ...]:
    return tuple(text[1:-1].split(",")) if len(text) > 2 else ()


def _key(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    k2, _, k3 = text.partition(".")
    return int(k2), int(k3 or 0)


def _digest(text: str | None) -> int | None:
    if text is None:
        return None
    return int(text, 16) if _DIGEST.fullmatch(text) else crc32(text.encode())


def _identities(tokens: Iterable[_Token], procs: Mapping[str, int]) -> dict[str, _Message]:
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


def _rows(
    tokens: Sequence[_Token], procs: Mapping[str, int], messages: Mapping[str, _Message]
) -> list[Row]:
    def numbers(names: tuple[str, ...] | None) -> tuple[int, ...] | None:
        return None if names is None else tuple(sorted(procs[name] for name in names))

    origins: dict[str, _Token] = {}
    for t in tokens:
        if t.kind is Kind.ORIGINATE:
            origins.setdefault(t.message, t)
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
        k0 = t.seq if t.kind in (Kind.RECOVER, Kind.FREEZE) else None
        k1 = REPRESENTATIVE if t.kind is Kind.FREEZE else None
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
                lseq=life.tick(),
                gseq=place,
                t_ns=place * 1000,
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
                level=t.level,
                c_seq=c_seq,
                c_rep=c_rep,
                c_kind=c_kind,
                members=numbers(t.members) if t.kind in (Kind.INSTALL, Kind.END) else None,
                prev_c=prev_c,
                primary=t.primary if t.kind is Kind.INSTALL else None,
                voters=numbers(t.voters),
                digest=t.digest,
            )
        )
    return rows


class _Life:
    """One incarnation of a node while its rows are made."""

    __slots__ = ("inc", "lseq", "regular", "view")

    def __init__(self, inc: int = 0) -> None:
        self.inc = inc
        self.lseq = 0
        self.view: _ViewRef | None = None
        self.regular: tuple[int, int] = (0, 0)

    def enter(self, view: _ViewRef) -> None:
        self.view = view
        if view[2] == REGULAR:
            self.regular = view[:2]

    def tick(self) -> int:
        self.lseq += 1
        return self.lseq - 1


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
_STATES = frozenset({Kind.INSTALL, Kind.FREEZE, Kind.CRASH, Kind.RECOVER, Kind.TOKEN, Kind.END})
_LETTER = {service: letter for letter, service in _SERVICES.items()}


class _Names:
    """The names under which nodes, messages and views of some rows appear in a text."""

    def __init__(self, rows: Sequence[Row], manifest: Manifest) -> None:
        self.nodes = _plain_names(manifest.nodes)
        self.messages = _message_names(rows, manifest)
        self.views = _view_numbers(rows)

    def token(self, row: Row) -> str:
        if row.kind == Kind.END:
            return f"end{self._set(row.members)}"
        node = self._node(row.proc)
        if row.kind == Kind.INSTALL:
            sign = "~T" if row.c_kind == TRANSITIONAL else "+V"
            mark = "!" if row.primary else ""
            mark += self._set(row.voters) if mark and row.voters is not None else ""
            return f"{node}{sign}{self._view(row)}{self._set(row.members)}{mark}"
        if row.kind == Kind.FREEZE:
            return f"{node}/V{self.views[row.k0 or 0, row.k1 or 0]}"
        if row.kind == Kind.CRASH:
            return f"{node}X"
        if row.kind == Kind.RECOVER:
            lost = "-" if row.level == 0 else ""
            return f"{node}^{lost or ('' if row.k0 is None else row.k0)}"
        if row.kind == Kind.TOKEN:
            return f"{node}{')' if row.tag == 'release' else '('}"
        message = self.messages[row.m_src, row.m_inc, row.m_seq]
        return f"{node}{_ABOUT_MESSAGES[Kind(row.kind)]}{message}{self._rest(row)}"

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


def _view_numbers(rows: Sequence[Row]) -> dict[tuple[int, int], int]:
    """The number of each view: its own, unless two views share one because both sides of a
    partition took it."""
    ids = {(row.c_seq or 0, row.c_rep or 0) for row in rows if row.kind == Kind.INSTALL}
    ids |= {(row.k0 or 0, row.k1 or 0) for row in rows if row.kind == Kind.FREEZE}
    if len({seq for seq, _ in ids}) == len(ids):
        return {(seq, rep): seq for seq, rep in ids}
    return {view: number for number, view in enumerate(sorted(ids), 1)}
