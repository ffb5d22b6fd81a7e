"""`roundelay keygen`, and settings that name a key."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from roundelay.cli import main
from roundelay.runtime.key_files import read_keys
from roundelay.trace import extras


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    return said


def test_a_key_is_made_changed_and_the_old_one_taken_out(tmp_path, capsys):
    path = tmp_path / "group.key"
    assert main(["keygen", "-o", str(path)]) == 0
    first = read_keys(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert main(["keygen", "-o", str(path), "--rotate"]) == 0
    second = read_keys(path)
    assert second[1:] == first
    assert second[0] != first[0]
    assert main(["keygen", "-o", str(path), "--rotate"]) == 0
    third = read_keys(path)
    assert third[1:] == second[:1]
    assert main(["keygen", "-o", str(path), "--retire"]) == 0
    assert read_keys(path) == third[:1]
    said = capsys.readouterr().out
    assert said.count("\n") == 4
    secret = path.read_text().split()[-1]
    assert secret not in said
    assert len(secret) == 64


def test_keygen_used_wrongly(tmp_path, capsys):
    path = tmp_path / "group.key"
    assert "cannot read the key file" in told(capsys, "keygen", "-o", str(path), "--rotate")
    assert main(["keygen", "-o", str(path)]) == 0
    before = path.read_bytes()
    assert "exists already, and a group may use it" in told(capsys, "keygen", "-o", str(path))
    assert path.read_bytes() == before
    path.chmod(0o644)
    assert "others can read the key file" in told(capsys, "keygen", "-o", str(path), "--rotate")
    missing = tmp_path / "none" / "group.key"
    assert "No such file or directory; name another file" in told(
        capsys, "keygen", "-o", str(missing)
    )


NODE = ("node", "--group", "g", "--node", "a", "--peer", "a=127.0.0.1:0")


def test_a_node_with_a_key_that_cannot_be_used(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    path = tmp_path / "group.key"
    assert "cannot read the key file" in told(capsys, *NODE, "--key", str(path))
    path.write_text("garbage")
    assert "others can read the key file" in told(capsys, *NODE, "--key", str(path))
    path.chmod(0o600)
    assert "is no key file: line 1" in told(capsys, *NODE, "--key", str(path))
    assert "is not a file" in told(capsys, *NODE, "--key", str(tmp_path))
    assert "a cipher without a key seals nothing" in told(capsys, *NODE, "--cipher", "aes")
    settings = tmp_path / "settings.toml"
    settings.write_text(f'key = "{path}"\ncipher = "rot13"\n')
    assert "cipher='rot13' is neither 'aes' nor 'chacha'" in told(capsys, *NODE, str(settings))


WITHOUT = """
import sys
sys.modules["cryptography"] = None
import roundelay, roundelay.blocking
from roundelay.cli import main
assert main(sys.argv[1:]) == 2
assert not any(name.startswith("roundelay.sealing.") for name in sys.modules), "imported"
"""


@pytest.mark.parametrize(
    "command", [("keygen", "-o", "KEY"), (*NODE, "--key", "KEY")], ids=["keygen", "node"]
)
def test_a_key_without_the_package_for_it(command, tmp_path):
    path = str(tmp_path / "group.key")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *(path if word == "KEY" else word for word in command)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    assert done.stderr.count("\n") == 1
    assert f"this needs cryptography: {extras.install('sealed')}" in done.stderr
    assert not Path(path).exists()


def test_a_group_without_a_key_never_loads_cryptography():
    story = """
import asyncio, sys, logging
import roundelay
from roundelay.transport.address import free_addresses
async def main():
    async with roundelay.join("g", node="a", peers=free_addresses("ab")) as group:
        await group.send(b"x")
        group.status()
asyncio.run(main())
assert not any(name.split(".")[0] == "cryptography" for name in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", story], capture_output=True, text=True, check=True)
    assert done.stderr.count("no key is set, so whoever reaches the port") == 1
