"""`roundelay doctor`: what facts mean, and that a real machine can be looked at."""

import json
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from roundelay.cli import doctor, main
from roundelay.cli.doctor import machine, places
from roundelay.cli.doctor.facts import (
    Buffers,
    Clock,
    Control,
    Disk,
    Facts,
    Files,
    Java,
    Key,
    Listening,
    Loopback,
    Needs,
    Package,
    Peer,
    Processors,
    Software,
)
from roundelay.cli.doctor.judge import Level, judge
from roundelay.runtime.settings import DATAGRAM_BYTES, settings
from roundelay.transport.address import free_addresses

MIB = 1024 * 1024
PEER_A = Peer("a", "h1:5400", True, "10.0.0.1", False, 0.01, "", 1500)
PEER_B = Peer("b", "h2:5400", False, "10.0.0.2", False, 0.01, "", 1500)
JOURNAL = Disk("journal", Path("/j"), "", "ext4", 1 << 40, 0.5, 2.0)
HEALTHY = Facts(
    Needs(datagram_bytes=1400, fsync=True, segment_bytes=128 * MIB, key=True),
    Software("0.1", (3, 12, 1), "CPython", "Linux 6.1", linux=True),
    (
        Package("cryptography", "sealed", "45.0", ">=42", fits=True),
        Package("pyspark", "spark", "4.1.0", ">=4.1,<5", fits=True),
    ),
    Java("/usr/bin/java", ""),
    Processors(4, None),
    Clock(False, 50.0, "tsc", 2026, True, 3.0),
    Files(10, 1024),
    Buffers(4 * MIB, 4 * MIB, 4 * MIB),
    Loopback(1400, "", batched=True),
    Control("/run/x.sock", ""),
    Listening("0.0.0.0:5400", "", runs=False),
    None,
    (PEER_A, PEER_B),
    (JOURNAL,),
    Key(Path("/k"), ""),
)


def of(facts: Facts) -> list[tuple[str, Level]]:
    """What is not fine."""
    return [(f.subject, f.level) for f in judge(facts) if f.level is not Level.FINE]


def test_a_healthy_machine_has_no_finding_that_is_not_fine():
    assert of(HEALTHY) == []
    assert doctor.report(judge(HEALTHY)).endswith("\neverything is fine")


NO_SPARK = (HEALTHY.packages[0], Package("pyspark", "spark", None, ">=4.1,<5", fits=True))
NO_CIPHER = (Package("cryptography", "sealed", None, ">=42", fits=True), HEALTHY.packages[1])
OLD_SPARK = (HEALTHY.packages[0], Package("pyspark", "spark", "3.5.1", ">=4.1,<5", fits=False))
CLOCK = HEALTHY.clock
AGED = replace(HEALTHY.needs, by_wall_clock=True)
OPEN = replace(HEALTHY.needs, key=False)

