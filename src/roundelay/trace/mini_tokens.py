"""The tokens of the mini-language: what a word of a text says. `mini` makes rows of them."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

from roundelay.core.effects import Kind
from roundelay.core.ids import Service
from roundelay.trace.manifest import TraceError
from roundelay.trace.schema import REGULAR, TRANSITIONAL

_NAME = r"[a-z0-9]+"
_SET = rf"\{{(?:{_NAME}(?:,{_NAME})*)?\}}"
_NUMBER = r"[0-9]{1,18}"  # Eighteen digits fit the 64 bits of a column.
_TOKEN = re.compile(
    rf"""
      (?P<end>end(?:{_SET})+)
    | (?P<node>{_NAME}) (?:
          (?P<view>\+V|~T) (?P<seq>{_NUMBER}) (?P<members>{_SET})
                            (?P<primary>!(?P<voters>{_SET})?)? (?P<able>\*)?
        | (?P<freeze>/V)    (?P<ring>{_NUMBER})
        | (?P<open>&V)      (?P<open_seq>{_NUMBER}) =(?P<base>{_NUMBER}) (?P<electors>{_SET})
                            (?P<begun>[!~])?
        | (?P<append>\+)    (?P<e1>{_NAME}(?:\.{_NUMBER})?) (?P<forgotten>~)?
        | (?P<entry>=)      (?P<e2>{_NAME}(?:\.{_NUMBER})?) @(?P<index>{_NUMBER})
                            (?:\.\.(?P<last>{_NUMBER}))? (?:/(?P<term>{_NUMBER}))?
                            (?:%(?P<digest4>\w+))?
        | (?P<state>@!?)    (?P<taken>{_NUMBER}) (?:%(?P<digest5>\w+))?
        | (?P<length>[>|<:])(?P<so_many>{_NUMBER})
        | (?P<invoke>\[)    (?P<object1>{_NAME}) \.(?P<op>{_NAME}) (?:\.(?P<arg>\w+))? (?P<stale>~)?
        | (?P<reply>\])     (?P<object2>{_NAME}) (?:\.(?P<res>\w+))? (?:@(?P<as_of>{_NUMBER}))?
        | (?P<life>X[!-]?|\^(?:(?P<stable_seq>{_NUMBER})|(?P<lost>-))?)
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
    "=": "p=a@0",
    "&": "p&V2=0{p,q}",
    "@": "p@1%x",
    ">": "p>1",
    "|": "p|1",
    "<": "p<0",
    "[": "p[o.get.x",
    "]": "p]o.y@1",
}
SERVICE_OF = {"f": Service.FIFO, "c": Service.CAUSAL, "s": Service.SAFE}
_KEYED = {"#": Kind.ORDER, "$": Kind.CONFIRM}
_BARE = {"?": Kind.RECEIVE, "-": Kind.WITHDRAW}
LENGTH_OF = {">": Kind.STORED, "|": Kind.COMMIT, "<": Kind.CUT, ":": Kind.CAUGHT}
BEGUN_OF = {None: "", "!": "lossy", "~": "follows"}
CRASH_OF = {"X": "", "X!": "power", "X-": "disk-lost"}


class Token(NamedTuple):
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
    able: bool = False
    voters: tuple[str, ...] | None = None
    service: Service = Service.AGREED
    key: tuple[int, int] | None = None
    digest: int | None = None
    level: int | None = None
    tag: str = ""
    entry: str = ""
    """The name of an entry, with its number in a named session behind a point."""
    idx: int | None = None
    count: int = 1  # type: ignore[assignment]
    obj: str = ""
    op: str | None = None
    arg: int | None = None
    res: int | None = None


def tokens_of(text: str) -> Iterator[Token]:
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


def _events(t: re.Match[str]) -> Iterator[Token]:
    """The token's events: one, but one per component for `end`."""
    node: str = t["node"]
    if t["end"]:
        for component in re.findall(_SET, t["end"]):
            yield Token(Kind.END, members=_set(component))
    elif t["view"]:
        yield Token(
            Kind.INSTALL,
            node,
            seq=int(t["seq"]),
            c_kind=REGULAR if t["view"] == "+V" else TRANSITIONAL,
            members=_set(t["members"]),
            primary=bool(t["primary"]),
            voters=None if t["voters"] is None else _set(t["voters"]),
            able=bool(t["able"]),
        )
    elif t["open"]:
        seq, base = int(t["open_seq"]), int(t["base"])
        voters, tag = _set(t["electors"]), BEGUN_OF[t["begun"]]
        yield Token(Kind.OPEN, node, seq=seq, idx=base, members=voters, tag=tag)
    elif t["append"]:
        yield Token(Kind.APPEND, node, entry=t["e1"], tag="forgotten" if t["forgotten"] else "")
    elif t["entry"]:
        first, last = int(t["index"]), int(t["last"] or t["index"])
        yield Token(
            Kind.ENTRY,
            node,
            entry=t["e2"],
            idx=first,
            count=max(last - first + 1, 1),
            seq=None if t["term"] is None else int(t["term"]),
            digest=_digest(t["digest4"]),
        )
    elif t["state"]:
        kind = Kind.SNAPSHOT if t["state"] == "@" else Kind.RESTORE
        yield Token(kind, node, idx=int(t["taken"]), digest=_digest(t["digest5"]))
    elif t["length"]:
        yield Token(LENGTH_OF[t["length"]], node, idx=int(t["so_many"]))
    elif t["invoke"]:
        arg, level = _digest(t["arg"]), 0 if t["stale"] else None
        yield Token(Kind.INVOKE, node, obj=t["object1"], op=t["op"], arg=arg, level=level)
    elif t["reply"]:
        idx = None if t["as_of"] is None else int(t["as_of"])
        yield Token(Kind.REPLY, node, obj=t["object2"], res=_digest(t["res"]), idx=idx)
    elif t["freeze"]:
        yield Token(Kind.FREEZE, node, seq=int(t["ring"]))
    elif t["life"]:
        if t["life"].startswith("X"):
            yield Token(Kind.CRASH, node, tag=CRASH_OF[t["life"]])
            return
        number = t["stable_seq"]
        yield Token(
            Kind.RECOVER,
            node,
            seq=None if number is None else int(number),
            level=0 if t["lost"] else 1,
        )
    elif t["token"]:
        yield Token(Kind.TOKEN, node, tag="acquire" if t["token"] == "(" else "release")
    elif t["originate"]:
        yield Token(
            Kind.ORIGINATE,
            node,
            t["m1"],
            members=None if t["dst"] is None else _set(t["dst"]),
            service=SERVICE_OF.get(t["service"], Service.AGREED),
            digest=_digest(t["digest1"]),
        )
    elif t["keyed"]:
        yield Token(_KEYED[t["keyed"]], node, t["m2"], key=_key(t["key2"]))
    elif t["deliver"]:
        key, digest = _key(t["key3"]), _digest(t["digest3"])
        yield Token(Kind.DELIVER, node, t["m3"], key=key, digest=digest)
    elif t["stable"]:
        yield Token(Kind.STABLE, node, t["m4"], level=int(t["level"] or 1))
    else:
        yield Token(_BARE[t["bare"]], node, t["m5"])


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
