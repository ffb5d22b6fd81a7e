"""`@write`, `@read` and `@task`: methods of a machine, and what they are on its face.

    class Accounts(Machine):
        @write
        def deposit(self, who: str, amount: int) -> int: ...

    await bank.deposit("ann", 10)        # an int
    bank.deposit.wait("ann", 10)         # the same, outside of asyncio

On a face, `bank.deposit` is a `Write`; its types are those of the method. Where the state is, the
function itself runs, called by `Machine.apply` alone.
"""

import inspect
import typing
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
    cast,
    overload,
)

from roundelay.structures.errors import Refused
from roundelay.structures.kinds import Codec, Kind, kind_of
from roundelay.structures.port import NO_OPTIONS, Call, Options, Port
from roundelay.structures.values import dumps, loads

if TYPE_CHECKING:
    from roundelay.structures.machine import Machine

P = ParamSpec("P")
R = TypeVar("R")

_DONE, _REFUSED = b"\0", b"\1"
"""What a reply begins with."""
_NONE_REPLY = _DONE + b"null"


class Method(Generic[P, R]):
    """A function of a machine's class, with what its annotations say."""

    def __init__(self, function: Callable[..., R]) -> None:
        self.function = function
        self.name = function.__name__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function  # For `inspect.signature` and for documentation tools.

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def signature(self) -> tuple[tuple[inspect.Parameter, ...], dict[str, Any]]:
        """Its parameters without `self`, and the annotations of all. TypeError if one of them
        cannot be sent."""
        where = self.function.__qualname__
        try:
            hints = typing.get_type_hints(self.function, include_extras=True)
        except NameError as e:
            raise TypeError(f"{where}: an annotation cannot be looked up: {e}") from None
        parameters = tuple(inspect.signature(self.function).parameters.values())[1:]
        for parameter in parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise TypeError(f"{where}: *{parameter.name} cannot be checked; name the arguments")
            if parameter.name not in hints:
                raise TypeError(f"{where}: argument {parameter.name!r} needs an annotation")
        if "return" not in hints:
            raise TypeError(f"{where}: the reply needs an annotation")
        return parameters, hints


def _kind(where: str, annotation: Any) -> Kind:
    try:
        return kind_of(annotation)
    except TypeError as e:
        raise TypeError(f"{where}: {e}") from None


