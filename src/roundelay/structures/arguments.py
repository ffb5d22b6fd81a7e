"""The arguments and the reply of a write: checked, turned into a command, and back.

A command is the text of a JSON list: the method's name, its version, then the arguments. With a
codec of the machine's own the list holds the sizes of the arguments instead, which follow behind a
line feed.

Most arguments are *simple*: a short text, a small number, None. What their JSON holds is what they
are, so that a look at their types replaces a check of each.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from roundelay.core.value import value
from roundelay.structures.errors import Refused
from roundelay.structures.kinds import Codec, Kind, kind_of
from roundelay.structures.values import SHORT_TEXT, dumps, encode, loads, scan

if TYPE_CHECKING:
    from roundelay.structures.machine import Machine

ALIKE_MIN = 4
"""Fewer commands are read one by one: to read them at once would take longer."""

_DONE, _REFUSED = b"\0", b"\1"
"""What a reply begins with."""
_NONE_REPLY = _DONE + b"null"


def kind_at(where: str, annotation: Any) -> Kind:
    """The kind of an annotation; TypeError that tells where it stands, if there is none."""
    try:
        return kind_of(annotation)
    except TypeError as e:
        raise TypeError(f"{where}: {e}") from None


class Arguments:
    """Those of one write of one class."""

    def __init__(
        self,
        name: str,
        version: int,
        function: Callable[..., Any],
        parameters: Sequence[inspect.Parameter],
        hints: dict[str, Any],
        codec: Codec | None,
    ) -> None:
        where = function.__qualname__
        self.method = name
        self.version = version
        """The newest of the method that this node knows."""
        self.function = function
        self.names = [parameter.name for parameter in parameters]
        self.places = {name: n for n, name in enumerate(self.names)}
        self.by_name_only = any(p.kind is p.KEYWORD_ONLY for p in parameters)
        self.plain_count = sum(p.kind is not p.KEYWORD_ONLY for p in parameters)
        self.defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        self.needed_count = len(self.names) - len(self.defaults)
        self.codec = codec
        self.annotations = [hints[name] for name in self.names]
        self.reply_annotation = hints["return"]
        self.kinds: list[Kind] = []
        if codec is None:
            self.kinds = [kind_at(f"{where}: {n}", hints[n]) for n in self.names]
            self.reply = kind_at(f"{where}: the reply", hints["return"])
        else:
            for annotation in (*self.annotations, self.reply_annotation):
                codec.check(annotation)
        self._start = (name, version)
        self._head = dumps(self._start)[:-1]
        self._tails = self._defaults_behind()
        self._simple: set[tuple[type, ...]] = set()
        """Types of arguments that were found to be simple."""
        self._simple_commands: set[tuple[type, ...]] = set()
        """The same behind the name and the version, and of all arguments."""
        self.simple_reply = frozenset[type]() if codec is not None else self.reply.simple
        """Replies of these types are what their text would be read as: numbers of 64 bits, and
        texts in ASCII."""

    def _defaults_behind(self) -> dict[int, tuple[Any, ...]]:
        """By the number of arguments that are given: the defaults of those behind them."""
        if self.by_name_only:
            return {}
        counts = range(self.needed_count, len(self.names) + 1)
        return {n: tuple(self.defaults[name] for name in self.names[n:]) for n in counts}

    def ordered(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments in the order of the parameters, defaults filled in."""
        if not kwargs and (tail := self._tails.get(len(args))) is not None:
            return (*args, *tail) if tail else tuple(args)
        if len(args) > self.plain_count:
            raise TypeError(f"{self.method} takes {self.plain_count} arguments, not {len(args)}")
        given = dict(zip(self.names, args, strict=False))
        for name, argument in kwargs.items():
            if name in given:
                raise TypeError(f"{self.method} got {name!r} twice")
            if name not in self.places:
                raise TypeError(f"{self.method} has no argument {name!r}")
            given[name] = argument
        complete = self.defaults | given
        if missing := [name for name in self.names if name not in complete]:
            raise TypeError(f"{self.method} needs {', '.join(missing)}")
        return tuple(complete[name] for name in self.names)

    def simple_command(self, arguments: tuple[Any, ...]) -> bytes | None:
        """The command, if the arguments are simple: then they need not be read from it."""
        types = (*map(type, arguments),)
        if types not in self._simple and not self._are_simple(types):
            return None
        try:
            command = encode((*self._start, *arguments)).encode()
        except ValueError:  # Half a surrogate, or a number without end.
            return None
        return command if len(command) <= SHORT_TEXT else None

    def _are_simple(self, types: tuple[type, ...]) -> bool:
        if self.codec is not None or self.by_name_only or len(types) != len(self.kinds):
            return False
        if not all(t in kind.simple for t, kind in zip(types, self.kinds, strict=True)):
            return False
        self._simple.add(types)
        return True

    def holds_simple(self, packed: Sequence[object]) -> bool:
        """Whether a short command without escapes, as JSON has it, is of this method, and its
        arguments are simple and complete."""
        types = (*map(type, packed),)
        if types not in self._simple_commands:
            fits = types[:2] == (str, int) and self._are_simple(types[2:])
            if not fits:
                return False
            self._simple_commands.add(types)
        version: Any = packed[1]
        return bool(version <= self.version)

    def hold_simple(self, columns: Sequence[Sequence[object]]) -> bool:
        """Whether these are simple and complete arguments of short commands without escapes; each
        column has one of every command."""
        if self.codec is not None or self.by_name_only or len(columns) != len(self.kinds):
            return False
        pairs = zip(self.kinds, columns, strict=True)
        return all(kind.simple.issuperset(map(type, column)) for kind, column in pairs)

    def command(self, arguments: tuple[Any, ...]) -> bytes:
        """TypeError or ValueError if an argument does not fit its annotation."""
        if self.codec is not None:
            return self._encoded(self.codec, arguments)
        if not arguments:
            return self._head + b"]"
        packed = []
        for n, kind in enumerate(self.kinds):
            try:
                packed.append(kind.pack(arguments[n]))
            except (TypeError, ValueError) as e:
                raise type(e)(*_told(e, f"{self.method}: {self.names[n]}")) from None
        return b"".join((self._head, b",", dumps(packed)[1:]))

    def _encoded(self, codec: Codec, arguments: tuple[Any, ...]) -> bytes:
        parts = [codec.encode(a, x) for a, x in zip(self.annotations, arguments, strict=True)]
        sizes = b"".join(b",%d" % len(part) for part in parts)
        return b"".join((self._head, sizes, b"]\n", *parts))

    def read(self, packed: Sequence[object], rest: bytes | None) -> tuple[Any, ...]:
        """The arguments of a command; ValueError if they do not fit. Those with defaults may be
        missing at the end, as they are in commands from before they were invented."""
        if not self.needed_count <= len(packed) <= len(self.names):
            raise ValueError(f"{len(packed)} arguments")
        if self.codec is None:
            if rest is not None:
                raise ValueError("the arguments are not JSON")
            given = [kind.unpack(item) for kind, item in zip(self.kinds, packed, strict=False)]
        else:
            given = self._decoded(self.codec, packed, rest)
        if len(given) == len(self.names):
            return tuple(given)
        missing = [self.defaults[name] for name in self.names[len(given) :]]
        return (*given, *missing)

    def call(self, machine: "Machine", given: tuple[Any, ...]) -> Any:
        """Run the write on a state."""
        if not self.by_name_only:
            return self.function(machine, *given)
        count = self.plain_count
        named = dict(zip(self.names[count:], given[count:], strict=True))
        return self.function(machine, *given[:count], **named)

    def _decoded(self, codec: Codec, sizes: Sequence[object], rest: bytes | None) -> list[Any]:
        given, at = [], 0
        for annotation, size in zip(self.annotations, sizes, strict=False):
            if rest is None or type(size) is not int or not 0 <= size <= len(rest) - at:
                raise ValueError("the arguments are not those of the codec")
            try:
                given.append(codec.decode(annotation, rest[at : at + size]))
            except Exception as e:  # Each codec has its own.
                raise ValueError(f"{type(e).__name__}: {e}") from e
            at += size
        if rest is not None and at != len(rest):
            raise ValueError("bytes are left over")
        return given

    def encode_reply(self, reply: object) -> bytes:
        """TypeError or ValueError if the reply does not fit its annotation."""
        if self.codec is not None:
            return _DONE + self.codec.encode(self.reply_annotation, reply)
        if reply is None:
            self.reply.pack(None)
            return _NONE_REPLY
        return _DONE + dumps(self.reply.pack(reply))

    def decode_reply(self, reply: bytes) -> Any:
        """What the write returned; `Refused` if it refused."""
        if reply[:1] == _REFUSED:
            raise Refused(reply[1:].decode())
        if self.codec is not None:
            return self.codec.decode(self.reply_annotation, reply[1:])
        return self.reply.decode(reply[1:])


