"""Sealed groups under attack. The swarm attacks them; a layer that is weaker than it says is caught
in each case, by what is watched while a run goes on.

`roundelay sim swarm --protocol P --intruder --show --first SEED` prints the scenario of a seed.
"""

import os
import re
import subprocess
import sys

import pytest

from roundelay.sealing import lives
from roundelay.sealing.keys import SEAL_VERSION
from roundelay.sealing.lives import Life
from roundelay.sealing.proofs import CODEC, Answer
from roundelay.sealing.seal import Seal
from roundelay.sim.coverage import catalogue
from roundelay.sim.failure import Judge
from roundelay.sim.intruder import KINDS
from roundelay.sim.recording import Recording
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import ScenarioError, parse
from roundelay.sim.seeds import HARMLESS, scenario
from roundelay.sim.shrink import shrink
from roundelay.sim.swarm import run
from roundelay.sim.watch import Watch
from roundelay.trace.extras import needs
from roundelay.wire.frame import decode

ENGINES = ("totem", "fifo", "dtp", "cm", "pinwheel", "atop", "allack", "causal", "fc", "st")

ATTACK = """
engine totem
seal
network lan latency=100us jitter=80us
nodes a b c
faults loss=3% corrupt=1% spike=1% spike-by=6s
intruder rate=100/s
load messages=100 rate=20/s size=40 safe=20%
at 300ms crash b
at 500ms partition a,b c
at 600ms restart b storage=lost
at 900ms merge
at 1s key rotate
at 1100ms key reload a b
run 7s
end after=2s
----
"""


def play(text: str, seed: int, choices: dict[str, str] | None = None) -> ScenarioRunner:
    story = ScenarioRunner(seed=seed, choices=choices, watch=Watch())
    for block in parse(text):
        story.play(block)
    return story


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("protocol", ENGINES)
def test_no_attack_breaks_a_promise(protocol, static):
    failed = {
        seed: outcome.failures
        for seed in range(6)
        if (outcome := run(seed, protocol, static=static, intruder=True)).failures
    }
    assert not failed


def test_the_same_seed_gives_the_same_trace_in_another_process_too():
    outcome = run(3, "totem", intruder=True)
    child = subprocess.run(
        [
            sys.executable,
            "-c",
            "from roundelay.sim.swarm import run\n"
            "print(run(3, 'totem', intruder=True).runner.sha256())",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )
    assert child.stdout.strip() == outcome.runner.sha256()
    assert run(4, "totem", intruder=True).runner.sha256() != outcome.runner.sha256()


def test_an_attack_that_was_recorded_is_the_same_without_chance():
    first = play(ATTACK, 5)
    recording = Recording.from_json(Recording.of(ATTACK, first).to_json())
    acts = [name for name in recording.choices if name.startswith("intruder/")]
    proofs = [name for name in recording.choices if re.search(r"/p\d+>", name)]
    assert len(acts) > 300
    assert proofs
    assert recording.replay().sha256() == first.sha256()
    flood = next(name for name in acts if recording.choices[name] == "flood")
    fewer = {name: what for name, what in recording.choices.items() if name != flood}
    assert play(ATTACK, 5, fewer).sha256() != first.sha256()


def test_the_intruder_disturbs_no_other_choice():
    """What the seed draws for the group is the same with and without it."""
    for seed in range(20):
        plain, attacked = scenario(seed, "totem"), scenario(seed, "totem", intruder=True)
        for word in ("engine", "nodes", "network"):
            (one,) = re.findall(rf"^{word} .*$", plain, re.MULTILINE)
            assert one in attacked.splitlines()
        assert "seal" not in plain
        assert "intruder" not in plain


def test_the_swarm_attacks_in_every_way():
    drawn = [scenario(seed, "totem", intruder=True) for seed in range(60)]
    text = "".join(drawn)
    for needed in ("seal cipher=chacha", "spike-by=7s", "key rotate", "key reload", "rate=150/s"):
        assert needed in text
    assert "duplicate=" not in text
    lengths = [int(n) for n in re.findall(r"^run (\d+)ms$", text, re.MULTILINE)]
    assert 5 < sum(length > 5000 for length in lengths) < 30
    for kind in KINDS:
        assert any(re.search(rf"kinds=\S*\b{kind}\b", one) for one in drawn)
    assert any("intruder" in one and "kinds=" not in one for one in drawn)


@pytest.mark.parametrize(("protocol", "static"), [("st", False), ("st", True), ("fc", True)])
def test_where_nothing_may_come_late_the_intruder_sends_nothing_that_might_count(protocol, static):
    """On a channel frames come in one order, and where members of FC fail no frame is lost."""
    strict = 0
    for seed in range(60):
        text = scenario(seed, protocol, static=static, intruder=True)
        kinds = re.search(r"intruder \S+ kinds=(\S+)", text)
        may_be_late = "network channel" not in text and (protocol != "fc" or "crash" not in text)
        if not may_be_late:
            strict += 1
            assert "spike-by" not in text
            assert kinds is not None
            assert set(kinds[1].split(",")) <= set(HARMLESS)
    assert strict > 5


COVERING = (2, 12)
"""Seeds of totem that reach all goals of sealed traffic together."""


def test_every_goal_of_sealed_traffic_is_reached():
    missed = set(catalogue("totem", intruder=True)) - set(catalogue("totem"))
    for seed in COVERING:
        missed.difference_update(run(seed, "totem", intruder=True).reached)
    assert not missed


def test_every_engine_has_goals_of_sealed_traffic():
    for protocol in ENGINES:
        more = set(catalogue(protocol, intruder=True)) - set(catalogue(protocol))
        assert {"replay-refused", "old-refused", "dead-refused", "proof-renewed"} <= more


WITHOUT_CRYPTOGRAPHY = """
import sys
sys.modules["cryptography"] = None
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import ScenarioError, parse
from roundelay.sim.swarm import run
assert not run(3, "fifo", static=True).failures
try:
    ScenarioRunner().play(parse("seal\\n----\\n")[0])
except ScenarioError as e:
    print(e)
"""


def test_only_sealed_traffic_needs_cryptography():
    child = subprocess.run(
        [sys.executable, "-c", WITHOUT_CRYPTOGRAPHY],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert needs("cryptography") in child.stdout


@pytest.mark.parametrize(
    ("commands", "said"),
    [
        ("seal cipher=rot13\nnodes a b", "the cipher is aes or chacha"),
        ("nodes a b\nseal", "this comes before the nodes command"),
        ("nodes a b\nkey rotate", "this group has no key"),
        ("nodes a b\nseals", "this group has no key"),
        ("nodes a b\nreplay all", "nobody listens; write: listen"),
        ("nodes a b\nlisten\nreplay all", "no such datagram was sent"),
        ("nodes a b\nintruder kinds=pray", "does not know 'pray'; choose of: replay, old"),
        ("nodes a b\nforge a token", "is one of: leave, join"),
        ("nodes a b\nforge a leave", "a static group has no such frames"),
        ("seal\nnodes a b\nkey", "write: key rotate, key reload a b"),
    ],
)
def test_what_makes_no_sense_is_told_in_a_sentence(commands, said):
    with pytest.raises(ScenarioError, match=said):
        ScenarioRunner().play(parse(f"{commands}\n----\n")[0])


# Weak layers


def _no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Life, "admits", lambda self, counter, now: True)


def _proof_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lives, "PROOF_S", 1000.0)
    monkeypatch.setattr(lives, "RENEW_S", 999.0)


