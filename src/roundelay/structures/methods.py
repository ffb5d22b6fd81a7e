"""`@write`, `@read`, `@task` and `@stream`: methods of a machine, and what they are on its face.

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
from collections.abc import Callable, Coroutine
from dataclasses import replace
from types import MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    cast,
    overload,
)

from roundelay.structures.arguments import Arguments, kind_at
from roundelay.structures.port import NO_OPTIONS, Options, Placed, Port, Stale
from roundelay.structures.watcher import BlockingWatcher, Watcher

if TYPE_CHECKING:
    from roundelay.structures.machine import Machine

P = ParamSpec("P")
R = TypeVar("R")


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


class WriteMethod(Method[P, R]):
    """A method that changes the state; it runs at all nodes, at the same place of the log."""

    def __init__(self, function: Callable[..., R], version: int) -> None:
        super().__init__(function)
        self.version = version
        """Of the machine in which its meaning changed last. Commands carry it."""
        self._arguments: dict[type, Arguments] = {}

    def arguments(self, cls: type["Machine"]) -> Arguments:
        """Made once for each class that has or inherits this method, with its codec."""
        found = self._arguments.get(cls)
        if found is None:
            found = self._arguments[cls] = Arguments(
                self.name, self.version, self.function, *self.signature(), cls.codec
            )
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
            kind = None if cls.codec is not None else kind_at(where, hints["return"])
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


class OnPort(Protocol):
    """A face, or something of its: a turn, say."""

    @property
    def port(self) -> Port: ...


class TaskMethod(Method[P, R]):
    """A coroutine of a face, or of something that a face gave; made of writes, reads and
    waiting."""

    def __init__(self, function: Callable[..., Coroutine[Any, Any, R]]) -> None:
        super().__init__(cast("Callable[..., R]", function))
        self.coroutine = function

    @overload
    def __get__(self, face: None, cls: type) -> Self: ...
    @overload
    def __get__(self, face: OnPort, cls: type) -> "Task[P, R]": ...
    def __get__(self, face: OnPort | None, cls: type) -> "Self | Task[P, R]":
        if face is None:
            return self
        return Task(face.port, MethodType(self.coroutine, face))


class StreamMethod(Method[P, R]):
    """A method of a face by which something is watched."""

    def __init__(self, function: Callable[..., Watcher[R]]) -> None:
        super().__init__(cast("Callable[..., R]", function))
        self.begin = function

    @overload
    def __get__(self, face: None, cls: type) -> Self: ...
    @overload
    def __get__(self, face: OnPort, cls: type) -> "Stream[P, R]": ...
    def __get__(self, face: OnPort | None, cls: type) -> "Self | Stream[P, R]":
        if face is None:
            return self
        return Stream(face.port, MethodType(self.begin, face))


class Write(Generic[P, R]):
    """A write of a face: call it and await the reply, or `wait` for it outside of asyncio."""

    __slots__ = ("_arguments", "_options", "_port")

    def __init__(self, port: Port, arguments: Arguments, options: Options) -> None:
        self._port = port
        self._arguments = arguments
        self._options = options

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The reply, once the command is committed and applied at this node."""
        given = self._arguments.ordered(args, kwargs)
        reply: R = await self._port.write(self._arguments, given, self._options)
        return reply

    def wait(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The same for threads outside of the event loop."""
        return self._port.run(self(*args, **kwargs))

    def within(self, timeout_s: float) -> "Write[P, R]":
        """The same write, which fails after so many seconds: with `NotPrimaryError` if nothing was
        sent, with `UncertainError` if it may or may not be in the log."""
        return Write(self._port, self._arguments, replace(self._options, timeout_s=timeout_s))

    @property
    def placed(self) -> "Task[P, Placed[R]]":
        """The same write; its reply with its index in the log."""
        return Task(self._port, self._placed)

    async def _placed(self, *args: P.args, **kwargs: P.kwargs) -> Placed[R]:
        given = self._arguments.ordered(args, kwargs)
        options = replace(self._options, placed=True)
        found: Placed[R] = await self._port.write(self._arguments, given, options)
        return found

    def once(self, session: str, number: int) -> "Write[P, R]":
        """The same write as command `number` of a named session: however often it is repeated, and
        through whatever node, it counts once and has one reply."""
        options = replace(self._options, session=session, number=number)
        return Write(self._port, self._arguments, options)


class Read(Generic[P, R]):
    """A read of a face."""

    __slots__ = ("_copy", "_function", "_name", "_options", "_port", "stale")

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
        self.stale: StaleRead[P, R] = StaleRead(port, function, copy)
        """What the state at this node shows now, without asking anybody."""

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """What the state shows after everything that was committed before this call."""
        await self._port.sync(self._options)
        return self.stale(*args, **kwargs)

    def wait(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The same for threads outside of the event loop."""
        return self._port.run(self(*args, **kwargs))

    @property
    def placed(self) -> "Task[P, Placed[R]]":
        """The same read; what it shows with how many entries it has seen."""
        return Task(self._port, self._placed)

    async def _placed(self, *args: P.args, **kwargs: P.kwargs) -> Placed[R]:
        await self._port.sync(self._options)
        with self._port.lock:
            return Placed(self.stale(*args, **kwargs), self._port.index)

    def within(self, timeout_s: float) -> "Read[P, R]":
        """The same read, which raises `NotPrimaryError` if the log cannot say within so many
        seconds what is committed."""
        options = replace(self._options, timeout_s=timeout_s)
        return Read(self._port, self._name, self._function, self._copy, options)


class StaleRead(Generic[P, R]):
    """A read of what this node knows."""

    __slots__ = ("_copy", "_function", "_port")

    def __init__(
        self, port: Port, function: Callable[..., R], copy: Callable[[R], R] | None
    ) -> None:
        self._port = port
        self._function = function
        self._copy = copy

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """What the state at this node shows now. It may be old; `placed` tells how old."""
        port = self._port
        with port.lock:
            found = self._function(port.machine, *args, **kwargs)
            return found if self._copy is None else self._copy(found)

    def placed(self, *args: P.args, **kwargs: P.kwargs) -> Stale[R]:
        """The same, with how many entries the state had, and whether newer commands can be
        committed elsewhere."""
        port = self._port
        primary = port.primary  # Asked first: then the state is not older than the answer.
        with port.lock:
            return Stale(self(*args, **kwargs), port.index, primary)


class Task(Generic[P, R]):
    """A method of a face that is made of several calls."""

    __slots__ = ("_function", "_port")

    def __init__(self, port: Port, function: Callable[P, Coroutine[Any, Any, R]]) -> None:
        self._port = port
        self._function = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        return self._function(*args, **kwargs)

    def wait(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The same for threads outside of the event loop."""
        return self._port.run(self(*args, **kwargs))


class Stream(Generic[P, R]):
    """A method of a face by which something is watched: call it, and `async for` what it returns;
    or `for` what `wait` returns."""

    __slots__ = ("_begin", "_port")

    def __init__(self, port: Port, begin: Callable[P, Watcher[R]]) -> None:
        self._port = port
        self._begin = begin

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Watcher[R]:
        """It is watched from this call on."""
        return self._begin(*args, **kwargs)

    def wait(self, *args: P.args, **kwargs: P.kwargs) -> BlockingWatcher[R]:
        """The same for threads outside of the event loop."""

        async def begun() -> Watcher[R]:
            return self(*args, **kwargs)

        return BlockingWatcher(self._port, self._port.run(begun()))


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


def stream(function: Callable[Concatenate[Any, P], Watcher[R]], /) -> StreamMethod[P, R]:
    """Make a method that begins to watch something one of the face, which can be waited for
    outside of asyncio too."""
    return StreamMethod(function)
