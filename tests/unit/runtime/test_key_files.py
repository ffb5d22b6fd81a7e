"""Key files: who may read them, what is in them, and how they change."""

import os
from pathlib import Path

import pytest

from roundelay.runtime.errors import ConfigError, RoundelayError, StartError
from roundelay.runtime.key_files import read_keys, write_keys
from roundelay.sealing.keys import GroupKey

KEY, NEXT = GroupKey(b"k" * 32), GroupKey(b"n" * 32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "group.key"
    write_keys(made, (KEY,), replace=False)
    return made


def refusal(path: Path, kind: type[RoundelayError]) -> str:
    with pytest.raises(kind) as caught:
        read_keys(path)
    sentence = str(caught.value)
    assert str(path) in sentence
    assert "6b6b" not in sentence  # No part of a key.
    return sentence


def test_a_key_file_is_for_its_owner_alone(path):
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_keys(path) == (KEY,)
    for mode in (0o640, 0o604, 0o620, 0o602, 0o677):
        path.chmod(mode)
        said = refusal(path, StartError)
        assert f"others can read the key file {path}; take that away with: chmod 600" in said
    path.chmod(0o400)
    assert read_keys(path) == (KEY,)


def test_a_key_file_of_another_user_is_refused(path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 12345)
    if path.stat().st_uid == 0:
        assert read_keys(path) == (KEY,)  # Root may hand keys out.
        os.chown(path, 54321, 54321)
    assert "belongs to another user, who could change it" in refusal(path, StartError)


def test_a_key_file_that_is_missing_or_no_file(tmp_path):
    assert "No such file or directory); make one with: roundelay keygen" in refusal(
        tmp_path / "none", StartError
    )
    assert "is not a file" in refusal(tmp_path, ConfigError)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    assert "is not a file" in refusal(pipe, ConfigError)  # And nobody waits for a writer.


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "there is no line `key`"),
        (b"old " + b"00" * 32, "there is no line `key`"),
        (b"key 00", "line 1 does not have 64 digits"),
        (b"# x\n\nkey " + b"0g" * 32, "line 3 does not have 64 digits"),
        (b"key " + b"00" * 32 + b"\nkey " + b"01" * 32, "line 2 is not `key` or `old`, each once"),
        (b"secret " + b"00" * 32, "line 1 is not `key` or `old`, each once"),
        (b"key " + b"00" * 32 + b"\nold " + b"00" * 32, "both keys are the same"),
        (b"key \xff\xfe", "it is not text"),
        (b"\x00" * 64, "line 1 is not"),
        (b"#" * 5000, "it is too large"),
    ],
)
def test_a_file_that_holds_no_key(path, content, why):
    path.write_bytes(content)
    said = refusal(path, ConfigError)
    assert f"{path} is no key file: {why}" in said
    assert said.endswith(f"make one with: roundelay keygen -o {path}")


def test_a_key_file_may_have_gone_through_another_system(path):
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_keys(path) == (KEY,)


def test_a_key_file_is_not_overwritten(path):
    with pytest.raises(FileExistsError):
        write_keys(path, (NEXT,), replace=False)
    assert read_keys(path) == (KEY,)


def test_keys_are_replaced_whole_where_a_link_leads_and_for_their_owner(path, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(path)
    if os.geteuid() == 0:
        os.chown(path, 54321, 54321)
    before = path.stat()
    write_keys(link, (NEXT, KEY), replace=True)
    after = path.stat()
    assert link.is_symlink()
    assert (after.st_uid, after.st_gid, after.st_mode) == (
        before.st_uid,
        before.st_gid,
        before.st_mode,
    )
    assert after.st_ino != before.st_ino
    os.chown(path, os.geteuid(), os.getegid())
    assert read_keys(path) == (NEXT, KEY)


def test_nobody_makes_a_new_key_go_elsewhere(path, tmp_path):
    """Not even by a link where the new file is made before it takes its place."""
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / ".group.key.new").symlink_to(other)
    write_keys(path, (NEXT,), replace=True)
    assert other.read_text() == "mine"
    assert read_keys(path) == (NEXT,)


def test_a_disk_that_is_full_leaves_the_old_keys(path, tmp_path, monkeypatch):
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_keys(path, (NEXT, KEY), replace=True)
    assert read_keys(path) == (KEY,)
    assert [found.name for found in tmp_path.iterdir()] == ["group.key"]