def _boots_never_retired(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = Seal._begin

    def begin(self, peer, boot, origin):
        peer.life = None
        return sound(self, peer, boot, origin)

    monkeypatch.setattr(Seal, "_begin", begin)


def _challenge_of_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer proves something, whatever it answers."""
    sound = Seal._on_proof

    def on_proof(self, frame, peer, boot, life, counter, key_id, now):
        proof = decode(frame, CODEC, {}, sealed=True).message
        own = self.boot
        if isinstance(proof, Answer) and life is None:
            peer.challenge, peer.asked_at, self.boot = proof.challenge, now, proof.boot
        try:
            return sound(self, frame, peer, boot, life, counter, key_id, now)
        finally:
            self.boot = own

    monkeypatch.setattr(Seal, "_on_proof", on_proof)


def _header_not_authenticated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The version may be any: it is not part of what is authenticated."""
    sound = Seal.open

    def lenient(self, data, now):
        return sound(self, data[:2] + bytes((SEAL_VERSION,)) + data[3:], now)

    monkeypatch.setattr(Seal, "open", lenient)


WEAK = {
    "twice": (_no_window, "has opened the same datagram"),
    "old": (_proof_without_end, "s ago"),
    "dead": (_boots_never_retired, "believes a dead incarnation"),
    "anybody": (_challenge_of_anybody, "has opened"),
    "header": (_header_not_authenticated, "what nobody has sealed"),
}


@pytest.mark.parametrize("name", WEAK)
def test_a_weak_layer_is_caught(name, monkeypatch):
    weaken, said = WEAK[name]
    play(ATTACK, 4)
    weaken(monkeypatch)
    with pytest.raises(AssertionError, match=said):
        play(ATTACK, 4)


def test_a_weak_layer_is_caught_by_the_swarm(monkeypatch):
    _no_window(monkeypatch)
    failures = [run(seed, "totem", intruder=True).failures for seed in range(4)]
    assert "has opened the same datagram" in str(failures)


def test_an_attack_that_succeeds_comes_down_to_a_few_acts(monkeypatch):
    _no_window(monkeypatch)
    commands = tuple(command for block in parse(ATTACK) for _, command in block.commands)
    assert Judge(seed=5, watch=Watch).run(commands).failure is not None
    small = shrink(ATTACK, 5, budget=150)
    assert "has opened the same datagram" in small.failure.reason
    assert "seal" in small.commands
    (act,) = [command for command in small.commands if "intruder" in command]
    (only,) = re.findall(r"only=(\S+)", act)
    assert only.count(",") == 0
    assert len(small.commands) < 9
