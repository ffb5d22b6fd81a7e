"""Forged datagrams against the seal, and forged frames through it.

An arena whose forged frames travel under a seal. Every node has the real one. Whoever forges has
the group's key for a part of what is sent, as a member that lies has it: those datagrams are sealed
properly, under any name, and open; what is in them is for the layers behind the seal. The rest is
made without the key: sealed datagrams with bits flipped, cut, spliced, repeated, with other
versions, ciphers, keys, boots and counters.

Judged besides what an arena judges: what a seal keeps is bounded by its peers, and what it sends by
time and by what members ask of it.
"""

from collections import Counter, deque
from collections.abc import Mapping
from random import Random

from roundelay.bench.fuzz.arena import GROUP, NODES, Arena, Stopwatch
from roundelay.bench.fuzz.mutations import STRANGER
from roundelay.core.contract import Boot, Origin
from roundelay.core.ids import NODE_NAME_BYTES_MAX, NodeId
from roundelay.sealing.ciphers import KEY_BYTES, Cipher
from roundelay.sealing.keys import GroupKey, KeyRing
from roundelay.sealing.lives import WINDOW
from roundelay.sealing.proofs import BOOT_BYTES, CHALLENGE_BYTES, NO_CHALLENGE
from roundelay.sealing.seal import HEADER_BYTES, PROOF_INTERVAL_S, Seal
from roundelay.sim.transmission import Transmission
from roundelay.wire.frame import PROOF_TAG, encode, encode_origin, origin_in
from roundelay.wire.primitives import U64_MAX, Reason, WireError

KEPT_SEALED = 200
"""Sealed datagrams that are kept to be repeated, changed or spliced later."""
EXCHANGES_MAX = 6
"""Challenges and answers that follow from one datagram; honest nodes need four."""
LIMITS = 3
"""Limits of a seal for each peer, each with one datagram in `PROOF_INTERVAL_S`: on challenges, on
renewals, and on answers to boots that are not proven."""
STEPS_S = (0.0, 0.0, 0.000_5, 0.002)
"""How the time of the seals goes on between two datagrams, besides the time of the group."""
JUMPS_S = (0.011, 0.021, 0.5, 2.1, 5.1)
"""The same, now and then: past the limits of a seal."""
LONG_JUMPS_S = (31.0, 61.0)
"""Past the steps of a change of keys."""
COUNTERS = (0, 1, 2, WINDOW - 1, WINDOW, 2**32, 2**63 - 1, 2**63, 2**64 - 2, U64_MAX)
ODD_NAMES = ("", "a\0b", "../a", "a/b", "\n", "a" * NODE_NAME_BYTES_MAX, "\u202ea", STRANGER)


