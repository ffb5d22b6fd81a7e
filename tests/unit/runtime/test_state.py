"""The state directory: whose it is, who has it, and what the next life finds there."""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from roundelay.journal.files import HeldFiles
from roundelay.runtime.errors import StartError, StateError
from roundelay.runtime.machine import Machine
from roundelay.runtime.state import NoStorage, StateDirectory

NOW_NS = 1_790_000_000_000_000_000


def opened(directory: Path, group: str = "g", node: str = "a", ns: int = NOW_NS) -> StateDirectory:
    return StateDirectory(directory, group, node, Machine(lambda: ns))


def life(directory: Path, ns: int = NOW_NS) -> tuple[int, bytes | None]:
    """Begin and end one: its number, and what its core found."""
    state = opened(directory, ns=ns)
    found = (state.incarnation, state.stored)
    state.save(b"ring 4")
    state.close()
    return found


def test_every_life_has_another_number_and_the_core_finds_what_it_kept(tmp_path):
    lives = [life(tmp_path) for _ in range(20)]
    assert [stored for _, stored in lives] == [None] + [b"ring 4"] * 19
    assert len({incarnation >> 21 for incarnation, _ in lives}) == 20
    assert (tmp_path / "g" / "incarnation").read_text() == f"{lives[-1][0]}\n"


def test_groups_do_not_share_state(tmp_path):
    one, other = opened(tmp_path, "g/1", "a"), opened(tmp_path, "g/2", "b")
    one.save(b"1")
    assert other.stored is None
    one.close()
    other.close()


def test_a_directory_in_use_is_refused(tmp_path):
    first = opened(tmp_path)
    with pytest.raises(StateError, match="is in use by a running node; stop that one"):
        opened(tmp_path)
    first.close()
    opened(tmp_path).close()


def test_a_directory_of_another_node_is_refused_and_stays_as_it_is(tmp_path):
    life(tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / "g").iterdir()}
    with pytest.raises(StateError, match="belongs to node 'a' of group 'g'; give 'b' a directory"):
        opened(tmp_path, node="b")
    assert {path.name: path.read_bytes() for path in (tmp_path / "g").iterdir()} == before
    assert life(tmp_path)[1] == b"ring 4"


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:9]),
        lambda path: path.write_bytes(b"\xff\x00" * 40),
        lambda path: path.write_bytes(json.dumps(["a", "g"]).encode()),
        lambda path: path.write_bytes(b"[" * 100_000),
    ],
)
def test_where_nobody_knows_whose_it_is_nothing_is_used(tmp_path, damage, caplog):
    first, _ = life(tmp_path)
    damage(identity := tmp_path / "g" / "identity")
    told = identity.exists()
    again, stored = life(tmp_path)
    assert stored is None
    assert again != first
    assert ("is damaged, so nothing in that directory is used" in caplog.text) == told
    assert life(tmp_path)[1] == b"ring 4"  # It is this node's again.


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:3]),
        lambda path: path.write_bytes(os.urandom(30)),
        lambda path: path.write_text("9" * 40),
        lambda path: path.write_text("2147483647\n"),  # Of an earlier version.
    ],
)
def test_whatever_became_of_its_number_the_next_life_has_another(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    first, _ = life(tmp_path)
    damage(tmp_path / "g" / "incarnation")
    again, stored = life(tmp_path)
    assert again != first
    assert again >> 21 == NOW_NS // 1_000_000
    assert stored == b"ring 4"


@pytest.mark.parametrize("shift_s", [-3600, 3600])
def test_a_clock_that_is_set_does_no_harm(tmp_path, shift_s):
    lives = [life(tmp_path), life(tmp_path, NOW_NS + shift_s * 10**9), life(tmp_path)]
    numbers = [incarnation >> 21 for incarnation, _ in lives]
    assert numbers == sorted(set(numbers))


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match=r"cannot be used .*; make it writable for this user"):
        opened(tmp_path / "file")


def test_a_read_only_place_is_told(tmp_path, monkeypatch):
    def refuse(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StateError, match="cannot be written; make it writable for this user"):
        opened(tmp_path)


def test_too_few_open_files_are_told_as_such(tmp_path, monkeypatch):
    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StartError, match=r"may open too few files: .* ulimit -n"):
        opened(tmp_path)


@pytest.mark.parametrize("call", ["pwritev", "pwrite", "fdatasync"])
def test_nothing_half_written_replaces_what_was_kept(tmp_path, monkeypatch, call):
    """A full disk takes a part of what is written, or says so only when it is synced."""
    asked: list[bool] = []
    room = False

    def make_room() -> bool:
        asked.append(room)
        return room

    machine = Machine(lambda: NOW_NS)
    state = StateDirectory(tmp_path, "g", "a", machine, make_room=make_room)
    state.save(b"old")
    real = os.write

    def full(fd: int, *told: object) -> int:
        if room and asked:
            monkeypatch.undo()
        elif call == "fdatasync":
            real(fd, b"ne")
        raise OSError(errno.ENOSPC, "No space left on device")

    if call == "pwrite":
        monkeypatch.setattr(os, "pwritev", lambda fd, parts, offset: real(fd, b"ne"))
    monkeypatch.setattr(os, call, full)
    with pytest.raises(StateError, match=r"its disk is full .*; free some space"):
        state.save(b"new")
    assert (tmp_path / "g" / "core").read_bytes() == b"old"
    assert not list((tmp_path / "g").glob("*.new"))
    room = True
    state.save(b"newer")
    assert (tmp_path / "g" / "core").read_bytes() == b"newer"
    assert asked == [False, True]
    state.close()


@pytest.mark.parametrize("forgotten", [None, "fdatasync", "sync_directory"])
def test_what_was_saved_survives_a_power_cut_as_all_is_synced(tmp_path, monkeypatch, forgotten):
    def saved(state: bytes) -> bytes | None:
        machine = Machine(lambda: NOW_NS)
        directory = StateDirectory(tmp_path, "g", "a", machine, files=HeldFiles())
        directory.save(state)
        directory.close()
        return directory.stored

    saved(b"one")
    if forgotten:
        monkeypatch.setattr(HeldFiles, forgotten, lambda *_: None)
    saved(b"two")
    monkeypatch.undo()
    assert (saved(b"three") == b"two") == (forgotten is None)


def test_who_keeps_nothing_is_new_at_every_start():
    machine = Machine(lambda: NOW_NS)
    assert len({NoStorage(machine).incarnation for _ in range(50)}) == 50
    assert NoStorage(machine).stored is None