def _told(e: Exception, where: str) -> tuple[object, ...]:
    """The arguments of an exception like `e` that tells where it happened."""
    return (*e.args[:-1], f"{where}: {e.args[-1]}") if e.args else (where,)


def read_reply(method: Arguments, reply: bytes, index: int) -> Any:
    """What the write at this index returned; `Refused`, which knows the index, if it refused."""
    try:
        return method.decode_reply(reply)
    except Refused as e:
        e.index = index
        raise


def refusal(e: Refused) -> bytes:
    """The reply of a write that refused."""
    return _REFUSED + str(e).encode(errors="replace")


def simple_text(text: bytes) -> list[Any] | None:
    """The list that begins with a text in a JSON document of at most `SHORT_TEXT` bytes without
    escapes: what it holds is within the limits of `values`, whatever it is. None if this is another
    document."""
    try:
        whole = text.decode()
        found, end = scan(whole, 0)
    except (ValueError, StopIteration, RecursionError):
        return None
    if end != len(whole) or "\\" in whole or type(found) is not list or len(found) < 2:
        return None
    return found if type(found[0]) is str else None


@value
class Alike:
    """Commands of one method of one machine, with simple arguments."""

    method: Arguments
    version: int
    rows: Iterable[tuple[Any, ...]]
    """The arguments of each."""


