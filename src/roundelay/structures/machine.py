"""`Machine`: a state that is the same at all nodes, because all apply the same commands in one
order.

    class Accounts(Machine):
        balances: dict[str, int]                  # kept in snapshots

        def __init__(self) -> None:
            self.balances = {}

        @write
        def deposit(self, who: str, amount: int) -> int:
            self.balances[who] = self.balances.get(who, 0) + amount
            return self.balances[who]

        @read
        def total(self) -> int:
            return sum(self.balances.values())

What a write does must depend on the state, its arguments and `self.now` alone: no clock, no chance,
no network, and not the order of a set.

An instance is one of two things. Where a log is applied it holds the state, and `apply`, `snapshot`
and `restore` are its life. In the hands of an application it is a *face*: it has a port instead of
a state, and its methods are calls.
"""

import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

from roundelay.core.ids import NodeId, ViewId
from roundelay.core.log import NO_TERM
from roundelay.core.value import value
from roundelay.structures.arguments import Arguments, read_command, refusal
from roundelay.structures.errors import MachineError, Refused, UpgradeError
from roundelay.structures.kinds import Codec, Kind, kind_of
from roundelay.structures.methods import Method, ReadMethod, WriteMethod
from roundelay.structures.port import Port
from roundelay.structures.values import dumps, loads

_RESERVED = frozenset(
    {
        *("apply", "begin_term", "bind", "index", "node", "now", "pass_time", "port", "primary"),
        *("newest_version", "snapshot_version", "tell", "told", "write_arguments"),
    }
)
"""Names that a face, or the machinery, needs."""
_OF_NO_SNAPSHOT = frozenset({"snapshot_version", "told", "__orig_class__"})
"""Attributes of a state that others set; Python sets the last one, on a `Map[int]()`."""


@value
class Now:
    """All that a write sees of the world: where in the log it stands, and whose it is."""

    index: int
    """Of the entry; in `on_term` that of the first entry of the term."""
    term: ViewId
    """Of the log: the view that placed the entry."""
    sender: NodeId
    """The node that appended it; empty in `on_term`."""
    session: int
    """In which it is numbered; 0 in `on_term`."""
    time_us: int
    """Log time, in microseconds since 1970: it never falls, and is the same at all nodes. A fast
    clock of one node moves it for all."""
    version: int = 1
    """Of the method, as the sender knew it."""


NOWHERE = Now(-1, NO_TERM, "", 0, 0)
"""Before the log."""