SICK = [
    ({"software": replace(HEALTHY.software, python=(3, 10, 4))}, "versions", Level.PROBLEM),
    ({"software": replace(HEALTHY.software, implementation="Other")}, "versions", Level.WARNING),
    ({"software": replace(HEALTHY.software, linux=False)}, "system", Level.WARNING),
    ({"packages": NO_SPARK}, "extra spark", Level.NOTE),
    ({"packages": NO_CIPHER}, "extra sealed", Level.PROBLEM),
    ({"packages": NO_CIPHER, "needs": OPEN}, "extra sealed", Level.NOTE),
    ({"packages": OLD_SPARK}, "extra spark", Level.WARNING),
    ({"java": Java(None, "install one")}, "java", Level.WARNING),
    ({"java": Java(None, "install one"), "packages": ()}, "java", Level.NOTE),
    ({"processors": Processors(4, 0.5)}, "processors", Level.WARNING),
    ({"clock": replace(CLOCK, went_back=True)}, "monotonic clock", Level.PROBLEM),
    ({"clock": replace(CLOCK, source="hpet")}, "monotonic clock", Level.WARNING),
    ({"clock": replace(CLOCK, read_ns=4000.0)}, "monotonic clock", Level.WARNING),
    ({"clock": replace(CLOCK, year=1970)}, "wall clock", Level.PROBLEM),
    ({"clock": replace(CLOCK, synchronized=None)}, "wall clock", Level.NOTE),
    ({"clock": replace(CLOCK, synchronized=False)}, "wall clock", Level.NOTE),
    ({"clock": replace(CLOCK, synchronized=False), "needs": AGED}, "wall clock", Level.WARNING),
    ({"clock": replace(CLOCK, error_ms=5000.0)}, "wall clock", Level.WARNING),
    ({"files": Files(10, 16)}, "open files", Level.PROBLEM),
    ({"files": Files(10, 128)}, "open files", Level.WARNING),
    ({"buffers": Buffers(4 * MIB, MIB, 4 * MIB)}, "receive buffer", Level.WARNING),
    ({"buffers": Buffers(4 * MIB, 4 * MIB, MIB)}, "send buffer", Level.WARNING),
    ({"loopback": Loopback(1400, "it did not come back", True)}, "UDP", Level.PROBLEM),
    ({"loopback": Loopback(1400, "", batched=False)}, "UDP", Level.WARNING),
    ({"listening": Listening("h:1", "h:1 is taken", runs=False)}, "address", Level.PROBLEM),
    ({"multicast": Listening("m:1", "cannot listen", runs=False)}, "multicast", Level.PROBLEM),
    ({"peers": (replace(PEER_A, numeric=None), PEER_B)}, "peer a", Level.PROBLEM),
    ({"peers": (PEER_A, replace(PEER_B, numeric=None))}, "peer b", Level.WARNING),
    ({"peers": (PEER_A, replace(PEER_B, failure="No route"))}, "peer b", Level.PROBLEM),
    ({"peers": (PEER_A, replace(PEER_B, lookup_s=3.0))}, "peer b", Level.WARNING),
    ({"peers": (PEER_A, replace(PEER_B, mtu=1400))}, "peer b", Level.WARNING),
    (
        {"peers": (replace(PEER_A, numeric="127.0.1.1", loopback=True), PEER_B)},
        "peer a",
        Level.PROBLEM,
    ),
    ({"disks": (replace(JOURNAL, failure="no directory"),)}, "journal", Level.PROBLEM),
    ({"disks": (replace(JOURNAL, filesystem="tmpfs"),)}, "journal", Level.PROBLEM),
    ({"disks": (replace(JOURNAL, filesystem="nfs4"),)}, "journal", Level.WARNING),
    ({"disks": (replace(JOURNAL, free_bytes=200 * MIB),)}, "journal", Level.WARNING),
    ({"disks": (replace(JOURNAL, sync_ms=80.0),)}, "journal", Level.WARNING),
    ({"control": Control("/x", "belongs to another user")}, "control socket", Level.PROBLEM),
    ({"key": Key(Path("/k"), "others can read it")}, "key", Level.PROBLEM),
    ({"key": None, "needs": OPEN}, "key", Level.NOTE),
]


@pytest.mark.parametrize(("changed", "subject", "level"), SICK)
def test_what_is_not_fine_is_said_with_what_to_do(changed, subject, level):
    facts = replace(HEALTHY, **changed)
    assert of(facts) == [(subject, level)]
    (finding,) = [f for f in judge(facts) if f.level is not Level.FINE]
    assert finding.advice


def test_things_that_look_bad_and_are_not():
    runs = replace(HEALTHY, listening=Listening("h:1", "h:1 is taken", runs=True))
    assert of(runs) == []
    on_loopback = tuple(
        replace(peer, numeric="127.0.0.1", loopback=True, mtu=65_536) for peer in HEALTHY.peers
    )
    assert of(replace(HEALTHY, peers=on_loopback, key=None, needs=OPEN)) == []
    never_synced = replace(JOURNAL, sync_ms=80.0)
    lazy = replace(HEALTHY, disks=(never_synced,), needs=replace(HEALTHY.needs, fsync=False))
    assert of(lazy) == []


def test_a_size_that_fits_the_way_is_advised():
    facts = replace(HEALTHY, peers=(PEER_A, replace(PEER_B, numeric="fd00::2", mtu=1400)))
    (finding,) = [f for f in judge(facts) if f.level is not Level.FINE]
    assert "set datagram_bytes to 1352 or less" in finding.advice


