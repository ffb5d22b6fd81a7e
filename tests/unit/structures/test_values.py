"""Values come back as they were, of the same type, or are refused when they are sent."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.structures.values import (
    DEPTH_MAX,
    INT_BITS_MAX,
    copy_value,
    dumps,
    loads,
    pack_value,
    unpack_value,
)

TEXT = st.text(st.characters(codec="utf-8"))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | st.binary()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(TEXT | st.sampled_from(["=b", "=d"]), inner, max_size=4)
    ),
    max_leaves=20,
)


def there_and_back(value: object) -> object:
    return unpack_value(loads(dumps(pack_value(value))))


@given(VALUES)
def test_a_value_comes_back_equal_and_of_its_type(value):
    back = there_and_back(value)
    assert repr(back) == repr(value)  # Tells 1 from 1.0 and True, and 0.0 from -0.0.


@pytest.mark.parametrize("value", [{"=b": "AA=="}, {"=d": []}, {"=b": b"x", "=d": 1}, {"=d": {}}])
def test_a_dict_that_looks_like_bytes_stays_a_dict(value):
    assert there_and_back(value) == value


@pytest.mark.parametrize(
    "value",
    [(1, 2), {1, 2}, {1: 2}, object(), math, 1j, [b"x", {"a": (1,)}]],
)
def test_what_is_no_value_is_refused(value):
    with pytest.raises(TypeError):
        pack_value(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "\ud800", 1 << INT_BITS_MAX])
def test_values_that_json_cannot_carry_are_refused(value):
    with pytest.raises(ValueError):  # noqa: PT011  # UnicodeEncodeError is one too.
        dumps(pack_value([value]))


@pytest.mark.parametrize(
    "text",
    [
        *(b'{"=b": 1}', b'{"=b": "?"}', b'{"=d": 1}', b'{"=d": [[1, 2]]}', b"NaN"),
        *(b'"\\ud800"', b"1" + b"0" * (INT_BITS_MAX // 3), b"1e999"),
    ],
)
def test_texts_that_no_value_has_are_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011
        unpack_value(loads(text))


def test_depth_has_a_limit_on_both_ways():
    value: object = 1
    for _ in range(DEPTH_MAX):
        value = [value]
    assert there_and_back(value) == value
    with pytest.raises(ValueError, match="within each other"):
        pack_value([value])
    with pytest.raises(ValueError, match="within each other"):
        unpack_value([value])


def test_a_copy_shares_nothing_that_can_change():
    value = {"a": [1, {"b": [2]}]}
    copied = copy_value(value)
    value["a"][1]["b"].append(3)  # type: ignore[index]
    assert copied == {"a": [1, {"b": [2]}]}


@given(VALUES)
def test_the_text_is_that_of_the_json_of_python(value):
    packed = pack_value(value)
    plain = json.dumps(packed, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    assert dumps(packed) == plain.encode()


@pytest.mark.parametrize("text", [b"1 2", b"[1]x", b" 1", b"", b"\xff", b"\xff\xfe1\0"])
def test_what_is_no_text_of_ours_is_refused(text):
    with pytest.raises(ValueError, match=r".*"):
        loads(text)


def test_a_number_that_json_lacks_is_no_text():
    with pytest.raises(ValueError, match="JSON"):
        dumps([float("nan")])
