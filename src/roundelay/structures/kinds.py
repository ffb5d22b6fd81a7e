"""Annotations as kinds: each checks values, and turns them into what JSON can hold and back.

A kind is made when the class of a machine is made, so an annotation that no value can be checked
against is an error there, and not when the first command arrives.

    annotation                                  in JSON
    None, bool, int, float, str                 itself
    bytes                                       text, base64
    list[T], tuple[T, ...], tuple[A, B]         list
    set[T], frozenset[T]                        list, ordered by the texts of its members
    dict[str, T]                                object
    dict[K, T]                                  list of pairs
    T | None                                    null or T
    A | B                                       list: the number of the alternative, the value
    Literal["x", 1], NewType, Annotated         as the values themselves
    an Enum                                     the name of its member
    a NamedTuple, dataclass or TypedDict        object with its fields
    Any, object, Value, a type variable         any value of `values`
"""

import dataclasses
import enum
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from roundelay.structures.values import (
    Value,
    checked_float,
    checked_int,
    checked_text,
    copy_value,
    dumps,
    loads,
    pack_bytes,
    pack_value,
    unpack_bytes,
    unpack_value,
)


class Codec(Protocol):
    """Encodes the values of a machine in a way of its own. The same value must become the same
    bytes at every node."""

    def check(self, annotation: Any) -> None:
        """TypeError if values of this annotation cannot be encoded."""

    def encode(self, annotation: Any, value: Any) -> bytes:
        """TypeError or ValueError if the value does not fit the annotation."""

    def decode(self, annotation: Any, data: bytes) -> Any:
        """An exception, whichever it is, if no value of the annotation was encoded."""


class Kind:
    """How values of one annotation are checked, packed, unpacked and copied."""

    __slots__ = ("copy", "fixed", "name", "nullable", "pack", "simple", "unpack")

    def __init__(
        self,
        name: str,
        pack: Callable[[Any], Any],
        unpack: Callable[[Any], Any],
        copy: Callable[[Any], Any] | None = None,
        *,
        nullable: bool = False,
        simple: frozenset[type] = frozenset(),
    ) -> None:
        self.name = name
        self.pack = pack
        """To what JSON can hold; TypeError or ValueError if the value does not fit."""
        self.unpack = unpack
        """Back; ValueError if this was not packed by this kind."""
        self.fixed = copy is None
        """Whether its values can never be changed, so that they need not be copied."""
        self.copy = copy if copy is not None else _same
        """A value that shares nothing that can be changed."""
        self.nullable = nullable
        """Whether a value may become null."""
        self.simple = simple
        """Values of exactly these types are what JSON has for them, within the limits of
        `values`."""

    def encode(self, value: object) -> bytes:
        """The text of a value."""
        return dumps(self.pack(value))

    def decode(self, text: bytes) -> Any:
        """The value of a text."""
        return self.unpack(loads(text))


def kind_of(annotation: Any) -> Kind:
    """The kind of an annotation; TypeError if values cannot be checked against it."""
    if annotation is None or annotation is type(None):
        return _NONE
    if annotation is Any or annotation is object or _is_value(annotation):
        return _ANY
    if isinstance(annotation, TypeVar):
        return _ANY
    if isinstance(annotation, type) and annotation in _SCALARS:
        return _SCALARS[annotation]
    if isinstance(annotation, typing.NewType):
        return kind_of(annotation.__supertype__)
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return kind_of(args[0])
    if origin is typing.Literal:
        return _literal(args)
    if origin is typing.Union or origin is types.UnionType:
        return _union(args)
    if origin in (list, Sequence):
        return _list(kind_of(args[0]))
    if origin is tuple:
        return _run(kind_of(args[0])) if args[1:] == (...,) else _tuple(args)
    if origin in (set, frozenset):
        return _set(origin, kind_of(args[0]))
    if origin in (dict, Mapping):
        return _dict(kind_of(args[0]), kind_of(args[1]), text_keys=args[0] is str)
    if typing.is_typeddict(annotation):
        return _typed_dict(annotation)
    made = origin if isinstance(origin, type) else annotation
    if isinstance(made, type):
        if issubclass(made, enum.Enum):
            return _enum(made)
        if issubclass(made, tuple) and hasattr(made, "_fields"):
            return _record(made, made._fields, frozenset(vars(made)["_field_defaults"]))
        if dataclasses.is_dataclass(made):
            return _dataclass(made)
    shown = getattr(annotation, "__name__", annotation)
    raise TypeError(
        f"values of {shown} cannot be checked: use None, bool, int, float, str, bytes, list[...], "
        "tuple[...], set[...], dict[...], a Literal, Enum, NamedTuple, dataclass or TypedDict"
    )


