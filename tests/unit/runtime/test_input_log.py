"""Records of a core's inputs: a replay finds every difference."""

import asyncio
import json
from collections import Counter
from dataclasses import replace

import pytest

from roundelay.cli import main
from roundelay.core.contract import Boot
from roundelay.core.ids import Service
from roundelay.runtime.core_setup import CoreSetup
from roundelay.runtime.group import join
from roundelay.runtime.input_log import (
    Input,
    InputLog,
    InputLogError,
    join_burst,
    read,
    record_name,
    records,
    split_burst,
)
from roundelay.runtime.replay import replay
from roundelay.transport.address import free_addresses

SETUP = CoreSetup(
    Boot("g", "a", 3, b"torn", 99), ("a", "b"), "totem", {"token_loss_s": "0.4"}, 0.4, 900, 2**20
)


@pytest.fixture
def record(tmp_path):
    """A node alone: it starts, sends, waits for others in vain, and goes on by itself."""
    path = tmp_path / "record"
    core = SETUP.make_core()
    input_log = InputLog(path, SETUP.to_json(), core.codec)
    input_log.write(Input.START, b"", core.start())
    for payload in (b"one", b"two"):
        core.accept(payload, Service.SAFE)
        input_log.accept(payload, Service.SAFE, None)
    input_log.write(Input.FLUSH, b"", core.flush())
    input_log.write(Input.EXPIRE, b"consensus", core.expire("consensus"))
    input_log.write(Input.LEAVE, b"", core.leave())
    input_log.close()
    return path


def test_a_setup_survives_json():
    assert CoreSetup.from_json(json.loads(json.dumps(SETUP.to_json()))) == SETUP
    logged = replace(SETUP, journal=True, catchup_share=0.3)
    assert CoreSetup.from_json(json.loads(json.dumps(logged.to_json()))) == logged
    assert logged._log_config().yield_share_max == 0.3


def test_a_record_of_before_yields_nothing():
    old = replace(SETUP, journal=True, catchup_share=0.3).to_json()
    del old["catchup_share"]
    assert CoreSetup.from_json(old)._log_config().yield_share_max == 0