class _Arguments:
    """Checks the arguments of one write and turns them into a command and back.

    A command is the text of a JSON list: the method's name, its version, then the arguments. With
    a codec the list holds the sizes of the arguments instead, which follow behind a line feed.
    """

    def __init__(self, method: "WriteMethod[..., Any]", codec: Codec | None) -> None:
        parameters, hints = method.signature()
        where = method.function.__qualname__
        self.method = method.name
        self.function = method.function
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
            self.kinds = [_kind(f"{where}: {n}", hints[n]) for n in self.names]
            self.reply = _kind(f"{where}: the reply", hints["return"])
        else:
            for annotation in (*self.annotations, self.reply_annotation):
                codec.check(annotation)
        self._head = dumps([method.name, method.version])[:-1]

    def ordered(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments in the order of the parameters, defaults filled in."""
        if not kwargs and len(args) == len(self.names) and not self.by_name_only:
            return tuple(args)
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
            given.append(codec.decode(annotation, rest[at : at + size]))
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


def refusal(e: Refused) -> bytes:
    """The reply of a write that refused."""
    return _REFUSED + str(e).encode(errors="replace")


class WriteMethod(Method[P, R]):
    """A method that changes the state; it runs at all nodes, at the same place of the log."""

    def __init__(self, function: Callable[..., R], version: int) -> None:
        super().__init__(function)
        self.version = version
        """Of the machine in which its meaning changed last. Commands carry it."""
        self._arguments: dict[type, _Arguments] = {}

    def arguments(self, cls: type["Machine"]) -> _Arguments:
        """Made once for each class that has or inherits this method, with its codec."""
        found = self._arguments.get(cls)
        if found is None:
            found = self._arguments[cls] = _Arguments(self, cls.codec)
        return found

    @overload
    def __get__(self, face: None, cls: type) -> Self: ...
    @overload
    def __get__(self, face: "Machine", cls: type) -> "Write[P, R]": ...
    def __get__(self, face: "Machine | None", cls: type) -> "Self | Write[P, R]":
        if face is None:
            return self
        made: Write[P, R] = Write(face.port, self.arguments(cls), NO_OPTIONS)
        vars(face)[self.name] = made  # Found there from now on, without this call.
        return made


class ReadMethod(Method[P, R]):
    """A method that looks at the state and changes nothing."""

    def __init__(self, function: Callable[..., R]) -> None:
        super().__init__(function)
        self._copies: dict[type, Callable[[Any], Any] | None] = {}

    def copy(self, cls: type["Machine"]) -> Callable[[Any], Any] | None:
        """What makes of a reply one that the caller may change; None if it cannot change. Made
        once for each class."""
        if cls not in self._copies:
            _, hints = self.signature()
            where = f"{self.function.__qualname__}: the reply"
            kind = None if cls.codec is not None else _kind(where, hints["return"])
            self._copies[cls] = None if kind is None or kind.fixed else kind.copy
        return self._copies[cls]

    @overload
    def __get__(self, face: None, cls: type) -> Self: ...
    @overload
    def __get__(self, face: "Machine", cls: type) -> "Read[P, R]": ...
    def __get__(self, face: "Machine | None", cls: type) -> "Self | Read[P, R]":
        if face is None:
            return self
        made: Read[P, R] = Read(face.port, self.name, self.function, self.copy(cls), NO_OPTIONS)
        vars(face)[self.name] = made
        return made


class TaskMethod(Method[P, R]):
    """A coroutine of the face, made of writes, reads and waiting."""

    def __init__(self, function: Callable[..., Coroutine[Any, Any, R]]) -> None:
        super().__init__(cast("Callable[..., R]", function))
        self.coroutine = function

    @overload
    def __get__(self, face: None, cls: type) -> Self: ...
    @overload
    def __get__(self, face: "Machine", cls: type) -> "Task[P, R]": ...
    def __get__(self, face: "Machine | None", cls: type) -> "Self | Task[P, R]":
        if face is None:
            return self
        made: Task[P, R] = Task(face, face.port, self.coroutine)
        vars(face)[self.name] = made
        return made


class Write(Generic[P, R]):
    """A write of a face: call it and await the reply, or `wait` for it outside of asyncio."""

    __slots__ = ("_arguments", "_options", "_port")

    def __init__(self, port: Port, arguments: _Arguments, options: Options) -> None:
        self._port = port
        self._arguments = arguments
        self._options = options

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The reply, once the command is committed and applied at this node."""
        arguments = self._arguments.ordered(args, kwargs)
        command = self._arguments.command(arguments)
        call = Call(self._arguments.method, arguments, command, self._options)
        reply: R = self._arguments.decode_reply(await self._port.write(call))
        return reply

    def wait(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The same for threads outside of the event loop."""
        return self._port.run(self(*args, **kwargs))

    def within(self, timeout_s: float) -> "Write[P, R]":
        """The same write, which fails after so many seconds: with `NotPrimaryError` if nothing was
        sent, with `UncertainError` if it may or may not be in the log."""
        return Write(self._port, self._arguments, replace(self._options, timeout_s=timeout_s))

    def once(self, session: str, number: int) -> "Write[P, R]":
        """The same write as command `number` of a named session: however often it is repeated, and
        through whatever node, it counts once and has one reply."""
        options = replace(self._options, session=session, number=number)
        return Write(self._port, self._arguments, options)


class Read(Generic[P, R]):
    """A read of a face."""

    __slots__ = ("_copy", "_function", "_name", "_options", "_port")

    def __init__(
        self,
        port: Port,
        name: str,
        function: Callable[..., R],
        copy: Callable[[R], R] | None,
        options: Options,
    ) -> None:
        self._port = port
        self._name = name
        self._function = function
        self._copy = copy
        self._options = options

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """What the state shows after everything that was committed before this call."""
        await self._port.sync(self._options)
        return self.stale(*args, **kwargs)

    def wait(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The same for threads outside of the event loop."""
        return self._port.run(self(*args, **kwargs))

    def stale(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """What the state at this node shows now. It may be old; `index` and `primary` of the face
        tell how old, and whether newer commands can be committed elsewhere."""
        port = self._port
        with port.lock:
            found = self._function(port.machine, *args, **kwargs)
            return found if self._copy is None else self._copy(found)

    def within(self, timeout_s: float) -> "Read[P, R]":
        """The same read, which raises `NotPrimaryError` if the log cannot say within so many
        seconds what is committed."""
        options = replace(self._options, timeout_s=timeout_s)
        return Read(self._port, self._name, self._function, self._copy, options)


class Task(Generic[P, R]):
    """A method of a face that is made of several calls."""

    __slots__ = ("_face", "_function", "_port")

    def __init__(
        self, face: "Machine", port: Port, function: Callable[..., Coroutine[Any, Any, R]]
    ) -> None:
        self._face = face
        self._port = port
        self._function = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        return self._function(self._face, *args, **kwargs)

    def wait(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The same for threads outside of the event loop."""
        return self._port.run(self(*args, **kwargs))


@overload
def write(function: Callable[Concatenate[Any, P], R], /) -> WriteMethod[P, R]: ...
@overload
def write(*, version: int) -> Callable[[Callable[Concatenate[Any, P], R]], WriteMethod[P, R]]: ...
def write(
    function: Callable[Concatenate[Any, P], R] | None = None, /, *, version: int = 1
) -> WriteMethod[P, R] | Callable[[Callable[Concatenate[Any, P], R]], WriteMethod[P, R]]:
    """Make a method a write: it may change the state, and `self.now` is all it sees of the world.

    `version` is that of the machine in which the method appeared or changed its meaning. A node
    that runs an older one stops at such a command; `self.now.version` tells the method which one
    wrote the command.
    """
    if function is not None:
        return WriteMethod(function, version)
    return lambda function: WriteMethod(function, version)


def read(function: Callable[Concatenate[Any, P], R], /) -> ReadMethod[P, R]:
    """Make a method a read: it changes nothing and sees nothing but the state."""
    return ReadMethod(function)


def task(function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]], /) -> TaskMethod[P, R]:
    """Make a coroutine a method of the face, which can be waited for outside of asyncio too."""
    return TaskMethod(function)


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
