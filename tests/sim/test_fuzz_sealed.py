"""No datagram ends a seal, fills its memory, or makes it say more than it may; and no frame that
comes through it ends a node.
"""

import pytest

from roundelay.bench.fuzz.run import fuzz
from roundelay.cli import main
from roundelay.sealing.seal import Seal

FRAMES = 8_000
SLOWEST_MS = 50.0


@pytest.mark.parametrize("engine", ["totem", "pinwheel", "fc"])
def test_forged_datagrams_end_no_seal_and_no_node(engine):
    tally = fuzz(engine, FRAMES, seed=11, sealed=True)
    assert tally.failures == []
    assert tally.frames >= FRAMES
    assert tally.judged >= 2
    assert tally.slowest_ms < SLOWEST_MS, tally.slowest
    # Every way to be refused was met, and enough came through.
    refused = "foreign impostor key malformed own replay seal stranger truncated unproven"
    for reason in (*refused.split(), "own name", "version"):
        assert tally.drops[f"seal: {reason}"] > FRAMES // 1000, reason
    assert tally.drops["seal: group"] > 0  # It takes a member that lies before it is known.
    assert tally.drops["seal: opened"] > FRAMES // 10
    assert tally.drops["seal: proof"] > FRAMES // 1000
    assert tally.drops["implausible"] > FRAMES // 200


def test_a_seed_forges_the_same_datagrams_again():
    runs = [fuzz("totem", 1_500, seed=3, sealed=True) for _ in range(2)]
    assert runs[0].drops == runs[1].drops


def forgets_nothing(self, peer, boot, origin):
    peer.life = None
    return real_begin(self, peer, boot, origin)


def repeats_itself(self, peer, proof, key_id):
    for _ in range(4):
        real_send(self, peer, proof, key_id)


def keeps_who_it_heard(self, now):
    self._lives[self._random(16)] = next(iter(self._lives.values()))
    return True


real_begin, real_send = Seal._begin, Seal._send


@pytest.mark.parametrize(
    ("method", "bug", "found"),
    [
        ("_begin", forgets_nothing, "lives of 3 peers"),
        ("_send", repeats_itself, "more challenges and answers than time allows"),
        ("_may_open", keeps_who_it_heard, "AssertionError|StopIteration"),
    ],
)
def test_a_seal_that_keeps_or_says_too_much_is_found(method, bug, found, monkeypatch):
    monkeypatch.setattr(Seal, method, bug)
    tally = fuzz("totem", FRAMES, seed=1, sealed=True)
    assert tally.exceptions
    assert not tally.sound
    failure = tally.failures[0]
    assert any(word in failure.what for word in found.split("|"))
    assert "--sealed" in failure.again.split()


@pytest.mark.parametrize("words", [["--guided"], ["--input", "00"]])
def test_a_seal_is_not_fuzzed_guided(words, capsys):
    assert main(["bench", "fuzz", "--sealed", *words]) == 2
    assert capsys.readouterr().err.startswith("roundelay bench: --sealed draws its choices")
