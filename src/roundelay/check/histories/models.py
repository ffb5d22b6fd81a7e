"""What an object is when only one client uses it.

A model says what states may follow when an operation happens, given its reply. States are values
that can be compared and hashed.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

from roundelay.check.histories.history import Operation
from roundelay.core.log import NO_TERM
from roundelay.structures.errors import Refused
from roundelay.structures.machine import Machine, Now


class Model(Protocol):
    """The sequential specification of an object."""

    def start(self) -> Hashable:
        """The state before the first operation."""

    def step(self, state: Any, operation: Operation) -> tuple[bool, Hashable]:
        """Whether the operation could give its reply in this state, and the state afterwards. Of an
        operation that did not return any reply will do."""

    def needless(self, operation: Operation, rest: Sequence[Operation]) -> bool:
        """Whether `rest` has an order if it has one together with this operation. Only such
        operations are left out of what is shown."""


class _Register:
    def start(self) -> Hashable:
        return None

    def step(self, state: Any, operation: Operation) -> tuple[bool, Hashable]:
        argument, reply, known = operation.argument, operation.reply, operation.returned is not None
        match operation.op:
            case "get":
                return not known or reply == state, state
            case "set":
                return True, argument
            case "delete":
                return not known or reply == (state is not None), None
            case "setdefault":
                after = argument if state is None else state
                return not known or reply == after, after
            case "pop":
                return not known or reply == state, None
            case "compare_and_set":
                expected, new = argument
                done = state == expected
                return not known or reply == done, new if done else state
            case "set_if" | "revise":  # Versions do not show here: it may or may not have held.
                return True, state if known and reply is None else argument
        raise ValueError(f"a register has no operation {operation.op!r}")

    def needless(self, operation: Operation, rest: Sequence[Operation]) -> bool:
        if operation.op != "set":
            return operation.op == "get"
        return all(
            other.op == "set" or (other.op == "get" and other.reply != operation.argument)
            for other in rest
        )


class _Counter:
    def start(self) -> Hashable:
        return 0

    def step(self, state: Any, operation: Operation) -> tuple[bool, Hashable]:
        known = operation.returned is not None
        if operation.op == "value":
            return not known or operation.reply == state, state
        if operation.op == "add":
            after = state + operation.argument
            return not known or operation.reply == after, after
        raise ValueError(f"a counter has no operation {operation.op!r}")

    def needless(self, operation: Operation, rest: Sequence[Operation]) -> bool:
        return operation.op == "value"


class _Loan:
    def start(self) -> Hashable:
        return None

    def step(self, state: Any, operation: Operation) -> tuple[bool, Hashable]:
        if operation.op == "lend":
            return True, operation.argument
        known, reply = operation.returned is not None, operation.reply
        return not known or reply is None or reply == state, reply if known else state

    def needless(self, operation: Operation, rest: Sequence[Operation]) -> bool:
        return operation.op == "recall" and operation.reply is not None


class _Member:
    def start(self) -> Hashable:
        return False

    def step(self, state: Any, operation: Operation) -> tuple[bool, Hashable]:
        known, reply = operation.returned is not None, bool(operation.reply)
        match operation.op:
            case "include":
                return not known or reply != state, True
            case "exclude":
                return not known or reply == state, False
            case "contains":
                return not known or reply == state, state
        raise ValueError(f"a member has no operation {operation.op!r}")

    def needless(self, operation: Operation, rest: Sequence[Operation]) -> bool:
        return operation.op == "contains"


class _Highest:
    def start(self) -> Hashable:
        return 0

    def step(self, state: Any, operation: Operation) -> tuple[bool, Hashable]:
        after = max(state, operation.argument) if operation.op == "offer" else state
        return operation.returned is None or operation.reply == after, after

    def needless(self, operation: Operation, rest: Sequence[Operation]) -> bool:
        return operation.op == "highest"


class _OfMachine:
    """A machine of `structures` is its own specification. Its state is its snapshot."""

    def __init__(self, make: Callable[[], Machine]) -> None:
        self._make = make
        self._known: dict[tuple[bytes, str, str], tuple[Any, bytes]] = {}

    def start(self) -> Hashable:
        return _state(self._make())

    def step(self, state: Any, operation: Operation) -> tuple[bool, Hashable]:
        key = (state, operation.op, repr(operation.argument))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._run(state, operation)
        reply, after = found
        return operation.returned is None or operation.reply == reply, after

    def needless(self, operation: Operation, rest: Sequence[Operation]) -> bool:
        return operation.reads

    def _run(self, state: bytes, operation: Operation) -> tuple[Any, bytes]:
        made = self._make()
        made.restore([state] if state else [])
        reply = run(made, operation)
        return reply, _state(made)


def run(machine: Machine, operation: Operation, index: int = 0) -> Any:
    """Let a machine do an operation, whose argument is a tuple of arguments; the reply, or
    `Refused` as a value."""
    cls = type(machine)
    method = getattr(cls, operation.op)
    try:
        if operation.reads:
            return method.function(machine, *operation.argument)
        arguments = method.arguments(cls)
        command = arguments.command(arguments.ordered(operation.argument, {}))
        now = Now(index, NO_TERM, operation.client, 1, 0)
        return arguments.decode_reply(machine.apply(command, now))
    except Refused as e:
        return ("refused", str(e))


def _state(machine: Machine) -> bytes:
    state = machine.snapshot()
    return state if isinstance(state, bytes) else b"".join(state)


def register() -> Model:
    """One key of a map: get, set, delete, pop, setdefault, compare_and_set((expected, new)); and
    set_if, or revise, with the value alone, whose reply is something if it was set. None is
    what is there at the beginning and after a delete."""
    return _Register()


def counter() -> Model:
    """add(n), which returns the number afterwards, and value(). It begins at 0."""
    return _Counter()


def loan() -> Model:
    """One key of a map: lend(value), which ends by itself some time, and recall(). What has ended
    does not come again."""
    return _Loan()


def member() -> Model:
    """Whether one value is in a set: include, exclude, contains. It is not at the beginning."""
    return _Member()


def highest() -> Model:
    """offer(n), which returns the greatest number up to then, and highest(). It begins at 0."""
    return _Highest()


def machine(make: Callable[[], Machine]) -> Model:
    """A machine of your own, whose snapshot is one piece, and whose replies do not depend on where
    a command stands in the log. Arguments of operations are tuples."""
    return _OfMachine(make)
