"""Group keys, what is derived from them, and the text of key files."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.sealing.ciphers import Cipher
from roundelay.sealing.keys import (
    GroupKey,
    KeyFileError,
    ids,
    key_file,
    parse_key_file,
    rotated,
)

KEY = GroupKey(bytes(range(32)))
OLD = GroupKey(bytes(32))
secrets = st.binary(min_size=32, max_size=32)


@pytest.mark.parametrize("size", [0, 16, 31, 33, 64])
def test_a_key_has_32_bytes(size):
    with pytest.raises(ValueError, match=f"32 bytes, not {size}"):
        GroupKey(bytes(size))


def test_a_key_never_shows_in_logs():
    assert repr(KEY) == str(KEY) == f"{KEY!s}" == "GroupKey(...)"
    assert "000102" not in repr((KEY,))


def test_an_id_names_a_key_in_a_group():
    names = ["", "g", "G", "g ", "gg", "x" * 64, "groß"]
    found = {key.id(name) for key in (KEY, OLD) for name in names}
    assert len(found) == 2 * len(names)
    assert all(len(key_id) == 8 for key_id in found)
    assert KEY.id("g") == GroupKey(bytes(range(32))).id("g")
    assert ids((KEY, OLD), "g") == (KEY.id("g"), OLD.id("g"))


def test_every_boot_cipher_group_and_key_has_a_key_of_its_own():
    boots = [bytes(16), b"\1" + bytes(15), bytes(15) + b"\1"]
    found = {
        key.boot_key(group, cipher, boot)
        for key in (KEY, OLD)
        for group in ("g", "h", "", "1 g")
        for cipher in Cipher
        for boot in boots
    }
    assert len(found) == 2 * 4 * 2 * 3
    assert all(len(each) == 32 for each in found)


def test_an_id_tells_nothing_of_a_boot_key():
    """A boot of zeros has the salt of the id, which has none: their purposes tell them apart."""
    for cipher in Cipher:
        assert not KEY.boot_key("g", cipher, bytes(16)).startswith(KEY.id("g"))


@given(secrets, secrets)
def test_a_key_file_is_read_as_it_was_written(first, second):
    one, two = GroupKey(first), GroupKey(second)
    assert parse_key_file(key_file((one,))) == (one,)
    if one != two:
        assert parse_key_file(key_file((one, two))) == (one, two)
        assert parse_key_file("\n".join(reversed(key_file((one, two)).splitlines()))) == (one, two)


def test_the_text_of_a_key_file():
    lines = key_file((KEY, OLD)).splitlines()
    assert lines[0].startswith("# ")
    assert lines[1:] == [f"key {bytes(range(32)).hex()}", f"old {bytes(32).hex()}"]


def test_rotation_puts_a_new_key_before_the_newest():
    assert rotated((KEY,), bytes(32)) == (OLD, KEY)
    third = b"\3" * 32
    assert rotated((KEY, OLD), third) == (GroupKey(third), KEY)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no line `key`"),
        ("# key\n\n", "no line `key`"),
        ("old " + "00" * 32, "no line `key`"),
        ("key", "line 1 does not have 64 digits"),
        ("key " + "00" * 31, "line 1 does not have 64 digits"),
        ("key " + "00" * 33, "line 1 does not have 64 digits"),
        ("key " + "0g" * 32, "line 1 does not have 64 digits"),
        ("\nkey " + "00" * 32 + "\nkey " + "01" * 32, "line 3 is not `key` or `old`, each once"),
        ("key " + "00" * 32 + "\nold " + "00" * 32, "both keys are the same"),
        ("kex " + "00" * 32, "line 1 is not `key` or `old`"),
        (" key " + "00" * 32, "line 1 is not `key` or `old`"),
        ("{}", "line 1 is not `key` or `old`"),
    ],
)
def test_what_is_no_key_file(text, says):
    with pytest.raises(KeyFileError, match=says):
        parse_key_file(text)


@given(st.text("keyold #0\n\r ", max_size=100))
def test_any_text_is_a_key_file_or_an_error(text):
    with contextlib.suppress(KeyFileError):
        assert 1 <= len(parse_key_file(text)) <= 2


def test_an_error_does_not_show_the_digits():
    with pytest.raises(KeyFileError) as caught:
        parse_key_file("key " + "ab" * 40)
    assert "abab" not in str(caught.value)