def test_a_record_replays_identically(record, capsys):
    found = replay(record)
    assert (found.inputs, found.differs_at, found.node) == (6, None, "a")
    assert found.effects > 10
    assert main(["replay", str(record)]) == 0
    assert "6 inputs" in capsys.readouterr().out
    assert main(["replay", str(record), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["identical"]


def test_another_payload_is_noticed(record, capsys):
    data = record.read_bytes()
    assert data.count(b"two") == 1
    record.write_bytes(data.replace(b"two", b"tWo"))
    found = replay(record)
    assert found.differs_at == 4  # When the message is delivered; none of its bytes show before.
    assert found.differs_in == "expire consensus"
    assert main(["replay", str(record)]) == 1
    assert "input 4 (expire consensus) has other effects" in capsys.readouterr().out


def test_another_core_is_noticed(record):
    head, _, rest = record.read_bytes().partition(b"\n")
    header = {**json.loads(head), "incarnation": 4}
    record.write_bytes(json.dumps(header).encode() + b"\n" + rest)
    assert replay(record).differs_at is not None


def test_what_a_killed_node_left_is_good_up_to_its_last_entry(record):
    record.write_bytes(record.read_bytes()[:-2])
    assert (replay(record).inputs, replay(record).differs_at) == (5, None)


@pytest.mark.parametrize("content", [b"", b"{}\n", b"[" * 9000, b"PAR1"])
def test_what_is_no_record_is_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(
        InputLogError, match="is no record of a node; name a file written by --record"
    ):
        read(tmp_path / "x")


def test_a_missing_or_foreign_record_is_told_by_the_command(tmp_path, record, capsys):
    assert main(["replay", str(tmp_path / "none")]) == 2
    assert "name a file written by --record" in capsys.readouterr().err
    record.write_bytes(b'{"record": 99}\n')
    assert main(["replay", str(record)]) == 2
    assert "another version" in capsys.readouterr().err


def test_damage_in_the_middle_is_told(record):
    head, _, rest = record.read_bytes().partition(b"\n")
    record.write_bytes(head + b"\n" + rest[:9] + b"\xff" + rest[10:])
    with pytest.raises(InputLogError, match="damaged in the middle"):
        replay(record)


def test_a_full_disk_ends_the_record_and_says_so(tmp_path):
    core = SETUP.make_core()
    input_log = InputLog(tmp_path / "record", SETUP.to_json(), core.codec)
    told: list[str] = []
    input_log.trouble = told.append
    input_log.write(Input.START, b"", core.start())
    input_log.flush()
    input_log._file.close()
    input_log._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115  # The log closes it.
    input_log.write(Input.FLUSH, b"", core.flush())
    input_log.write(Input.EXPIRE, b"consensus", core.expire("consensus"))
    input_log.close()
    assert told == ["the record ends here: No space left on device; free some space"]
    assert replay(tmp_path / "record").inputs == 1


def test_a_run_is_kept_datagram_by_datagram():
    run = [b"", b"x", bytes(70_000)]
    joined = join_burst(run)
    assert list(split_burst(joined)) == run
    for cut in (1, 5, 100):
        with pytest.raises(InputLogError, match="half a datagram"):
            list(split_burst(joined[:-cut]))
    with pytest.raises(InputLogError, match="half a datagram"):
        list(split_burst(b""))


def test_a_record_damaged_anywhere_ends_in_a_sentence(record, capsys):
    data = record.read_bytes()

    def outcome(content: bytes) -> str:
        record.write_bytes(content)
        try:
            found = replay(record)
        except InputLogError:
            return "damaged"
        return "the same" if found.differs_at is None else "different"

    outcomes = Counter(outcome(data[:end]) for end in range(len(data)))
    for place in range(len(data)):
        for bit in (0, 3, 7):
            damaged = bytearray(data)
            damaged[place] ^= 1 << bit
            outcomes[outcome(bytes(damaged))] += 1
    assert set(outcomes) == {"damaged", "different", "the same"}  # The same, up to where it is cut.
    record.write_bytes(data[:-20] + bytes(20))
    assert main(["replay", str(record)]) in (1, 2)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("value", [None, -1, 2**70, "x", [], {}, [1], {"a": 1}, "\ud800"])
def test_a_header_of_wrong_types_ends_in_a_sentence(record, value, capsys):
    head, _, rest = record.read_bytes().partition(b"\n")
    for field in json.loads(head):
        header = {**json.loads(head), field: value}
        record.write_bytes(json.dumps(header).encode() + b"\n" + rest)
        assert main(["replay", str(record)]) in (0, 1, 2)
    assert "is damaged, or was made by another version of Roundelay" in capsys.readouterr().err


def test_a_directory_is_replayed_file_by_file(record, tmp_path, capsys):
    kept = tmp_path / "kept"
    kept.mkdir()
    with pytest.raises(InputLogError, match="holds no record"):
        records(kept)
    for incarnation in (3, 12):
        (kept / record_name("a", incarnation)).write_bytes(record.read_bytes())
    assert main(["replay", str(kept)]) == 0
    assert capsys.readouterr().out.count("all identical") == 2
    (kept / record_name("a", 3)).write_bytes(b"")
    assert main(["replay", str(kept)]) == 2
    said = capsys.readouterr()
    assert "a-3.record is no record of a node" in said.err
    assert said.out.count("all identical") == 1


def test_every_start_has_a_record_of_its_own(tmp_path):
    async def start_and_leave() -> None:
        (address,) = free_addresses("a").values()
        options = {"record": tmp_path / "records", "state": tmp_path / "state"}
        async with join("g", node="a", peers={"a": address}, **options):
            pass

    for _ in range(2):
        asyncio.run(start_and_leave())
    first, second = records(tmp_path / "records")
    assert first.stat().st_size > 0
    assert second.stat().st_size > 0