class Machine:
    """Base class of replicated state machines."""

    version: ClassVar[int] = 1
    """Grows when the snapshot changes its form. A node refuses the snapshot of a newer version; an
    older one is given to `restore`, with `snapshot_version` set."""
    codec: ClassVar[Codec | None] = None
    """How arguments, replies and kept attributes are encoded. None: as JSON."""

    told: Callable[[object], None] | None = None
    """What `tell` calls; of a state that somebody watches. A machine may look at it first, to spare
    itself what nobody is told."""

    _writes: ClassVar[dict[str, WriteMethod[..., Any]]] = {}
    _kept: ClassVar[dict[str, Any]] = {}
    _kinds: ClassVar[dict[str, Kind]] = {}

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls._writes = {}
        for base in reversed(cls.__mro__):
            for name, member in vars(base).items():
                cls._writes.pop(name, None)
                if isinstance(member, WriteMethod):
                    cls._writes[name] = member
                    member.arguments(cls)
                elif isinstance(member, ReadMethod):
                    member.copy(cls)
        cls._kept = _kept(cls)
        if taken := _RESERVED & (vars(cls).keys() | cls._kept.keys()):
            raise TypeError(f"{cls.__name__}.{min(taken)}: Machine needs this name for itself")
        cls._kinds = {} if cls.codec else {name: kind_of(a) for name, a in cls._kept.items()}

    # The state.

    def apply(self, command: bytes, now: Now) -> bytes:
        """Run a command and return its reply, as bytes for `decode_reply` of its method.

        What is no command at all is refused, at all nodes alike. `UpgradeError` if a newer version
        wrote it, `MachineError` if the method failed: then the state must not be used any more.
        """
        try:
            name, version, packed, rest = read_command(command)
        except ValueError:
            return refusal(Refused("this is no command"))
        method = self._writes.get(name)
        if method is None or version > method.version:
            raise UpgradeError(self._newer(name, version, now))
        arguments = method.arguments(type(self))
        try:
            given = arguments.read(packed, rest)
        except ValueError as e:
            raise UpgradeError(f"{self._newer(name, version, now)} ({e})") from None
        here = vars(self)
        here["now"] = now if version == now.version else replace(now, version=version)
        try:
            return arguments.encode_reply(arguments.call(self, given))
        except Refused as e:
            return refusal(e)
        except Exception as e:
            where = f"{type(self).__name__}.{name} at index {now.index}"
            raise MachineError(f"{where} failed: {type(e).__name__}: {e}") from e
        finally:
            del here["now"]

    def _newer(self, name: str, version: int, now: Now) -> str:
        return (
            f"the command {name!r}, version {version}, at index {now.index} is not one that "
            f"{type(self).__name__} has here: upgrade this node first"
        )

    def begin_term(self, now: Now, sessions: Mapping[NodeId, int]) -> None:
        """Run `on_term` at a committed mark."""
        self._run_hook("on_term", now, sessions)

    def pass_time(self, now: Now) -> None:
        """Run `on_time` if its time has come; before the command at the same index."""
        due_us = self.due_us()
        if due_us is not None and due_us <= now.time_us:
            self._run_hook("on_time", now)

    def _run_hook(self, name: str, now: Now, *arguments: object) -> None:
        here = vars(self)
        here["now"] = now
        try:
            getattr(self, name)(*arguments)
        except Exception as e:
            where = f"{type(self).__name__}.{name} at index {now.index}"
            raise MachineError(f"{where} failed: {type(e).__name__}: {e}") from e
        finally:
            del here["now"]

    def on_term(self, sessions: Mapping[NodeId, int]) -> None:
        """Called at each mark that is committed, at all nodes alike. `sessions` are those of the
        members of the new term. Whoever is not in it cannot commit anything from here on."""

    def on_time(self) -> None:
        """Called at the first entry at or after the time that `due_us` told."""

    def due_us(self) -> int | None:
        """The log time at which something ends by itself, if anything does. While it is not None a
        node appends a tick per second, so that log time goes on."""
        return None

    def snapshot(self) -> bytes | Iterable[bytes]:
        """The state as bytes, or as pieces of a copy that nothing changes any more. The same state
        must give the same bytes, and empty pieces are left out. By default the attributes that the
        class annotates."""
        here = vars(self)
        if unknown := here.keys() - self._kept.keys() - _OF_NO_SNAPSHOT:
            raise TypeError(
                f"{type(self).__name__}.{min(unknown)} would not be in the snapshot: annotate it "
                "in the class, or write snapshot() and restore()"
            )
        if self.codec is None:
            return dumps({name: kind.pack(here[name]) for name, kind in self._kinds.items()})
        return [
            b"\n".join((name.encode(), self.codec.encode(annotation, here[name])))
            for name, annotation in self._kept.items()
        ]

    def restore(self, chunks: Iterable[bytes]) -> None:
        """Become what `snapshot` was taken of. Pieces come as they were given. Called on a machine
        that was just made; attributes that an older snapshot lacks stay as they are."""
        if self.codec is None:
            packed = loads(b"".join(chunks))
            if not isinstance(packed, dict):
                raise ValueError("no snapshot")
            for name, item in packed.items():
                setattr(self, name, self._kind_of_kept(name).unpack(item))
            return
        for chunk in chunks:
            raw, _, data = chunk.partition(b"\n")
            name = raw.decode()
            self._known(name)
            try:
                kept = self.codec.decode(self._kept[name], data)
            except Exception as e:  # Each codec has its own.
                raise ValueError(f"{name!r} of the snapshot: {type(e).__name__}: {e}") from e
            setattr(self, name, kept)

    snapshot_version: int
    """In `restore`: the version of the machine that the snapshot was taken of."""

    def _kind_of_kept(self, name: str) -> Kind:
        self._known(name)
        return self._kinds[name]

    def _known(self, name: str) -> None:
        if name not in self._kept:
            raise UpgradeError(f"the snapshot has {name!r}, which {type(self).__name__} lacks here")

    def status(self) -> Mapping[str, object]:
        """What people may want to know of the state: sizes, holders. Called by nodes for `status`
        and metrics; values of a map are str, int or lists of str."""
        return {}

    def tell(self, change: object) -> None:
        """In writes and hooks: tell whoever watches this machine at this node what changed."""
        if self.told is not None:
            self.told(change)

    @classmethod
    def write_arguments(cls) -> dict[str, Arguments]:
        """The writes of this class by name."""
        return {name: write.arguments(cls) for name, write in cls._writes.items()}

    @classmethod
    def newest_version(cls) -> int:
        """Of the class and its writes: this node can apply what is not newer."""
        return max((cls.version, *(write.version for write in cls._writes.values())))

    # The face.

    @classmethod
    def bind(cls, port: Port) -> Self:
        """A face on this port."""
        face = cls.__new__(cls)
        vars(face)["port"] = port
        return face

    @property
    def index(self) -> int:
        """Entries below this index are in the state of this node; what `stale` reads are as of."""
        return self.port.index

    @property
    def primary(self) -> bool:
        """Whether this node can commit commands now. If not, `stale` reads may miss what others
        have committed since."""
        return self.port.primary

    @property
    def node(self) -> NodeId:
        """The name of this node."""
        return self.port.node

    if typing.TYPE_CHECKING:
        now: Now
        """Of the command that is being applied; in writes and hooks only."""
        port: Port
        """Of a face."""

    else:

        def __getattr__(self, name: str) -> Any:
            here, cls = vars(self), type(self).__name__
            if name == "now":
                raise AttributeError("`now` is there in writes, and nowhere else")
            if "port" not in here and (
                name == "port" or isinstance(getattr(type(self), name, None), Method)
            ):
                raise AttributeError(
                    f"this {cls} is a state, not a face: within a machine call plain methods, "
                    "which writes and reads may share"
                )
            if "port" in here:
                raise AttributeError(
                    f"a face has no state, so no {name!r}: ask by a @read method of {cls}"
                )
            raise AttributeError(f"{cls} has no attribute {name!r}")


def _kept(cls: type[Machine]) -> dict[str, Any]:
    """Attributes that a class and its bases below `Machine` annotate, in the order of the names,
    so that subclasses do not change it."""
    hints = typing.get_type_hints(cls, include_extras=True)
    of_machine = typing.get_type_hints(Machine, include_extras=True)
    kept = {
        name: hint
        for name, hint in hints.items()
        if name not in of_machine and typing.get_origin(hint) is not ClassVar
    }
    return dict(sorted(kept.items()))
