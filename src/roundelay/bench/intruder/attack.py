"""The intruder: `python -m roundelay.bench.intruder.attack RAID`, a process without a key.

What it sends has a fixed rate and a fixed end, and goes to the addresses that it is given, which
are on this machine.
"""

import dataclasses
import json
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from roundelay.bench.intruder.capture import CaptureReader
from roundelay.bench.ring.talk import Orders, say
from roundelay.core.contract import Origin
from roundelay.transport.address import Address, is_loopback, parse_address, resolve
from roundelay.transport.segments import SEGMENTS_MAX
from roundelay.transport.udp import UdpSocket
from roundelay.wire.frame import SEALED_MAGIC, encode, encode_origin

FLOOD_BYTES = 200
"""The size of a datagram of the flood."""
POOL_BUFFERS = 128
"""Buffers of `SEGMENTS_MAX` datagrams of each kind that are made before the flood and repeated."""
REPLAYS_PER_S = 2000
REPLAY_BYTES_PER_S = 20_000_000
"""How fast captures are repeated: the lower of the two limits holds."""
FLIPPED_SHARE = 0.25
"""The share of repeated datagrams that have a bit flipped."""
FORGED_PER_S = 1000
FORGED_BYTES_MAX = 1400
TICK_S = 0.001
LATE_S = 0.050
"""What could not be sent for so long is left out, so that no backlog comes as one burst."""
READ_S = 1.0
"""How often the captures are read again, in seconds."""
OLD_SHARE = 0.5
"""The share of repeated datagrams that come from the earlier session."""

_HEADER_BYTES, _COUNTER_AT, _KEY_END = 36, 28, 12


@dataclass(frozen=True, slots=True)
class Raid:
    """What an intruder does."""

    targets: tuple[str, ...]
    captures: tuple[str, ...] = ()
    """Of this session; they grow."""
    old_captures: tuple[str, ...] = ()
    """Of the earlier session."""
    seconds: float = 10.0
    flood_per_s: int = 100_000
    group: str = ""
    node: str = "intruder"
    """The name of its process."""

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        fields: dict[str, Any] = json.loads(text)
        for name in ("targets", "captures", "old_captures"):
            fields[name] = tuple(fields[name])
        return cls(**fields)


