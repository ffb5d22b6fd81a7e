"""An intruder: somebody who has no key, hears everything that is sent, and sends anything to
anybody.

It acts at random moments. Each act has a number and random choices of its own, so that acts can be
left out and the others stay what they are. What it sends arrives at hosts as bytes; no host has
sent them, and the trace tells of them only where they are refused, or take effect.

What it cannot do here: keep datagrams from arriving. Loss, cuts and delays are faults of the
network, and a datagram that is held back for seconds is a spike with a large `spike-by`.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from roundelay.core.ids import NodeId
from roundelay.sim.capture import HEADER_BYTES, Capture, Captured
from roundelay.sim.transmission import Intrusion
from roundelay.wire.frame import SEALED_MAGIC, encode, encode_origin

if TYPE_CHECKING:
    from roundelay.sim.world import World

OLD_NS = 5_000_000_000
"""What was sent longer ago is old: a sealed group must not believe it."""
SPREAD_NS = 2_000_000
"""Within this time the datagrams of one act arrive."""
RECENT = 40
"""Of so many datagrams the next is sent again, where something recent is."""
SESSION_MAX = 150
"""Datagrams of a session that are sent again in one act."""
FLOOD_MAX = 300
"""Datagrams of one flood. Larger: runs take longer. Smaller: it drowns nothing."""

ACT = "intruder/"
"""How the names of acts begin, among the choices of a run."""

_SEAL_START = SEALED_MAGIC + b"\x01\x01"
"""Magic, version and a cipher."""

Made = tuple[NodeId, bytes]
"""A datagram, and to whom it is sent."""


class Intruder:
    """Acts in a world from now on, until the world is healed or has another intruder."""

    def __init__(
        self,
        world: "World",
        seed: int,
        rate_per_s: float,
        kinds: Sequence[str],
        only: Iterable[int] | None = None,
    ) -> None:
        """`kinds` are names in `KINDS`. With `only`, all acts but those of these numbers are left
        out."""
        if world.capture is None:
            world.capture = Capture()
        self._capture = world.capture
        self._world = world
        self._rate_per_s = rate_per_s
        self._kinds = tuple(kinds)
        self._only = None if only is None else frozenset(only)
        self._name = f"roundelay/{seed}/intruder"
        self._times = Random(f"{self._name}/after/{world.acts}")
        self._await_next()

    def _await_next(self) -> None:
        wait_ns = round(self._times.expovariate(self._rate_per_s) * 1e9)
        self._world.loop.at(self._world.loop.now + wait_ns, self._act)

    def _act(self, _: object) -> None:
        if self._world.intruder is not self:
            return
        world = self._world
        world.acts += 1
        if self._only is None or world.acts in self._only:
            random = Random(f"{self._name}/{world.acts}")
            kind = random.choice(self._kinds)
            made = KINDS[kind](world, self._capture, random) if self._capture.all else []
            if made and world.choices.happens(f"{ACT}{world.acts}", kind):
                send(world, kind, made, random)
        self._await_next()


def send(world: "World", kind: str, made: Iterable[Made], random: Random | None = None) -> None:
    """Let datagrams arrive, in their order: at once, or within `SPREAD_NS`."""
    datagrams = list(made)
    delays = sorted(random.randint(1, SPREAD_NS) for _ in datagrams) if random else None
    for at, (to, data) in enumerate(datagrams):
        intrusion = Intrusion(kind, data)
        if delays is None:
            world.hosts[to].arrive((intrusion, data))
        else:
            world.loop.at(world.loop.now + delays[at], world.hosts[to].arrive, (intrusion, data))


# What an act sends


def _replay(world: "World", capture: Capture, random: Random) -> list[Made]:
    """A datagram, recent or not, is sent again, up to twenty times, to anybody."""
    first = random.choice((0, max(0, len(capture.all) - RECENT)))
    captured = capture.all[random.randrange(first, len(capture.all))]
    to = _somebody(world, captured, random)
    return [(to, captured.transmission.data)] * random.choice((1, 1, 2, 20))


def _old(world: "World", capture: Capture, random: Random) -> list[Made]:
    """Datagrams that were sent more than five seconds ago are sent again, in their order."""
    before = world.loop.now - OLD_NS
    count = next((i for i, one in enumerate(capture.all) if one.time_ns >= before), None)
    return _again(world, capture.all[:count], random, 40)


def _session(world: "World", capture: Capture, random: Random) -> list[Made]:
    """What one node heard so far is sent to it again, in its order, or a long part of it."""
    node = random.choice(world.nodes)
    heard = [captured for captured in capture.all if node in captured.receivers]
    start = random.randrange(len(heard)) if heard and random.random() < 0.5 else 0
    part = heard[start : start + random.randint(1, SESSION_MAX)]
    return [(node, captured.transmission.data) for captured in part]


def _dead(world: "World", capture: Capture, random: Random) -> list[Made]:
    """What a dead incarnation sent last, or before that, is sent again: Joins, tokens and all."""
    hosts = world.hosts
    dead = [
        life
        for life in capture.lives
        if not hosts[life[0]].alive or hosts[life[0]].incarnation != life[1]
    ]
    if not dead:
        return []
    places = capture.lives[random.choice(dead)]
    start = random.choice((max(0, len(places) - 40), random.randrange(len(places))))
    return _again(world, [capture.all[place] for place in places[start:]], random, 40)


def _proof(world: "World", capture: Capture, random: Random) -> list[Made]:
    """Challenges and answers, of dead incarnations too, are sent again, in their order."""
    proofs = [captured for captured in capture.all if not captured.transmission.traced]
    recent = proofs[-10:] if random.random() < 0.5 else proofs
    return _again(world, recent, random, random.choice((1, 3, 10)))


def _astray(world: "World", capture: Capture, random: Random) -> list[Made]:
    """A datagram that was just sent to one node, a token for instance, is sent to others."""
    recent = [one for one in capture.all[-3 * RECENT :] if one.transmission.to is not None]
    if not recent:
        return []
    captured = random.choice((recent[-1], random.choice(recent)))
    others = [node for node in world.nodes if node not in captured.receivers]
    return [(other, captured.transmission.data) for other in others]


def _flip(world: "World", capture: Capture, random: Random) -> list[Made]:
    """Bits of a datagram are changed, in its header or behind it, and it is sent as if new."""
    captured = capture.all[random.randrange(len(capture.all))]
    data = bytearray(captured.transmission.data)
    header = random.random() < 0.5
    for _ in range(random.randint(1, 3)):
        at = random.randrange(min(HEADER_BYTES, len(data))) if header else _behind(data, random)
        data[at] ^= 1 << random.randrange(8)
    return [(_somebody(world, captured, random), bytes(data))]


def _cut(world: "World", capture: Capture, random: Random) -> list[Made]:
    """A datagram is sent without its end, or with more behind it."""
    captured = capture.all[random.randrange(len(capture.all))]
    data = captured.transmission.data
    if random.random() < 0.5:
        data = data[: random.randrange(len(data))]
    else:
        data += random.randbytes(random.randint(1, 60))
    return [(_somebody(world, captured, random), data)]


def _forge(world: "World", capture: Capture, random: Random) -> list[Made]:
    """A datagram is made up: the key id, the boot, the counter or the content of another one, and
    random bytes for the rest."""
    captured = capture.all[random.randrange(len(capture.all))]
    real = captured.transmission.data
    other = capture.all[random.randrange(len(capture.all))].transmission.data
    if real[:2] != SEALED_MAGIC:
        return [(random.choice(world.nodes), random.randbytes(len(real)))]
    key_id = random.choice((real[4:12], random.randbytes(8)))
    boot = random.choice((real[12:28], other[12:28], random.randbytes(16)))
    counter = int.from_bytes(real[28:HEADER_BYTES]) + random.choice((-1, 0, 1, 1000, 2**40))
    head = _SEAL_START + key_id + boot + (counter % 2**64).to_bytes(8)
    content = random.choice((real[HEADER_BYTES:], other[HEADER_BYTES:], random.randbytes(200)))
    return [(_somebody(world, captured, random), head + content)]


def _plain(world: "World", capture: Capture, random: Random) -> list[Made]:
    """A frame without a seal and with a right checksum, as nodes without a key send it: it would
    take effect there."""
    captured = capture.all[random.randrange(len(capture.all))]
    data = unsealed(captured.transmission.frame, world.hosts[captured.transmission.sender])
    return [(_somebody(world, captured, random), data)]


def _flood(world: "World", capture: Capture, random: Random) -> list[Made]:
    """Many datagrams for all nodes: garbage, and such with the right key id and random boots."""
    real = capture.all[random.randrange(len(capture.all))].transmission.data
    count = random.randint(FLOOD_MAX // 4, FLOOD_MAX)
    return [
        (random.choice(world.nodes), random.randbytes(80))
        if i % 2
        else (random.choice(world.nodes), real[:12] + random.randbytes(88))
        for i in range(count)
    ]


Act = Callable[["World", Capture, Random], list[Made]]

KINDS: dict[str, Act] = {
    "replay": _replay,
    "old": _old,
    "session": _session,
    "dead": _dead,
    "proof": _proof,
    "astray": _astray,
    "flip": _flip,
    "cut": _cut,
    "forge": _forge,
    "plain": _plain,
    "flood": _flood,
}
"""What an intruder does, by name; the docstrings are for people."""


def unsealed(frame: Any, host: Any) -> bytes:
    """A frame as it would be sent without a seal, by a host that knows its messages."""
    codec = host.endpoint.codec if frame.tag in host.endpoint.codec.tags else None
    body = b"" if codec is None else codec.encode(frame.message)[1]
    return encode(encode_origin(frame.origin), frame.tag, frame.lamport, frame.number, body)


def _again(world: "World", captured: Sequence[Captured], random: Random, most: int) -> list[Made]:
    """Some of these in their order, each to all whom it was for, or to one node."""
    one = random.choice((None, random.choice(world.nodes)))
    start = random.randrange(len(captured)) if captured and random.random() < 0.5 else 0
    part = captured[start : start + most]
    return [(to, c.transmission.data) for c in part for to in ((one,) if one else c.receivers)]


def _somebody(world: "World", captured: Captured, random: Random) -> NodeId:
    """One whom a datagram was for, or anybody."""
    return random.choice(random.choice((captured.receivers or world.nodes, world.nodes)))


def _behind(data: bytearray, random: Random) -> int:
    """A place behind the header."""
    return random.randrange(min(HEADER_BYTES, len(data) - 1), len(data))