@pytest.mark.parametrize(
    ("version", "wanted", "good"),
    [
        ("4.1.0", ">=4.1,<5", True),
        ("4.10.0rc1", ">=4.9", True),
        ("4.0.9", ">=4.1,<5", False),
        ("5.0", ">=4.1,<5", False),
        ("1.0", "", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version, wanted, good):
    assert machine.fits(version, wanted) is good


def test_a_quota_of_processor_time_is_read():
    assert machine.quota("50000 100000\n") == 0.5
    assert machine.quota("max 100000\n") is None
    assert machine.quota("what is this") is None


def test_the_file_system_is_that_of_the_nearest_mount():
    mounts = "a / ext4 rw 0 0\nb /data\\040x xfs rw 0 0\nc /data\\040x/run tmpfs rw 0 0\n"
    assert places.filesystem(Path("/data x/j"), mounts) == "xfs"
    assert places.filesystem(Path("/data x/run/j"), mounts) == "tmpfs"
    assert places.filesystem(Path("/database"), mounts) == "ext4"
    assert places.filesystem(Path("/x"), "") is None


def test_this_machine_without_settings(capsys):
    assert main(["doctor", "--json"]) in (0, 1)
    findings = json.loads(capsys.readouterr().out)["findings"]
    subjects = {finding["subject"] for finding in findings}
    assert {"versions", "monotonic clock", "open files", "receive buffer", "UDP"} <= subjects
    assert not {"address", "journal"} & subjects


@pytest.fixture
def node_file(tmp_path):
    address = free_addresses("a")["a"]
    lines = [
        'group = "g"',
        'node = "a"',
        f'journal = "{tmp_path}/deep/journal"',
        f'control = "{tmp_path}/own/a.sock"',
        f'[peers]\na = "{address}"',
    ]
    path = tmp_path / "a.toml"
    path.write_text("\n".join(lines))
    return path


def told(capsys, *words: str) -> dict[str, dict[str, str]]:
    main(["doctor", "--json", *words])
    findings = json.loads(capsys.readouterr().out)["findings"]
    return {finding["subject"]: finding for finding in findings}


def test_this_machine_with_the_settings_of_a_node(node_file, capsys):
    found = told(capsys, str(node_file))
    assert found["address"]["level"] == found["peer a"]["level"] == "fine"
    assert found["control socket"]["level"] == "fine"
    assert "a sync takes" in found["journal"]["found"]
    assert list(node_file.parent.iterdir()) == [node_file], "it left something behind"


def test_an_address_that_is_taken_and_a_key_that_is_not_there(node_file, capsys):
    host, _, port = settings_of(node_file).rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind((host, int(port)))
        found = told(capsys, str(node_file), "--key", str(node_file.parent / "none.key"))
    assert found["address"]["level"] == found["key"]["level"] == "problem"
    assert "taken by another process" in found["address"]["advice"]
    assert "roundelay keygen" in found["key"]["advice"]
    assert main(["doctor", str(node_file), "--key", str(node_file.parent / "none.key")]) == 1


def settings_of(path: Path) -> str:
    return path.read_text().rpartition('a = "')[2].rstrip('"\n')


def test_settings_that_make_no_sense_are_wrong_use(capsys):
    assert main(["doctor", "--journal", "/j"]) == 2
    assert "'group' is missing" in capsys.readouterr().err


def test_the_size_of_datagrams_is_that_of_the_node():
    near = settings({"group": "g", "node": "a", "peers": {"a": "127.0.0.1:1"}})
    far = settings({"group": "g", "node": "a", "peers": {"a": "10.0.0.1:1"}})
    assert doctor.needs_of(near).datagram_bytes == DATAGRAM_BYTES["loopback"]
    assert doctor.needs_of(far).datagram_bytes == DATAGRAM_BYTES["network"]
    assert doctor.needs_of(replace(far, datagram_bytes=9000)).datagram_bytes == 9000


def test_strict_takes_warnings_for_problems(monkeypatch, capsys):
    sick = replace(HEALTHY, buffers=Buffers(4 * MIB, MIB, 4 * MIB))
    monkeypatch.setattr(doctor, "gather", lambda told: sick)
    assert main(["doctor"]) == 0
    assert main(["doctor", "--strict"]) == 1
    assert "sysctl -w net.core.rmem_max=4194304" in capsys.readouterr().out