def read_alike(
    payloads: Sequence[bytes], head: bytes, methods: Mapping[str, Arguments]
) -> Alike | None:
    """Read many short commands that begin with `head` at once, which takes half as long as one by
    one. None if they are not of one method, or must be read one by one for another reason.

    It has to find the same as if each was read by itself, whatever is in them: what is not JSON
    alone may be JSON together. So each must be between two brackets and have no others, and no line
    feed, which therefore are only where the payloads meet.
    """
    count = len(payloads)
    if count < ALIKE_MIN or max(map(len, payloads)) > SHORT_TEXT or not head:
        return None
    joined = b",\n".join(payloads)
    texts = joined[len(head) :].replace(b",\n" + head, b",\n")
    if (
        len(joined) - len(texts) != count * len(head)
        or not (joined.startswith(head + b"[") and texts.endswith(b"]"))
        or not texts.count(b"],\n[") == texts.count(b"\n") == count - 1
        or not texts.count(b"[") == texts.count(b"]") == count
        or b"\\" in texts
    ):
        return None
    try:
        whole = texts.decode().join("[]")
        lists, end = scan(whole, 0)
        columns = list(zip(*lists, strict=True))
        name, version = columns[0][0], columns[1][0]
        method = methods[name]
        one = columns[0].count(name) == columns[1].count(version) == count
    except (ValueError, StopIteration, LookupError, TypeError):
        return None
    if end != len(whole) or len(lists) != count or not one:
        return None
    if set(map(type, columns[1])) != {int} or version > method.version:
        return None
    if not method.hold_simple(columns[2:]):
        return None
    rows = zip(*columns[2:], strict=True) if len(columns) > 2 else repeat((), count)
    return Alike(method, version, rows)


def read_command(text: bytes) -> tuple[str, int, list[object], bytes | None]:
    """Method, version, arguments or their sizes, and what stands behind the line feed. ValueError
    if this is no command."""
    head, found, rest = text.partition(b"\n")
    packed = loads(head)
    if (
        not isinstance(packed, list)
        or len(packed) < 2
        or type(packed[0]) is not str
        or type(packed[1]) is not int
    ):
        raise ValueError("no command")
    return packed[0], packed[1], packed[2:], rest if found else None
