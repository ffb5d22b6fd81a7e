"""Annotations check values, and what was packed comes back."""

import enum
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.structures.kinds import kind_of
from roundelay.structures.values import Value

UserId = NewType("UserId", int)
T = TypeVar("T")


class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"


class Point(NamedTuple):
    x: int
    y: int = 0


@dataclass
class Order:
    who: str
    items: list[Point] = field(default_factory=list)


@dataclass(frozen=True)
class Price:
    cents: int


@dataclass
class Odd:
    x: int = field(init=False)


class Options(TypedDict):
    name: str
    size: NotRequired[int]


GOOD = [
    (None, None),
    (bool, True),
    (int, -(2**70)),
    (float, 0.1),
    (str, "ä"),
    (bytes, b"\x00\xff"),
    (list[int], [1, 2]),
    (Sequence[int], [1, 2]),
    (tuple[int, ...], (1, 2, 3)),
    (tuple[int, str], (1, "x")),
    (tuple[()], ()),
    (set[int], {3, 1, 2}),
    (frozenset[str], frozenset({"b", "a"})),
    (dict[str, bytes], {"k": b"v"}),
    (Mapping[str, int], {"k": 1}),
    (dict[int, str], {1: "x", 2: "y"}),
    (dict[tuple[int, int], str], {(1, 2): "x"}),
    (int | None, None),
    (int | None, 5),
    (int | str, 5),
    (int | str, "5"),
    (str | bytes, b"5"),
    (str | bytes | None, "5"),
    (str | bytes | None, None),
    (bool | int, True),
    (bool | int, 1),
    (int | float, 1.0),
    (float | int, 1),
    (typing.Optional[str], "x"),  # noqa: UP045  # Older programs write it so.
    (Literal["a", 1, None], "a"),
    (Literal["a", 1, None], None),
    (UserId, 7),
    (Annotated[int, "a note"], 7),
    (Colour, Colour.RED),
    (Point, Point(1, 2)),
    (Order, Order("ann", [Point(1, 2)])),
    (Price, Price(3)),
    (Options, {"name": "x"}),
    (Options, {"name": "x", "size": 3}),
    (Any, {"a": [1, b"x"]}),
    (object, "x"),
    (Value, [None, 1.5]),
    (T, [1]),
    (list[Value], [1, "x"]),
]

BAD = [
    (None, 0),
    (bool, 1),
    (int, 1.0),
    (int, "1"),
    (float, "1"),
    (float, True),
    (str, b"x"),
    (bytes, "x"),
    (bytes, bytearray(b"x")),
    (list[int], (1,)),
    (list[int], [1, "x"]),
    (tuple[int, ...], [1]),
    (tuple[int, str], (1,)),
    (set[int], [1]),
    (frozenset[int], {1}),
    (dict[str, int], {1: 1}),
    (dict[str, int], {"a": "b"}),
    (dict[str, int], [("a", 1)]),
    (int | None, "x"),
    (int | str, b"x"),
    (Literal["a", 1], "b"),
    (Literal["a", 1], True),
    (Colour, "RED"),
    (Point, (1, 2)),
    (Order, {"who": "ann"}),
    (Options, {}),
    (Options, {"name": "x", "other": 1}),
    (Any, object()),
]


@pytest.mark.parametrize(("annotation", "value"), GOOD)
def test_a_value_comes_back(annotation, value):
    kind = kind_of(annotation)
    back = kind.decode(kind.encode(value))
    assert back == value
    assert type(back) is type(value)


@pytest.mark.parametrize(("annotation", "value"), BAD)
def test_a_value_of_another_kind_is_refused(annotation, value):
    with pytest.raises(TypeError):
        kind_of(annotation).pack(value)


@pytest.mark.parametrize(
    "annotation",
    [
        *(int, str, bytes, float, bool, None, list[int], tuple[int, str], set[int]),
        *(dict[str, int], dict[int, int], int | str, Point, Order, Options, Colour, Literal["a"]),
    ],
)
@given(
    packed=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=6,
    )
)
def test_whatever_is_read_fits_the_annotation_or_is_a_value_error(annotation, packed):
    kind = kind_of(annotation)
    try:
        value = kind.unpack(packed)
    except ValueError:
        return
    assert kind.unpack(kind.pack(value)) == value


@pytest.mark.parametrize(
    "annotation", [complex, type, list, dict, bytearray, Odd, typing.Callable, int | complex]
)
def test_annotations_that_cannot_be_checked_are_refused(annotation):
    with pytest.raises(TypeError):
        kind_of(annotation)


def test_what_was_written_before_a_field_was_invented_is_read():
    assert kind_of(Point).unpack({"x": 1}) == Point(1, 0)
    assert kind_of(Order).unpack({"who": "ann"}) == Order("ann")
    with pytest.raises(ValueError, match="Point"):
        kind_of(Point).unpack({"y": 1})


def test_a_set_has_one_text():
    kind = kind_of(set[str])
    crowd = {f"member{n}" for n in range(1000)}
    crowd -= {f"member{n}" for n in range(3, 1000)}  # The order of a set tells of its past.
    assert kind.encode(crowd) == b'["member0","member1","member2"]'


def test_an_int_where_a_float_is_wanted_becomes_one():
    kind = kind_of(float)
    assert repr(kind.decode(kind.encode(1))) == "1.0"


def test_a_bool_where_an_int_is_wanted_becomes_one():
    kind = kind_of(int)
    assert repr(kind.decode(kind.encode(True))) == "1"


@pytest.mark.parametrize(("annotation", "value"), GOOD)
def test_a_copy_is_equal(annotation, value):
    assert kind_of(annotation).copy(value) == value


@pytest.mark.parametrize(
    ("annotation", "value", "change"),
    [
        (list[int], [1], lambda v: v.append(2)),
        (dict[str, list[int]], {"a": [1]}, lambda v: v["a"].append(2)),
        (tuple[list[int], ...], ([1],), lambda v: v[0].append(2)),
        (tuple[list[int], int], ([1], 2), lambda v: v[0].append(2)),
        (set[int], {1}, lambda v: v.add(2)),
        (list[int] | None, [1], lambda v: v.append(2)),
        (list[int] | str, [1], lambda v: v.append(2)),
        (Order, Order("ann"), lambda v: v.items.append(Point(1))),
        (Options, {"name": "x"}, lambda v: v.update(size=2)),
        (Any, [1], lambda v: v.append(2)),
    ],
)
def test_a_copy_does_not_change_with_the_original(annotation, value, change):
    copied = kind_of(annotation).copy(value)
    change(value)
    assert copied != value


@pytest.mark.parametrize("annotation", [int, str, tuple[int, str], frozenset[int], Point, Price])
def test_what_cannot_change_is_not_copied(annotation):
    assert kind_of(annotation).fixed