class SealedArena(Arena):
    """An arena whose forged frames have to pass seals."""

    def __init__(
        self,
        engine: str,
        seed: str,
        clock: Stopwatch,
        *,
        static: bool,
        options: Mapping[str, str] | None = None,
        choices: Random | None = None,
    ) -> None:
        super().__init__(engine, seed, clock, static=static, options=options, choices=choices)
        self._keys: KeyRing = (GroupKey(self._forging.randbytes(KEY_BYTES)),)
        self._jumped_s = 0.0
        self._seals: dict[NodeId, tuple[int, Seal]] = {}
        """Of the nodes, each with the incarnation that it is for."""
        self._members: dict[NodeId, tuple[int, Seal]] = {}
        """Of those who forge with the key, by the name under which they do."""
        self._captured: deque[tuple[set[NodeId], bytes]] = deque(maxlen=KEPT_SEALED)
        """Sealed datagrams, and which nodes have got each."""
        self._allowed: dict[tuple[NodeId, NodeId], tuple[float, float]] = {}
        """By node and peer: how many challenges and answers the one may send to the other, and when
        that was reckoned."""
        self._old: deque[bytes] = deque(maxlen=KEPT_SEALED)
        """Datagrams of boots that are over, each sealed properly, to be repeated in storms."""
        self._standstill = False
        """A storm: old datagrams come at a rate of which seals have to bear the most, because no
        time passes for them besides the time of the group."""
        self._outcomes: Counter[str] = Counter()

    @property
    def _now(self) -> float:
        return self.world.loop.now / 1e9 + self._jumped_s

    def drops(self) -> Counter[str]:
        return super().drops() + self._outcomes

    # Seals

    def _seal_of(self, node: NodeId) -> Seal:
        """The seal of this life of a node."""
        incarnation = max(0, self.world.hosts[node].incarnation)
        if node not in self._seals or self._seals[node][0] != incarnation:
            self._seals[node] = (incarnation, self._made(node, incarnation))
            self._allowed = {pair: left for pair, left in self._allowed.items() if pair[0] != node}
        return self._seals[node][1]

    def _member(self, name: NodeId, incarnation: int, *, restart: bool = False) -> Seal:
        """The seal of somebody with the key, who calls himself so."""
        known = self._members.get(name)
        if known is not None and restart:
            frame = encode(encode_origin(Origin(GROUP, name, known[0], None)), 0, 1, 1, b"")
            self._old.append(known[1].seal(frame))
        if known is None or known[0] != incarnation or restart:
            self._members[name] = known = (incarnation, self._made(name, incarnation))
        return known[1]

    def _made(self, node: NodeId, incarnation: int) -> Seal:
        random = self._forging
        return Seal(
            Boot(GROUP, node, incarnation),
            NODES,
            self._keys,
            random.randbytes,
            self._now,
            random.choice(tuple(Cipher)),
        )

    def _rotate(self) -> None:
        """A new key, which some have and some have not yet."""
        random = self._forging
        self._keys = (GroupKey(random.randbytes(KEY_BYTES)), *self._keys[:1])
        if random.random() < 0.3:
            self._keys = self._keys[:1]
        self._share_keys(0.7)

    def _share_keys(self, share: float = 1.0) -> None:
        """Give the newest keys to so many of all."""
        for _, seal in (*self._seals.values(), *self._members.values()):
            if self._forging.random() < share:
                seal.change_keys(self._keys, self._now)

    def _allow(self, node: NodeId, peer: NodeId, more: float = 0.0) -> float:
        """How many challenges and answers a node may send to a peer now, with so many `more` than
        time alone allows. What it did not use of earlier times does not add up."""
        now = self._now
        left, since = self._allowed.get((node, peer), (float(LIMITS), now))
        left = min(LIMITS, left + LIMITS * (now - since) / PROOF_INTERVAL_S) + more
        self._allowed[node, peer] = (left, now)
        return left

    # Forging

    def _arrive(self, forged: tuple[NodeId, Transmission, bytes]) -> None:
        receiver, transmission, frame = forged
        if not self.world.hosts[receiver].alive or not self._intensity:
            return
        self._pass_time()
        seal = self._seal_of(receiver)
        data = self._datagram(receiver, frame)
        self._captured.append(({receiver}, data))
        self.last = (receiver, data)
        opened = self._open(receiver, seal, data)
        self._check(receiver, seal)
        if isinstance(opened, Reason):
            self._outcomes[f"seal: {opened}"] += 1
            self.frames += 1
        elif opened is None:
            self._outcomes["seal: proof"] += 1
            self.frames += 1
        else:
            self._outcomes["seal: opened"] += 1
            super()._arrive((receiver, transmission, opened))

    def _pass_time(self) -> None:
        random = self._forging
        if random.random() < 0.01:
            self._standstill = not self._standstill
        if not self._standstill:
            self._jumped_s += random.choice(STEPS_S)
            if random.random() < 0.02:
                self._jumped_s += random.choice(JUMPS_S)
        if random.random() < 0.000_5:
            self._rotate()
        elif random.random() < 0.002:
            self._share_keys()
        if random.random() < 0.000_5:
            self._jumped_s += random.choice(LONG_JUMPS_S)

    def _datagram(self, receiver: NodeId, frame: bytes) -> bytes:
        """A datagram with this frame or another, with the key or without."""
        random = self._forging
        if self._standstill and self._old and random.random() < 0.3:
            return random.choice(self._old)
        kind = random.randrange(20)
        if kind < 4 and self._captured:
            got, data = random.choice(self._captured)
            changed = self._mutated(data)
            if changed == data and receiver not in got:
                got.add(receiver)  # It may be a challenge, and new to this one, who answers it.
                for peer in NODES:
                    self._allow(receiver, peer, 1.0)
            return changed
        try:
            origin = origin_in(frame)
        except WireError:
            origin = Origin(GROUP, random.choice(NODES), 0, None)
        name = origin.node if random.random() < 0.9 else random.choice((*NODES, STRANGER))
        incarnation = origin.incarnation
        if name in self._members and random.random() < 0.9:
            incarnation = self._members[name][0]  # What it was; the frame may say something else.
        member = self._member(name, incarnation, restart=random.random() < 0.03)
        if kind == 4:
            frame = self._proof(member, Origin(GROUP, name, incarnation, None), receiver)
        elif kind == 5:
            frame = self._odd(origin, frame)
        elif kind < 8:
            return self._mutated(member.seal(frame))
        return member.seal(frame)

    def _proof(self, member: Seal, origin: Origin, receiver: NodeId) -> bytes:
        """A challenge or an answer with odd fields, under any name."""
        random = self._forging
        target = self._seal_of(receiver)
        challenge = random.choice((NO_CHALLENGE, random.randbytes(CHALLENGE_BYTES)))
        boot = random.choice((target.boot, member.boot, random.randbytes(BOOT_BYTES)))
        newest = random.choice((*target.key_ids, random.randbytes(8)))
        back = random.choice((NO_CHALLENGE, random.randbytes(CHALLENGE_BYTES)))
        body = random.choice(
            (
                b"\0" + challenge + newest,
                b"\1" + challenge + boot + back + newest,
                b"\2" + challenge + boot + back + newest,
                b"\1" + challenge + newest,
                b"\0" + challenge + newest + random.randbytes(3),
                b"",
            )
        )
        self._allow(receiver, origin.node, 2.0)  # A member may ask as often as it likes.
        return encode(encode_origin(origin), PROOF_TAG, 0, 0, body, sealed=True)

    def _odd(self, origin: Origin, frame: bytes) -> bytes:
        """The frame under a name that no node has, or with an origin that is none."""
        random = self._forging
        raw = encode_origin(
            Origin(
                random.choice((GROUP, GROUP, "", "other")),
                random.choice((*ODD_NAMES, *NODES, STRANGER, STRANGER)),
                origin.incarnation,
                origin.view,
            )
        )
        if random.random() < 0.5:
            at = random.randrange(len(raw))
            raw = raw[:at] + random.randbytes(1) + raw[at + 1 :]
        tag = random.choice((frame[7] if len(frame) > 7 else 0, PROOF_TAG))
        return encode(raw, tag, 1, 1, frame[30:1000])

    def _mutated(self, data: bytes) -> bytes:
        """A sealed datagram as it was, or changed without the key."""
        random = self._forging
        header, body = data[:HEADER_BYTES], data[HEADER_BYTES:]
        match random.randrange(12):
            case 0 | 1:
                return data  # Once more.
            case 2 | 3 if data:
                at = random.randrange(len(data))
                flipped = data[at] ^ 1 << random.randrange(8)
                return data[:at] + bytes((flipped,)) + data[at + 1 :]
            case 4:
                return data[: random.randrange(len(data) + 1)]
            case 5:
                other = random.choice(self._captured)[1] if self._captured else data
                at = random.choice((2, 3, 4, 12, 24, 28, HEADER_BYTES))
                return data[:at] + other[at:]
            case 6:
                return header[:2] + bytes((random.randrange(256),)) + data[3:]
            case 7:
                return header[:3] + bytes((random.randrange(4),)) + data[4:]
            case 8:
                return header[:4] + random.randbytes(8) + data[12:]
            case 9:
                return header[:12] + random.randbytes(BOOT_BYTES) + data[28:]
            case 10:
                return header[:28] + random.choice(COUNTERS).to_bytes(8) + body
            case _:
                return random.randbytes(random.choice((0, 1, 35, 36, 51, 52, 200)))

    # Opening

    def _open(self, node: NodeId, seal: Seal, data: bytes) -> bytes | Reason | None:
        """What the seal of a node says to a datagram. Its challenges reach those who have the key,
        and their answers reach it, mostly."""
        now = self._now
        opened = seal.open(data, now)
        for _ in range(EXCHANGES_MAX):
            said, seal.outbox[:] = list(seal.outbox), []
            if not said:
                break
            for peer, proof in said:
                assert peer in NODES, f"a challenge for {peer}, who is nobody"
                left = self._allow(node, peer, -1.0)
                assert left >= 0, "more challenges and answers than time allows"
                if peer not in self._members or self._forging.random() < 0.1:
                    continue
                self._captured.append((set(), proof))
                self._answer(node, seal, peer, proof)
        return opened

    def _answer(self, node: NodeId, seal: Seal, name: NodeId, proof: bytes) -> None:
        member = self._members[name][1]
        member.open(proof, self._now)
        answers, member.outbox[:] = list(member.outbox), []
        for to, answer in answers:
            self._captured.append(({node} if to == node else set(), answer))
            if to == node:
                self._allow(node, name, 2.0)  # It has the key, and may be answered for each.
                seal.open(answer, self._now)

    def _check(self, node: NodeId, seal: Seal) -> None:
        """What a seal keeps and sends is bounded, whatever arrives."""
        peers = len(NODES) - 1
        assert len(seal._peers) == peers, "a peer that nobody configured"
        assert len(seal._lives) <= peers, f"{len(seal._lives)} lives of {peers} peers"
        assert {life.peer.name for life in seal._lives.values()} <= set(NODES) - {node}
        assert all(len(life.seen) == WINDOW for life in seal._lives.values())
        assert len(seal._keys) == len(seal._sealers) <= 2, "more than two keys"
        most = peers * len(Cipher) * len(seal._keys)
        assert len(seal._channels) <= most, f"{len(seal._channels)} channels"
        assert not seal.outbox, f"{len(seal.outbox)} proofs follow from one datagram"
