"""The state directory: whose it is, who has it, and how often its node started."""

import os
import time

import pytest

from roundelay.runtime.errors import StateError
from roundelay.runtime.state import NoStorage, StateDirectory


def test_incarnations_are_counted_and_the_core_finds_what_it_kept(tmp_path):
    first = StateDirectory(tmp_path, "g", "a")
    assert (first.incarnation, first.stored) == (0, None)
    first.save(b"ring 4")
    first.close()
    second = StateDirectory(tmp_path, "g", "a")
    assert (second.incarnation, second.stored) == (1, b"ring 4")
    second.close()


def test_groups_do_not_share_state(tmp_path):
    one, other = StateDirectory(tmp_path, "g/1", "a"), StateDirectory(tmp_path, "g/2", "b")
    one.save(b"1")
    assert other.stored is None
    one.close()
    other.close()


def test_a_directory_in_use_is_refused(tmp_path):
    first = StateDirectory(tmp_path, "g", "a")
    with pytest.raises(StateError, match="is in use by a running node; stop that one"):
        StateDirectory(tmp_path, "g", "a")
    first.close()
    StateDirectory(tmp_path, "g", "a").close()


def test_a_directory_of_another_node_is_refused(tmp_path):
    StateDirectory(tmp_path, "g", "a").close()
    with pytest.raises(StateError, match="belongs to node 'a' of group 'g'; give 'b' a directory"):
        StateDirectory(tmp_path, "g", "b")


def test_a_damaged_identity_is_refused(tmp_path):
    StateDirectory(tmp_path, "g", "a").close()
    (tmp_path / "g" / "identity").write_bytes(b"?")
    with pytest.raises(StateError, match="is damaged"):
        StateDirectory(tmp_path, "g", "a")


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_text("x")])
def test_who_lost_count_goes_by_the_clock(tmp_path, damage):
    StateDirectory(tmp_path, "g", "a").close()
    damage(tmp_path / "g" / "incarnation")
    before = int(time.time())
    again = StateDirectory(tmp_path, "g", "a")
    assert again.incarnation >= before
    again.close()


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match=r"cannot be used .*; make it writable for this user"):
        StateDirectory(tmp_path / "file", "g", "a")


def test_a_read_only_place_is_told(tmp_path, monkeypatch):
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StateError, match="cannot be written; make it writable for this user"):
        StateDirectory(tmp_path, "g", "a")


def test_nothing_half_written_replaces_what_was_kept(tmp_path, monkeypatch):
    state = StateDirectory(tmp_path, "g", "a")
    state.save(b"old")
    monkeypatch.setattr(os, "fsync", _full_disk)
    with pytest.raises(StateError, match="No space left"):
        state.save(b"new")
    assert (tmp_path / "g" / "core").read_bytes() == b"old"
    state.close()


def _full_disk(_: int) -> None:
    raise OSError(28, "No space left on device")


def test_who_keeps_nothing_is_new_at_every_start():
    assert NoStorage().incarnation > 1_700_000_000
    assert NoStorage().stored is None
