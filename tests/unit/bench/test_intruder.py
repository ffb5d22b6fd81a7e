"""The intruder: what it captures and sends, and what its nodes are believed for."""

import contextlib
import random
import socket

import pytest

from roundelay.bench.intruder import attack, capture
from roundelay.bench.intruder.attack import Intruder, Raid, flipped, forged
from roundelay.bench.intruder.capture import CaptureReader, CaptureWriter, tapped
from roundelay.bench.intruder.member import StrictLedger
from roundelay.bench.intruder.run import Session, Verdict
from roundelay.bench.ring.workload import END, pool
from roundelay.cli import main
from roundelay.cli.bench.intruder import document
from roundelay.transport.address import Address
from roundelay.transport.udp import UdpSocket
from roundelay.wire.frame import MAGIC


def test_a_capture_is_read_while_it_grows(tmp_path):
    path = tmp_path / "capture"
    reader = CaptureReader(path)
    assert list(reader.read()) == []
    with contextlib.closing(CaptureWriter(path)) as writer:
        writer.add(b"one")
        writer.add(b"")
        assert list(reader.read()) == [b"one", b""]
        writer.add(b"two")
    with path.open("ab") as file:
        file.write(b"\0\0\0\5thr")  # It is being written.
    assert list(reader.read()) == [b"two"]
    with path.open("ab") as file:
        file.write(b"ee")
    assert list(reader.read()) == [b"three"]


def test_a_capture_has_the_beginning_and_a_part_of_the_rest(tmp_path, monkeypatch):
    monkeypatch.setattr(capture, "WHOLE_BYTES", 10)
    monkeypatch.setattr(capture, "CAPTURE_BYTES", 14)
    monkeypatch.setattr(capture, "THEN_EVERY", 5)
    with contextlib.closing(CaptureWriter(tmp_path / "capture")) as writer:
        for i in range(100):
            writer.add(b"%02d" % i)
    found = list(CaptureReader(tmp_path / "capture").read())
    assert found == [b"00", b"01", b"02", b"03", b"04", b"09", b"14"]


def test_a_tapped_socket_sends_and_writes_down(tmp_path):
    with (
        contextlib.closing(tapped(tmp_path / "capture")(Address("127.0.0.1", 0))) as sender,
        contextlib.closing(UdpSocket(Address("127.0.0.1", 0))) as receiver,
    ):
        sender.send(b"single", (receiver.address,))
        sender.send_all([b"many1", b"many2"], (receiver.address,))
        got = [data for _ in range(3) for data in _received(receiver)]
    assert got == [b"single", b"many1", b"many2"]
    assert list(CaptureReader(tmp_path / "capture").read()) == got


def _received(sock):
    try:
        return sock.receive()
    except BlockingIOError:
        return []


def ledger() -> StrictLedger:
    return StrictLedger(("a", "b"), 100)


def test_a_strict_ledger_believes_what_was_sent():
    strict, sent = ledger(), pool("a", 100)
    strict.add("a", 0, sent[:3])
    strict.add("a", 3, [*sent[3:], *sent, *sent[:5]])
    strict.add("a", 133, [sent[5], END])
    assert strict.foreign == 0
    assert strict.counts()["a"] == 135


@pytest.mark.parametrize("place", [0, 1])
def test_a_strict_ledger_counts_every_message_that_nobody_sent(place):
    strict, sent = ledger(), pool("a", 100)[:3]
    sent[place] = b"a forged message"
    strict.add("a", 0, sent)
    assert strict.foreign == 1


def test_a_strict_ledger_counts_the_messages_of_a_stranger():
    strict = ledger()
    strict.add("ghost", 0, [b"x", b"y"])
    assert strict.foreign == 2


def made(kind, rate, **changes):
    fields = {
        "views_changed": 0,
        "foreign": 0,
        "before_mb": 50.0,
        "after_mb": 50.0,
        "cpu_us_per_msg": 1.0,
        "drops": {},
        "sent": {},
        "intruder_cpu": 0.1,
        "drain_cpu": 0.0,
    }
    return Session(kind, rate, **{**fields, **changes})


def test_ratios_are_medians_within_a_round():
    rates = [(100.0, 90.0), (400.0, 200.0), (50.0, 40.0)]
    sessions = [s for a, b in rates for s in (made("quiet", a), made("attacked", b))]
    verdict = Verdict(sessions, 10.0)
    assert verdict.throughput_ratio == 0.8
    assert verdict.sound
    assert verdict.attack_cores == 0.0
    told = document(verdict, "cell")
    assert (told["views_changed"], told["foreign_delivered"]) == (0, 0)
    assert told["throughput_ratio"] == 0.8
    assert told["floor_ratio"] is None


