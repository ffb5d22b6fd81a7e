"""A million datagrams that make no sense: each is counted, none is felt."""

import copy
from random import Random

from roundelay.core.contract import Boot, Origin
from roundelay.core.ids import Packet, Service, Span
from roundelay.group.engines import engine_factory
from roundelay.group.static import StaticStack
from roundelay.protocols.template import Data
from roundelay.sim.network import Manual
from roundelay.sim.transmission import Transmission
from roundelay.sim.world import World
from roundelay.trace.schema import Row
from roundelay.wire.frame import FRAME_BYTES_MAX, VERSION, Frame, encode, encode_origin
from roundelay.wire.primitives import Reason

MEMBERS = ("a", "b", "c")
KINDS = 6
EACH = 1_000_000 // KINDS + 1


def world(group: str = "g") -> World:
    """A static group on a manual network, whose trace is `world.rows`."""

    def core(boot: Boot) -> StaticStack:
        return StaticStack(boot, MEMBERS, engine_factory("template"))

    rows: list[Row] = []
    made = World(MEMBERS, core, Manual(), rows.append, group=group, net_rows=False)
    made.start()
    return made


def sent(made: World, sizes: tuple[int, ...]) -> list[Transmission]:
    """Frames that b sends, each as a waits for it."""
    for size in sizes:
        made.submit("b", bytes(size))
    return [transmission for transmission, receiver in made.held if receiver == "a"]


def stack(made: World) -> StaticStack:
    core = made.hosts["a"].core
    assert isinstance(core, StaticStack)
    return core


def state(made: World) -> object:
    host, core = made.hosts["a"], stack(made)
    engine = {k: v for k, v in vars(core.engine).items() if k != "_outlet"}
    packer = vars(core.delivery.packer)
    index, clock = core.delivery.index, host.endpoint.lamport
    return copy.deepcopy((engine, packer, index, host.timers, clock))


def test_a_million_bad_frames_change_nothing():
    random = Random(7)
    made = world()
    sound = sent(made, (0, 10, 100, 1000))
    strange = [transmission.data for transmission in sent(world("other"), (0, 10, 100, 1000))]
    host = made.hosts["a"]
    before = state(made)

    def bad(kind: int, raw: bytes) -> bytes:
        match kind:
            case 0:
                return raw[: random.randrange(len(raw))]
            case 1:
                return raw + random.randbytes(random.randint(0, 8)) + b"!"  # Zeros may follow.
            case 2:
                version = random.choice((0, VERSION - 1, VERSION + 1, 255))
                return raw[:6] + bytes([version]) + raw[7:]
            case 3:
                return random.choice(strange)
            case 4:
                return random.randbytes(random.randint(0, 120))
            case _:
                flipped = bytearray(raw)
                for _ in range(random.randint(1, 3)):
                    bit = random.randrange(len(raw) * 8)
                    flipped[bit // 8] ^= 1 << bit % 8
                return raw[:1] if flipped == raw else bytes(flipped)

    for _ in range(EACH):
        transmission = random.choice(sound)
        for kind in range(KINDS):
            host.arrive((transmission, bad(kind, transmission.data)))

    drops = host.endpoint.drops
    assert sum(drops.values()) == EACH * KINDS >= 1_000_000
    assert drops[Reason.GROUP] == EACH
    assert drops[Reason.VERSION] >= EACH
    for reason in (Reason.TRUNCATED, Reason.OVERSIZED, Reason.FOREIGN, Reason.CHECKSUM):
        assert drops[reason] > EACH // 10, drops
    assert state(made) == before
    assert len(vars(host.endpoint)["_origins"]) <= 1024

    # The same host is still there for sound ones.
    host.arrive((sound[1], None))
    assert stack(made).delivery.index == 1


def test_frames_of_the_largest_size_and_beyond():
    made = world()
    endpoint = made.hosts["a"].endpoint
    largest = b"RD" + bytes(FRAME_BYTES_MAX - 2)
    assert endpoint.receive(largest) is Reason.VERSION
    raw = sent(made, (10,))[0].data
    assert endpoint.receive(raw + bytes(FRAME_BYTES_MAX)) is Reason.OVERSIZED


def test_forged_bodies_with_a_right_checksum_are_refused_or_harmless():
    """Whoever knows the format can pass the checksum. The core must take what it then gets."""
    random = Random(11)
    made = world()
    core, endpoint = stack(made), made.hosts["a"].endpoint
    codec = core.codec
    for i in range(50_000):
        packet = Packet(
            Span(random.choice(("a", "b", "zz")), random.choice((0, 9)), i % 40, i % 3),
            Service.AGREED,
            random.randbytes(5),
            random.choice((None, (), ("a",), ("zz", "zz"))),
        )
        body = bytearray(codec.encode(Data(i % 40, packet))[1])
        for _ in range(random.randint(0, 3)):
            body[random.randrange(len(body))] = random.randrange(256)
        name = random.choice(("b", "c", "stranger"))
        view = random.choice((None, core.view.id))
        origin = encode_origin(Origin("g", name, 0, view))
        got = endpoint.receive(encode(origin, random.choice((1, 1, 2)), 5, i, bytes(body)))
        if isinstance(got, Frame):
            core.receive(got.origin, got.message)
    assert endpoint.drops[Reason.MALFORMED] > 1000
    assert core.delivery.index > 0
    known = vars(core.engine)["known"]
    assert all(len(packets) <= 1024 for packets in known.values())
    assert set(known) == set(MEMBERS)
