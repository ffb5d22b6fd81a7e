"""Frames that are handed over as objects: a run is the same, row by row, as with bytes.

Most frames of most seeds of a campaign do not go through their bytes, and a world may leave rows
out. Here both ways are compared; what is left out is the only difference.
"""

from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest

from roundelay.bench import realtime
from roundelay.check.online import OnlineChecker
from roundelay.core.contract import Boot
from roundelay.core.effects import Kind, Send
from roundelay.group.engines import engine_names
from roundelay.sim import swarm
from roundelay.sim.faults import Choices
from roundelay.sim.network import Lan
from roundelay.sim.seeds import scenario
from roundelay.sim.swarm import BYTES_EVERY, Campaign, SeedResult
from roundelay.sim.transmission import Transmission
from roundelay.sim.world import World
from roundelay.trace.schema import Row
from roundelay.wire.endpoint import Endpoint

NEVER = 10**9
"""Frames until one goes through its bytes: more than any run has."""

ENGINES = [engine for engine in engine_names() if engine != "template"]


def damaging(engine: str, **options: Any) -> swarm.Outcome:
    """What comes of the first seed in which frames are doubled, and some were found damaged."""
    for seed in count():
        text = scenario(seed, engine, **options)
        if "corrupt=" in text and "duplicate=" in text:
            outcome = swarm.run(seed, engine, online=False, bytes_every=1, **options)
            if any(row.kind == "drop" and row.tag == "checksum" for row in outcome.runner.rows):
                return outcome
    raise AssertionError("there is none")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_seed_with_damaged_frames_runs_alike_row_by_row(engine):
    bytes_ = damaging(engine)
    objects = swarm.run(bytes_.seed, engine, online=False, bytes_every=NEVER)
    assert objects.runner.rows == bytes_.runner.rows
    assert (objects.reached, objects.failures) == (bytes_.reached, bytes_.failures)


def test_a_seed_with_a_log_runs_alike_row_by_row():
    bytes_ = damaging("totem", log=True)
    objects = swarm.run(bytes_.seed, "totem", log=True, online=False, bytes_every=BYTES_EVERY)
    assert objects.runner.rows == bytes_.runner.rows


def test_the_first_tenth_of_a_campaign_takes_every_frame_through_its_bytes(monkeypatch):
    asked = []

    def check_seed(seed, *, bytes_every, **options):
        asked.append((seed, bytes_every))
        return SeedResult(seed, (), {}, (), "")

    monkeypatch.setattr(swarm, "check_seed", check_seed)
    list(Campaign("totem").run(7, 11, jobs=1))
    assert asked == [(7, 1), (8, 1), *((seed, BYTES_EVERY) for seed in range(9, 18))]
    asked.clear()
    list(Campaign("totem").run(3, 1, jobs=1))
    assert asked == [(3, 1)]


# Which frames


def ring(seed: int, **options: Any) -> tuple[World, list[int]]:
    """The numbers of frames that went through their bytes, of a ring that forms."""
    through = []

    class Noted(Transmission):
        __slots__ = ()

        def __init__(self, *given: Any, as_bytes: bool) -> None:
            super().__init__(*given, as_bytes=as_bytes)
            if as_bytes:
                through.append(self.number)

    rows: list[Row] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roundelay.sim.host.Transmission", Noted)
        made = World(
            realtime.NODES,
            realtime.a_core,
            Lan(),
            rows.append,
            choices=Choices(seed),
            **options,
        )
        made.start()
        made.run(200_000_000)
    return made, through


def test_which_frames_go_through_their_bytes_is_the_seeds_choice():
    world, one = ring(1, bytes_every=10)
    assert world.frames / 20 < len(one) < world.frames / 5
    assert ring(1, bytes_every=10)[1] == one
    assert ring(2, bytes_every=10)[1] != one
    world, every = ring(1)
    assert len(every) == world.frames


class Liar:
    """A codec that reads something else than was written."""

    tags: Mapping[int, str] = {1: "NOTE"}

    def encode(self, message: bytes) -> tuple[int, bytes]:
        return 1, message

    def decode(self, tag: int, data: bytes, start: int) -> bytes:
        return data[start:].upper()


def test_a_message_that_reads_otherwise_than_it_was_sent_is_found():
    endpoint: Endpoint[bytes] = Endpoint(Boot("sim", "a"), Liar())
    with pytest.raises(AssertionError, match="sent b'x', and read b'X'"):
        Transmission(endpoint, "a", 0, Send(b"x"), {})
    object_ = Transmission(endpoint, "a", 0, Send(b"x"), {}, as_bytes=False)
    assert object_.message == b"x"
    assert object_.number == 2, "numbers count frames, however they are sent"
    assert object_.frame.size == len(object_.data)


# Rows that are left out


def rows_of_a_ring(*, token_rows: bool, net_rows: bool = False) -> list[Row]:
    rows: list[Row] = []
    checker = OnlineChecker(realtime.NODES)
    append = realtime.checked(rows.append, checker.append)
    bytes_every = 1 if net_rows else realtime.BYTES_EVERY
    _, go = realtime.ring(
        append, 0.2, net_rows=net_rows, token_rows=token_rows, bytes_every=bytes_every
    )
    go()
    assert not checker.violations
    return rows


def without_numbers(row: Row) -> Row:
    """The row without what counts rows."""
    return row._replace(lseq=0, gseq=None, cause=None)


def test_rows_of_token_hops_that_are_left_out_are_the_only_difference():
    with_hops, without = rows_of_a_ring(token_rows=True), rows_of_a_ring(token_rows=False)
    others = [row for row in with_hops if row.kind != Kind.TOKEN]
    assert len(with_hops) > 2 * len(others) > 0
    assert list(map(without_numbers, without)) == list(map(without_numbers, others))
    assert [row.gseq for row in without] == list(range(len(without)))


def test_rows_of_frames_and_timers_that_are_left_out_are_the_only_difference():
    """With them, every frame goes through its bytes too."""
    of_frames = {Kind.SEND, Kind.ARRIVE, Kind.DROP, Kind.EXPIRE}
    with_frames = rows_of_a_ring(token_rows=True, net_rows=True)
    without = rows_of_a_ring(token_rows=True)
    others = [row for row in with_frames if row.kind not in of_frames]
    assert len(with_frames) > len(others) > 0
    assert list(map(without_numbers, without)) == list(map(without_numbers, others))
