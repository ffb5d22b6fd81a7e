"""Three seals and a network that belongs to an attacker without the key.

The attacker records everything, delivers what it likes to whom it likes, as often and as late as it
likes, and changes bits; meanwhile nodes restart, keys change and time passes. Whatever it does, a
frame that opens was sealed by the node that it names, less than `PROOF_S` ago, and opens once; what
is kept is bounded, and so is what is said. When the attacker rests, all hear each other at once.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.unit.sealing.footprint import footprint
from tests.unit.sealing.lab import GROUP, KEYS, Lab, Opened, proof_in

from roundelay.sealing.ciphers import Cipher
from roundelay.sealing.keys import KeyRing
from roundelay.sealing.lives import CHALLENGE_S, PROOF_S, WINDOW, Life, Peer
from roundelay.sealing.proofs import Answer
from roundelay.sealing.seal import OLD_KEY_S, OVERHEAD_BYTES, PROOF_INTERVAL_S, SWITCH_S
from roundelay.wire.frame import origin_in
from roundelay.wire.primitives import Reason

NAMES = "abc"
names = st.sampled_from(NAMES)
pairs = st.permutations(NAMES).map(lambda nodes: nodes[:2])
MOST_KEPT = 400
"""Items that a seal of a group of three may keep."""
recent = st.integers(0, 15)
"""Which datagram, counted from the newest."""


@dataclass
class Sent:
    """A datagram as the network has seen it, and what nobody but the test knows of it."""

    data: bytes
    sender: str
    life: int
    at: float
    frame: bytes | None
    """None for challenges and answers."""
    opened_by: set[tuple[str, int]] = field(default_factory=set)


class Adversary(RuleBasedStateMachine):
    @initialize(ciphers=st.tuples(*[st.sampled_from(Cipher)] * 3))
    def begin(self, ciphers: tuple[Cipher, ...]) -> None:
        self.keys = dict.fromkeys(NAMES, 0)
        """Which rotation each node has heard of."""
        self.changed_at = dict.fromkeys(NAMES, float("-inf"))
        self.lab = Lab(NAMES, KEYS[:1], now=0.0, ciphers=dict(zip(NAMES, ciphers, strict=True)))
        self.wire: list[Sent] = []
        self.by_data: dict[bytes, Sent] = {}
        self.newest_life: dict[tuple[str, int, str], int] = {}
        """The newest life of a sender of which a life of a receiver has opened a frame."""
        self.said: dict[tuple[str, int, str], list[float]] = {}
        """When a life of a node said something to a peer that had not earned it by a proof."""
        self.texts = 0
        self.headers: set[bytes] = set()

    def ring(self, number: int) -> KeyRing:
        return KEYS[number::-1][:2]

    # What nodes do

    def send(self, name: str) -> Sent:
        self.texts += 1
        frame = self.lab.frame(name, b"%d" % self.texts)
        return self.record(self.lab.seals[name].seal(frame), name, frame)

    def record(self, data: bytes, name: str, frame: bytes | None) -> Sent:
        sent = Sent(data, name, self.lab.starts[name], self.lab.now, frame)
        assert data[:36] not in self.headers, "a nonce is used twice"
        self.headers.add(data[:36])
        self.by_data[data] = sent
        self.wire.append(sent)
        return sent

    def deliver(self, name: str, data: bytes) -> Opened:
        """One datagram arrives; whatever is said to it goes to the attacker."""
        before = self.proofs(name)
        found = self.lab.open(name, data)
        said, self.lab.pending = self.lab.pending, []
        assert len(said) <= 1, "one datagram leads to one at most"
        if said:
            self.check_said(name, said[0].to, said[0].data)
        self.check(name, data, found)
        for proof in self.proofs(name) - before:
            self.check_proven(name, data, proof)
        return found

    def proofs(self, name: str) -> set[tuple[bytes, float]]:
        """The boots that are known, and until when they are proven."""
        return {(life.boot, life.expires) for life in self.lab.seals[name]._lives.values()}

    def check_proven(self, name: str, data: bytes, proof: tuple[bytes, float]) -> None:
        """A boot has proven itself with this datagram: with an answer that it has just given."""
        sent, answer = self.by_data[data], proof_in(data)
        assert isinstance(answer, Answer), "only an answer proves"
        assert answer.boot == self.lab.seals[name].boot, "it is for another boot"
        assert data[12:28] == proof[0], "it proves another boot"
        assert self.lab.now - sent.at <= CHALLENGE_S, "it is an old answer"
        assert proof[1] <= sent.at + PROOF_S, "it proves too much"

    def check_said(self, name: str, to: str, data: bytes) -> None:
        assert to in NAMES
        assert to != name
        assert len(data) <= 200
        sent = self.record(data, name, None)
        proof = self.lab.emitted[-1].proof
        if isinstance(proof, Answer):
            life = self.lab.seals[name]._peers[to].life
            if life is not None and life.boot == proof.boot and self.lab.now < life.expires:
                return  # It has earned an answer.
        times = self.said.setdefault((name, sent.life, to), [])
        times.append(self.lab.now)
        lately = [t for t in times if self.lab.now - t < PROOF_INTERVAL_S]
        # For unknown boots a challenge and an answer, for the known one a challenge.
        assert len(lately) <= 3, "it says too much"

    def check(self, name: str, data: bytes, found: Opened) -> None:
        """What was opened may be opened."""
        if isinstance(found, bytes):
            sent = self.by_data.get(data)
            assert sent is not None, "nobody has sent this"
            assert found == sent.frame, "something else was sealed"
            assert origin_in(found).node == sent.sender != name
            me = (name, self.lab.starts[name])
            assert me not in sent.opened_by, "it was opened before"
            sent.opened_by.add(me)
            assert self.lab.now - sent.at <= PROOF_S, "it is too old"
            newest = self.newest_life.get((*me, sent.sender), 0)
            assert sent.life >= newest, "another boot has proven itself since"
            self.newest_life[(*me, sent.sender)] = sent.life
            alive = [KEYS[self.keys[name]].id(GROUP)]
            if self.lab.now < self.changed_at[name] + OLD_KEY_S:
                alive += [key.id(GROUP) for key in self.ring(self.keys[name])]
            assert data[4:12] in alive, "this key is dead"
        elif found is None:
            sent = self.by_data[data]
            assert sent.frame is None

    @rule(name=names, to=st.sets(names))
    def node_sends(self, name: str, to: set[str]) -> None:
        sent = self.send(name)
        for receiver in sorted(to):
            self.deliver(receiver, sent.data)

    @rule(pair=pairs, late=st.sampled_from([WINDOW, WINDOW - 1, WINDOW + 1, 1, 30]))
    def node_sends_much(self, pair: list[str], late: int) -> None:
        """All but the first and the last are lost, and the first comes again."""
        name, to = pair
        self.exchange(pair)
        first = self.send(name)
        self.deliver(to, first.data)
        self.lab.seals[name]._counter += late - 1
        self.deliver(to, self.send(name).data)
        self.deliver(to, first.data)

    @rule(name=names)
    def node_restarts(self, name: str) -> None:
        """With the keys of its file, which has both."""
        self.lab.start(name, self.ring(self.keys[name]))
        self.changed_at[name] = self.lab.now

    @precondition(lambda self: max(self.keys.values()) < len(KEYS) - 1)
    @rule(pair=pairs, later=st.sampled_from([0.0, SWITCH_S, OLD_KEY_S]))
    def node_gets_the_next_key(self, pair: list[str], later: float) -> None:
        """The next rotation begins when all have the last one. After a while it hears of one that
        may have the old key only."""
        name = pair[0]
        if self.keys[name] == min(self.keys.values()):
            self.keys[name] += 1
            assert self.lab.seals[name].change_keys(self.ring(self.keys[name]), self.lab.now)
            self.changed_at[name] = self.lab.now
            self.lab.now += later
            self.exchange(pair)
            self.node_reads_its_keys_again(name=name)

    @rule(name=names)
    def node_reads_its_keys_again(self, name: str) -> None:
        changed = self.lab.seals[name].change_keys(self.ring(self.keys[name]), self.lab.now)
        assert not changed, "it has these keys"

    @rule(seconds=st.sampled_from([0.001, 0.01, 0.04, 0.5, 1.9, 2.0, 3.0, 4.99, 5.0, 31.0, 61.0]))
    def time_passes(self, seconds: float) -> None:
        self.lab.now += seconds

    # What the attacker does

    @rule(pair=pairs, seconds=st.integers(1, 7))
    def holds_one_back(self, pair: list[str], seconds: int) -> None:
        """While the nodes go on talking."""
        name, to = pair
        held = self.send(name)
        for _ in range(seconds):
            self.exchange(pair)
            self.lab.now += 0.8
        self.deliver(to, held.data)

    @rule(name=names, back=recent)
    def replays_lately(self, name: str, back: int) -> None:
        if back < len(self.wire):
            self.deliver(name, self.wire[-1 - back].data)

    @rule(name=names, share=st.floats(0, 1, exclude_max=True))
    def replays_of_old(self, name: str, share: float) -> None:
        if self.wire:
            self.deliver(name, self.wire[int(share * len(self.wire))].data)

    @rule(name=names, other=names)
    def replays_all_of_one_node(self, name: str, other: str) -> None:
        for sent in [sent for sent in self.wire[-60:] if sent.sender == other]:
            self.deliver(name, sent.data)

    @rule(name=names, back=recent, at=st.floats(0, 1, exclude_max=True), bits=st.integers(1, 255))
    def changes_bits(self, name: str, back: int, at: float, bits: int) -> None:
        if back < len(self.wire):
            data = bytearray(self.wire[-1 - back].data)
            data[int(at * len(data))] ^= bits
            self.refuse(name, bytes(data))

    @rule(
        name=names,
        back=recent,
        at=st.integers(0, 35) | st.integers(28, 35),
        bits=st.integers(1, 255),
    )
    def changes_the_header(self, name: str, back: int, at: int, bits: int) -> None:
        if back < len(self.wire):
            data = bytearray(self.wire[-1 - back].data)
            data[at] ^= bits
            self.refuse(name, bytes(data))

    @rule(name=names, one=recent, other=recent, at=st.sampled_from([4, 12, 28, 36]))
    def splices(self, name: str, one: int, other: int, at: int) -> None:
        """The beginning of one datagram with the end of another."""
        if max(one, other) < len(self.wire):
            data = self.wire[-1 - one].data[:at] + self.wire[-1 - other].data[at:]
            if data not in self.by_data:
                self.refuse(name, data)

    @rule(name=names, back=recent, change=st.integers(-60, 3).filter(bool))
    def cuts_or_lengthens(self, name: str, back: int, change: int) -> None:
        if back < len(self.wire):
            data = self.wire[-1 - back].data
            self.refuse(name, data[:change] if change < 0 else data + bytes(change))

    @rule(name=names, count=st.integers(1, 40))
    def floods(self, name: str, count: int) -> None:
        if self.wire:
            start = self.wire[-1].data[:12]
            for n in range(count):
                self.refuse(name, start + b"%16d" % n + bytes(OVERHEAD_BYTES))

    def refuse(self, name: str, data: bytes) -> None:
        """What nobody has sealed changes nothing."""
        self.lab.seals[name].open(b"", self.lab.now)  # A change of keys may be due.
        before = self.known(name)
        assert isinstance(self.deliver(name, data), Reason)
        assert self.known(name) == before, "it has an effect"

    def known(self, name: str) -> list[object]:
        """All that a node knows of its peers."""
        peers = self.lab.seals[name]._peers.values()
        found: list[object] = [
            getattr(peer, slot) for peer in peers for slot in Peer.__slots__ if slot != "life"
        ]
        lives = [peer.life for peer in peers if peer.life]
        return found + [
            getattr(life, slot) if slot != "seen" else life.seen.tobytes()
            for life in lives
            for slot in Life.__slots__
        ]

    # What holds

    @invariant()
    def little_is_kept(self) -> None:
        for seal in self.lab.seals.values():
            assert seal.outbox == []
            assert footprint(seal) <= MOST_KEPT, "it keeps too much"
            assert len(seal._lives) <= 2, "it keeps more boots than it has peers"
            assert len(seal._channels) <= 2 * 2 * 2, "one for each peer, key and cipher"

    def exchange(self, nodes: Iterable[str]) -> None:
        """Between these nodes everything arrives, and all of them do everything at once."""
        for _ in range(4):
            sent = [self.send(name) for name in nodes]
            arriving = [(to, each.data) for each in sent for to in nodes if to != each.sender]
            for _ in range(20):
                before = len(self.lab.emitted)
                for to, data in arriving:
                    self.deliver(to, data)
                said = self.lab.emitted[before:]
                arriving = [(each.to, each.data) for each in said if each.to in nodes]
                if not arriving:
                    break
            else:
                raise AssertionError("challenges and answers without end")
            self.lab.now += 0.05

    @rule(pair=pairs)
    def two_nodes_talk(self, pair: list[str]) -> None:
        """Whichever keys they have."""
        self.exchange(pair)

    @rule()
    def the_attacker_rests(self) -> None:
        """Everything arrives for a while, and the operator brings the key to all."""
        self.lab.now += 0.1
        number = max(self.keys.values())
        for name in NAMES:
            if self.keys[name] < number:
                self.keys[name] = number
                self.lab.seals[name].change_keys(self.ring(number), self.lab.now)
                self.changed_at[name] = self.lab.now
        self.exchange(NAMES)
        for name in NAMES:
            assert self.lab.proven(name) == sorted(set(NAMES) - {name}), "not all are proven"
            for other in NAMES:
                if other != name:
                    sent = self.send(other)
                    assert self.deliver(name, sent.data) == sent.frame, "it is deaf"


def adversary_gets_nowhere(examples: int = 60, steps: int = 40) -> None:
    """The adversary tries so often; its tries are the same every time."""
    run_state_machine_as_test(
        Adversary,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=True,
            database=None,
            deadline=None,
            report_multiple_bugs=False,
            phases=[Phase.explicit, Phase.generate],
        ),
    )


def test_the_adversary_gets_nowhere():
    adversary_gets_nowhere()


def test_the_times_of_a_rotation_fit():
    assert 2 * SWITCH_S == OLD_KEY_S