def _same(value: Any) -> Any:
    return value


def _is_value(annotation: Any) -> bool:
    """Whether this is the alias `Value`, which Python may have rebuilt when it looked up names."""
    if annotation is Value:
        return True
    args = typing.get_args(annotation)
    return (
        typing.get_origin(annotation) in (typing.Union, types.UnionType)
        and {bool, int, float, str, bytes} < set(args)
        and any(typing.get_origin(arg) is Mapping for arg in args)
    )


def _misfit(name: str, value: object) -> TypeError:
    return TypeError(f"{type(value).__name__} where {name} is wanted")


def _damaged(name: str) -> ValueError:
    return ValueError(f"this is no {name}")


def _none() -> Kind:
    def both(value: object) -> None:
        if value is not None:
            raise _misfit("None", value)

    def unpack(packed: object) -> None:
        if packed is not None:
            raise _damaged("None")

    return Kind("None", both, unpack, nullable=True, simple=frozenset({type(None)}))


def _bool() -> Kind:
    def pack(value: object) -> object:
        if value is not True and value is not False:
            raise _misfit("bool", value)
        return value

    def unpack(packed: object) -> object:
        if packed is not True and packed is not False:
            raise _damaged("bool")
        return packed

    return Kind("bool", pack, unpack, simple=frozenset({bool}))


def _int() -> Kind:
    def pack(value: object) -> int:
        if not isinstance(value, int):
            raise _misfit("int", value)
        return checked_int(value)

    def unpack(packed: object) -> int:
        if type(packed) is not int:
            raise _damaged("int")
        return checked_int(packed)

    return Kind("int", pack, unpack, simple=frozenset({int}))


def _float() -> Kind:
    def pack(value: object) -> float:
        if not isinstance(value, float | int) or isinstance(value, bool):
            raise _misfit("float", value)
        return checked_float(float(value))

    def unpack(packed: object) -> float:
        if type(packed) is not float:
            raise _damaged("float")
        return checked_float(packed)

    return Kind("float", pack, unpack)


def _str() -> Kind:
    def pack(value: object) -> str:
        if not isinstance(value, str):
            raise _misfit("str", value)
        return checked_text(value)

    def unpack(packed: object) -> str:
        if type(packed) is not str:
            raise _damaged("str")
        return checked_text(packed)

    return Kind("str", pack, unpack, simple=frozenset({str}))


def _bytes() -> Kind:
    def pack(value: object) -> str:
        if not isinstance(value, bytes):
            raise _misfit("bytes", value)
        return pack_bytes(value)

    return Kind("bytes", pack, unpack_bytes)


_NONE = _none()
_SCALARS: dict[type, Kind] = {
    bool: _bool(),
    int: _int(),
    float: _float(),
    str: _str(),
    bytes: _bytes(),
}
_ANY = Kind(
    "a value",
    pack_value,
    unpack_value,
    copy_value,
    nullable=True,
    simple=frozenset({type(None), bool, int, str}),
)


def _literal(choices: tuple[Any, ...]) -> Kind:
    name = f"one of {', '.join(map(repr, choices))}"

    def chosen(value: object) -> object:
        for choice in choices:
            if choice == value and type(choice) is type(value):
                return choice
        return _missing

    def pack(value: object) -> object:
        if chosen(value) is _missing:
            raise TypeError(f"{value!r} where {name} is wanted")
        return pack_value(value)

    def unpack(packed: object) -> object:
        found = chosen(unpack_value(packed))
        if found is _missing:
            raise _damaged(name)
        return found

    return Kind(name, pack, unpack, nullable=None in choices)


_missing = object()


def _enum(cls: type[enum.Enum]) -> Kind:
    def pack(value: object) -> str:
        if not isinstance(value, cls):
            raise _misfit(cls.__name__, value)
        return value.name

    def unpack(packed: object) -> enum.Enum:
        if not isinstance(packed, str) or packed not in cls.__members__:
            raise _damaged(cls.__name__)
        return cls[packed]

    return Kind(cls.__name__, pack, unpack)