class Intruder:
    """Sends what a raid says, until its time is over."""

    def __init__(self, raid: Raid, seed: int = 1) -> None:
        self._raid = raid
        self._random = random.Random(seed)
        self._targets = [resolve(parse_address(text))[1] for text in raid.targets]
        if not all(map(is_loopback, self._targets)):
            raise ValueError("an intruder stays on this machine")
        self._socket = UdpSocket(Address("127.0.0.1", 0))
        self._readers = [CaptureReader(Path(path)) for path in raid.captures]
        self.session: list[bytes] = []
        self.old = [data for path in raid.old_captures for data in CaptureReader(Path(path)).read()]
        self.sent = {"flood": 0, "replayed": 0, "flipped": 0, "forged": 0, "left_out": 0}
        self._next = {"session": 0, "old": 0}

    def close(self) -> None:
        self._socket.close()

    def read(self) -> None:
        """Read what was captured of this session since the last call."""
        for reader in self._readers:
            self.session += reader.read()

    # The flood

    def pool(self) -> list[list[bytes]]:
        """Buffers of the flood: garbage, and datagrams that begin as those of the group do, from
        boots that nobody has; in turn."""
        start = self._key_start()
        made = []
        for _ in range(POOL_BUFFERS):
            for prefix in (b"", start):
                rest = FLOOD_BYTES - len(prefix)
                made.append([prefix + self._random.randbytes(rest) for _ in range(SEGMENTS_MAX)])
        return made

    def _key_start(self) -> bytes:
        """How sealed datagrams of the group begin, up to the id of their key."""
        sealed = (data for data in self.session + self.old if data.startswith(SEALED_MAGIC))
        return next(sealed, b"")[:_KEY_END]

    def run(self, start: float) -> None:
        """Attack from then on, on the monotonic clock."""
        raid, sent = self._raid, self.sent
        buffers, at = self.pool(), 0
        time.sleep(max(0.0, start - time.monotonic()))
        end, read_at = start + raid.seconds, start
        paces = {
            "flood": _Pace(raid.flood_per_s, start),
            "replays": _Pace(REPLAYS_PER_S, start),
            "replay_bytes": _Pace(REPLAY_BYTES_PER_S, start),
            "forged": _Pace(FORGED_PER_S, start),
        }
        while (now := time.monotonic()) < end:
            if now >= read_at:
                self.read()
                read_at = now + READ_S
            for pace in paces.values():
                sent["left_out"] += pace.catch_up(now) if pace is paces["flood"] else 0
            while paces["flood"].due(now) >= SEGMENTS_MAX:
                target = self._targets[at % len(self._targets)]
                self._socket.send_all(buffers[(at // len(self._targets)) % len(buffers)], (target,))
                at += 1
                paces["flood"].add(SEGMENTS_MAX)
                sent["flood"] += SEGMENTS_MAX
            while self.session and paces["replays"].due(now) >= 1:
                if paces["replay_bytes"].due(now) < 0:
                    break
                paces["replays"].add(1)
                paces["replay_bytes"].add(self._replay())
            while self.session and paces["forged"].due(now) >= 1:
                paces["forged"].add(1)
                self._forge()
            time.sleep(TICK_S)

    # Captured and forged

    def _replay(self) -> int:
        """Repeat the next captured datagram; returns its size."""
        random = self._random
        kept, name = (self.session, "session")
        if self.old and random.random() < OLD_SHARE:
            kept, name = (self.old, "old")
        data = kept[self._next[name] % len(kept)]
        self._next[name] += 1
        kind = "replayed"
        if random.random() < FLIPPED_SHARE:
            data, kind = flipped(data, random), "flipped"
        self._socket.send(data, (random.choice(self._targets),))
        self.sent[kind] += 1
        return len(data)

    def _forge(self) -> None:
        random = self._random
        data = forged(random.choice(self.session), self._raid.group, random)
        self._socket.send(data, (random.choice(self._targets),))
        self.sent["forged"] += 1


class _Pace:
    """So many of something a second, from a time on."""

    def __init__(self, per_s: float, start: float) -> None:
        self._per_s = per_s
        self._start = start
        self._done = 0.0

    def due(self, now: float) -> float:
        return (now - self._start) * self._per_s - self._done

    def add(self, count: int) -> None:
        self._done += count

    def catch_up(self, now: float) -> int:
        """Leave out what should have been sent long ago; returns how much that is."""
        late = int(self.due(now) - max(LATE_S * self._per_s, 2 * SEGMENTS_MAX))
        if late > 0:
            self._done += late
        return max(0, late)


def flipped(data: bytes, random: random.Random) -> bytes:
    """The datagram with one bit changed."""
    at = random.randrange(len(data))
    return data[:at] + bytes((data[at] ^ 1 << random.randrange(8),)) + data[at + 1 :]


def forged(data: bytes, group: str, random: random.Random) -> bytes:
    """A datagram made of a captured one, as good as it gets without a key."""
    data = data[:FORGED_BYTES_MAX]
    header, body = data[:_HEADER_BYTES], data[_HEADER_BYTES:]
    ways: Sequence[Callable[[], bytes]] = (
        # The next counters of this boot, and the last ones.
        lambda: header[:_COUNTER_AT] + random.randrange(2**32).to_bytes(8) + body,
        lambda: header[:_COUNTER_AT] + (2**64 - 1 - random.randrange(9)).to_bytes(8) + body,
        lambda: header + random.randbytes(len(body)),
        lambda: data[: random.randrange(len(data))],
        lambda: header[:2] + bytes((random.randrange(256), random.randrange(4))) + data[4:],
        # Not sealed at all, with a right checksum.
        lambda: encode(
            encode_origin(Origin(group, random.choice("abc"), 1, None)),
            random.randrange(256),
            2**62,
            1,
            body,
        ),
    )
    return random.choice(ways)()


def main(raid: Raid) -> None:
    orders = Orders()
    intruder = Intruder(raid)
    say(ready=True)
    start: float = orders.wait("attack")
    intruder.read()
    before = time.process_time()
    intruder.run(start)
    intruder.close()
    result: Mapping[str, Any] = {
        "sent": intruder.sent,
        "cpu_s": time.process_time() - before,
        "seconds": raid.seconds,
    }
    say(result=result)
    orders.wait("leave")


if __name__ == "__main__":
    try:
        main(Raid.from_json(sys.argv[1]))
    except Exception as e:
        say(failure=f"{type(e).__name__}: {e}")
        raise