def test_what_an_attack_costs_is_the_time_beyond_that_of_the_messages():
    quiet, attacked = made("quiet", 1e6), made("attacked", 5e5, cpu_us_per_msg=1.5)
    broken = [made("quiet", 1e6), made("attacked", 0.0, cpu_us_per_msg=0.0)]
    verdict = Verdict([quiet, attacked, *broken], 10.0)
    assert verdict.attack_cores == 0.25
    assert Verdict(broken, 10.0).attack_cores is None


@pytest.mark.parametrize(
    "changes", [{"views_changed": 1}, {"foreign": 1}, {"after_mb": 61.0}, {"after_mb": 500.0}]
)
def test_what_an_intruder_achieved_is_told(changes):
    assert not Verdict([made("quiet", 1.0), made("attacked", 1.0, **changes)], 10.0).sound


def test_a_raid_survives_its_way_to_a_process():
    raid = Raid(("127.0.0.1:1",), ("x",), ("y", "z"), 3.0, 5, "g")
    assert Raid.from_json(raid.to_json()) == raid


def test_an_intruder_stays_on_this_machine():
    with pytest.raises(ValueError, match="stays on this machine"):
        Intruder(Raid(("192.0.2.1:5401",)))


class Clock:
    """Time that passes while somebody sleeps, and only then."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds


def test_an_intruder_keeps_to_its_rate_and_its_end(tmp_path, monkeypatch):
    """Everything that it sends arrives, in all kinds; and nothing after its time."""
    clock = Clock()
    monkeypatch.setattr(attack, "time", clock)
    monkeypatch.setattr(attack, "REPLAYS_PER_S", 100)
    monkeypatch.setattr(attack, "FORGED_PER_S", 100)
    sealed = b"RS\1\1" + bytes(range(8)) + bytes(16) + bytes(8) + bytes(100)
    path = tmp_path / "capture"
    with contextlib.closing(CaptureWriter(path)) as writer:
        writer.add(sealed)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as target:
        target.bind(("127.0.0.1", 0))
        target.setblocking(False)
        where = str(Address(*target.getsockname()))
        intruder = Intruder(Raid((where,), (str(path),), (str(path),), 0.2, 640, "g"))
        intruder.read()
        intruder.run(clock.monotonic())
        intruder.close()
        got: list[bytes] = []
        while len(got) < 10_000:
            try:
                got.append(target.recv(65_535))
            except BlockingIOError:
                break
    sent = intruder.sent
    assert 0 < sent["flood"] <= 128
    assert 0 < sent["replayed"] + sent["flipped"] <= 20
    assert 0 < sent["forged"] <= 20
    assert len(got) == sent["flood"] + sent["replayed"] + sent["flipped"] + sent["forged"]
    assert sum(data == sealed for data in got) >= sent["replayed"]


def test_half_of_a_flood_has_the_id_of_the_groups_key():
    intruder = Intruder(Raid(("127.0.0.1:1",)))
    start = b"RS\1\1" + bytes(range(8))
    intruder.session = [b"garbage", start + bytes(100)]
    intruder.close()
    flat = [data for buffer in intruder.pool() for data in buffer]
    assert {len(data) for data in flat} == {attack.FLOOD_BYTES}
    assert sum(data.startswith(start) for data in flat) == len(flat) // 2
    assert len({data[12:28] for data in flat}) == len(flat)


def test_a_forged_datagram_is_not_the_captured_one():
    chance, data = random.Random(1), b"RS\1\1" + bytes(200)
    made = [forged(data, "g", chance) for _ in range(200)]
    assert sum(one == data for one in made) < 10
    assert any(one.startswith(MAGIC) for one in made)
    assert all(
        sum(a != b for a, b in zip(data, flipped(data, chance), strict=True)) == 1
        for _ in range(50)
    )


@pytest.mark.parametrize(
    "words",
    [
        ["--seconds", "0"],
        ["--rounds", "0"],
        ["--flood", "-1"],
        ["--size", "1"],
        ["--datagram", "100"],
        ["--engine", "fifo"],
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(words, capsys):
    assert main(["bench", "intruder", *words]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("roundelay bench: ")
    assert captured.err.count("\n") == 1