def _union(args: tuple[Any, ...]) -> Kind:
    others = [arg for arg in args if arg is not type(None)]
    if len(others) == 1 and len(args) == 2:
        return _optional(kind_of(others[0]))
    kinds = [kind_of(arg) for arg in args]
    name = " or ".join(kind.name for kind in kinds)

    def fitting(value: object) -> tuple[int, object]:
        """The number of the alternative. One of exactly the value's type goes first, for a bool is
        an int, and an int may stand where a float is wanted."""
        exact = (n for n, arg in enumerate(args) if arg is type(value))
        for n in (*exact, *range(len(kinds))):
            try:
                return n, kinds[n].pack(value)
            except TypeError:
                continue
        raise _misfit(name, value)

    def pack(value: object) -> list[object]:
        return list(fitting(value))

    def unpack(packed: object) -> object:
        if not isinstance(packed, list) or len(packed) != 2 or type(packed[0]) is not int:
            raise _damaged(name)
        if not 0 <= packed[0] < len(kinds):
            raise _damaged(name)
        return kinds[packed[0]].unpack(packed[1])

    def copy(value: object) -> object:
        return kinds[fitting(value)[0]].copy(value)

    return Kind(name, pack, unpack, None if all(kind.fixed for kind in kinds) else copy)


def _optional(kind: Kind) -> Kind:
    if kind.nullable:
        return kind
    name = f"{kind.name} or None"

    def pack(value: object) -> object:
        return None if value is None else kind.pack(value)

    def unpack(packed: object) -> object:
        return None if packed is None else kind.unpack(packed)

    def copy(value: object) -> object:
        return None if value is None else kind.copy(value)

    simple = kind.simple | {type(None)}
    return Kind(name, pack, unpack, None if kind.fixed else copy, nullable=True, simple=simple)


def _list(item: Kind) -> Kind:
    name = f"list of {item.name}"
    pack_item, unpack_item, copy_item = item.pack, item.unpack, item.copy

    def pack(value: object) -> list[object]:
        if not isinstance(value, list):
            raise _misfit(name, value)
        return [pack_item(x) for x in value]

    def unpack(packed: object) -> list[object]:
        if not isinstance(packed, list):
            raise _damaged(name)
        return [unpack_item(x) for x in packed]

    return Kind(name, pack, unpack, lambda value: [copy_item(x) for x in value])


def _run(item: Kind) -> Kind:
    name = f"tuple of {item.name}"

    def pack(value: object) -> list[object]:
        if not isinstance(value, tuple):
            raise _misfit(name, value)
        return [item.pack(x) for x in value]

    def unpack(packed: object) -> tuple[object, ...]:
        if not isinstance(packed, list):
            raise _damaged(name)
        return tuple(item.unpack(x) for x in packed)

    copy = None if item.fixed else lambda value: tuple(item.copy(x) for x in value)
    return Kind(name, pack, unpack, copy)


def _tuple(args: tuple[Any, ...]) -> Kind:
    kinds = [kind_of(arg) for arg in args]
    name = f"tuple of {', '.join(kind.name for kind in kinds)}"

    def pack(value: object) -> list[object]:
        if not isinstance(value, tuple) or len(value) != len(kinds):
            raise _misfit(name, value)
        return [kind.pack(x) for kind, x in zip(kinds, value, strict=True)]

    def unpack(packed: object) -> tuple[object, ...]:
        if not isinstance(packed, list) or len(packed) != len(kinds):
            raise _damaged(name)
        return tuple(kind.unpack(x) for kind, x in zip(kinds, packed, strict=True))

    def copy(value: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(kind.copy(x) for kind, x in zip(kinds, value, strict=True))

    return Kind(name, pack, unpack, None if all(kind.fixed for kind in kinds) else copy)


def _set(made: type, item: Kind) -> Kind:
    name = f"{made.__name__} of {item.name}"

    def pack(value: object) -> list[object]:
        if not isinstance(value, made):
            raise _misfit(name, value)
        assert isinstance(value, Iterable)
        return sorted((item.pack(x) for x in value), key=dumps)

    def unpack(packed: object) -> object:
        if not isinstance(packed, list):
            raise _damaged(name)
        try:
            return made(item.unpack(x) for x in packed)
        except TypeError:
            raise _damaged(name) from None

    return Kind(name, pack, unpack, None if made is frozenset and item.fixed else made)


def _dict(key: Kind, item: Kind, *, text_keys: bool) -> Kind:
    name = f"dict of {key.name} to {item.name}"

    def pack(value: object) -> object:
        if not isinstance(value, dict):
            raise _misfit(name, value)
        if text_keys:
            return {key.pack(k): item.pack(v) for k, v in value.items()}
        return [[key.pack(k), item.pack(v)] for k, v in value.items()]

    def unpack(packed: object) -> dict[object, object]:
        if text_keys and isinstance(packed, dict):
            return {key.unpack(k): item.unpack(v) for k, v in packed.items()}
        if text_keys or not isinstance(packed, list):
            raise _damaged(name)
        pairs: dict[object, object] = {}
        for pair in packed:
            if not isinstance(pair, list) or len(pair) != 2:
                raise _damaged(name)
            try:
                pairs[key.unpack(pair[0])] = item.unpack(pair[1])
            except TypeError:
                raise _damaged(name) from None
        return pairs

    def copy(value: dict[object, object]) -> dict[object, object]:
        return {k: item.copy(v) for k, v in value.items()}

    return Kind(name, pack, unpack, copy)


def _fields(cls: type, names: Iterable[str]) -> dict[str, Kind]:
    hints = typing.get_type_hints(cls)
    return {name: kind_of(hints[name]) for name in names}


def _unpack_fields(
    name: str, kinds: dict[str, Kind], optional: frozenset[str], packed: object
) -> dict[str, object]:
    """The fields of an object. One that has a default may be missing, as it is in what was written
    before the field was invented."""
    if not isinstance(packed, dict) or not kinds.keys() >= packed.keys():
        raise _damaged(name)
    if not kinds.keys() - optional <= packed.keys():
        raise _damaged(name)
    return {field: kinds[field].unpack(item) for field, item in packed.items()}


def _record(cls: type, names: tuple[str, ...], optional: frozenset[str]) -> Kind:
    name, kinds = cls.__name__, _fields(cls, names)
    items = list(kinds.items())

    def pack(value: object) -> dict[str, object]:
        if not isinstance(value, cls):
            raise _misfit(name, value)
        return {field: kind.pack(getattr(value, field)) for field, kind in items}

    def unpack(packed: object) -> object:
        return cls(**_unpack_fields(name, kinds, optional, packed))

    def copy(value: object) -> object:
        return cls(**{field: kind.copy(getattr(value, field)) for field, kind in items})

    fixed = all(kind.fixed for kind in kinds.values())
    unchangeable = issubclass(cls, tuple) or cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    return Kind(name, pack, unpack, None if fixed and unchangeable else copy)


def _dataclass(cls: type) -> Kind:
    fields = dataclasses.fields(cls)
    if hidden := [field.name for field in fields if not field.init]:
        raise TypeError(f"{cls.__name__} cannot be built again: {hidden[0]} is no argument of it")
    missing = dataclasses.MISSING
    optional = frozenset(
        field.name
        for field in fields
        if field.default is not missing or field.default_factory is not missing
    )
    return _record(cls, tuple(field.name for field in fields), optional)


def _typed_dict(cls: Any) -> Kind:
    hints = typing.get_type_hints(cls)
    name, kinds = cls.__name__, {field: kind_of(hint) for field, hint in hints.items()}
    optional: frozenset[str] = cls.__optional_keys__

    def pack(value: object) -> dict[str, object]:
        if not isinstance(value, dict) or not kinds.keys() >= value.keys():
            raise _misfit(name, value)
        if not kinds.keys() - optional <= value.keys():
            raise _misfit(name, value)
        return {field: kinds[field].pack(item) for field, item in value.items()}

    def unpack(packed: object) -> dict[str, object]:
        return _unpack_fields(name, kinds, optional, packed)

    def copy(value: dict[str, object]) -> dict[str, object]:
        return {field: kinds[field].copy(item) for field, item in value.items()}

    return Kind(name, pack, unpack, copy)
