"""DTP, CM and Pinwheel in whole runs: the paper's rules are convicted, and so is every planted
breach of what `sim.engines.dtp.watch` watches over."""

from collections.abc import Callable
from importlib.resources import files

import pytest

from roundelay.check import Validity, check
from roundelay.protocols.dtp.engine import DtpEngine
from roundelay.protocols.dtp.ledger import Ledger, LiteralLedger
from roundelay.protocols.dtp.messages import Msg
from roundelay.protocols.dtp.token import LiteralToken, Token
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse, rewrite
from roundelay.sim.swarm import Campaign
from roundelay.sim.watch import Watch

SHIPPED = files("roundelay.sim") / "scenarios"

LITERAL = {
    "dtp_two_holders": {"K1", "K2", "K3", "O5"},
    "dtp_double_order": {"K2"},
    "dtp_lost_token": {"L1", "L4", "L7"},
    "dtp_endless_silence": {"L4"},
}
"""What each shipped story of the paper's rules is convicted of."""


@pytest.mark.parametrize("name", LITERAL)
def test_the_literal_rules_are_convicted(name):
    """Run with `roundelay sim run --rewrite` if what happens has changed on purpose."""
    text = (SHIPPED / f"{name}.txt").read_text()
    story = ScenarioRunner(watch=Watch())
    assert rewrite(text, story.play) == text
    report = check(story.rows, story.manifest())
    assert LITERAL[name] <= {verdict.property for verdict in report.violated}


@pytest.mark.parametrize("name", LITERAL)
def test_the_repaired_rules_are_not(name):
    text = (SHIPPED / f"{name}.txt").read_text().replace("rules=paper", "rules=safe")
    story = ScenarioRunner(watch=Watch())
    for block in parse(text):
        story.play(block)
    report = check(story.rows, story.manifest())
    assert not report.violated
    assert report["K2"].validity is Validity.OK


ROUGH = """
engine {engine} static
seed {seed}
network lan latency=300us jitter=200us
nodes a b c d
faults loss=10% duplicate=10% reorder=10%
load messages=250 rate=100/s
run 1500ms
end after=1s
----
"""


def watched(engine: str, seed: int = 1) -> None:
    story = ScenarioRunner(watch=Watch())
    for block in parse(ROUGH.format(engine=engine, seed=seed)):
        story.play(block)
    assert check(story.rows, story.manifest()).ok


@pytest.mark.parametrize("engine", ["dtp", "cm", "pinwheel", "dtp resilience=2"])
def test_nothing_is_found_where_nothing_is_planted(engine):
    watched(engine)


def take_any_token(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Token, "note_transfer", LiteralToken.note_transfer)


def announce_early(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "extend", LiteralLedger.extend)


def believe_the_latest(patch: pytest.MonkeyPatch) -> None:
    def note(self: Ledger, member: int, number: int) -> None:
        self.held[member] = number
        self.low = max(self.low, min(self.held))

    patch.setattr(Ledger, "note", note)


def order_behind_a_gap(patch: pytest.MonkeyPatch) -> None:
    def store(self: Ledger, m: Msg) -> bool:
        stored = plain(self, m)
        if stored and (m.sender, m.number) not in self.places:
            self.waiting[m.sender, m.number] = None
        return stored

    plain = Ledger.store
    patch.setattr(Ledger, "store", store)


def deliver_too_early(patch: pytest.MonkeyPatch) -> None:
    def deliver(self: DtpEngine) -> None:
        resilience, self.resilience = self.resilience, 0
        plain(self)
        self.resilience = resilience

    plain = DtpEngine._deliver
    patch.setattr(DtpEngine, "_deliver", deliver)


def keep_what_is_stable(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "drop", Ledger.known)


def send_too_much(patch: pytest.MonkeyPatch) -> None:
    def start(self, view):
        self._window = 2
        return plain(self, view)

    plain = DtpEngine.start
    patch.setattr(DtpEngine, "start", start)


def never_stable(patch: pytest.MonkeyPatch) -> None:
    def note(self: Ledger, member: int, number: int) -> None:
        self.held[member] = max(self.held[member], number)

    patch.setattr(Ledger, "note", note)


PLANTED: list[tuple[Callable[[pytest.MonkeyPatch], None], str, str]] = [
    (take_any_token, "dtp", "have the token of|two transfers of the token"),
    (announce_early, "dtp", "believes that"),
    (believe_the_latest, "dtp", "went back from"),
    (order_behind_a_gap, "pinwheel window_packets=3", "before or after its turn"),
    (deliver_too_early, "dtp resilience=3", "delivers what only"),
    (keep_what_is_stable, "dtp", "which is stable"),
    (send_too_much, "dtp", "without a number"),
    (never_stable, "cm", "leaks"),
]


@pytest.mark.parametrize(
    ("plant", "engine", "found"), PLANTED, ids=lambda p: getattr(p, "__name__", "")
)
def test_every_planted_breach_is_found(plant, engine, found, monkeypatch):
    plant(monkeypatch)
    with pytest.raises(AssertionError, match=found):
        watched(engine)


@pytest.mark.parametrize("engine", ["dtp", "cm", "pinwheel"])
def test_a_campaign_with_the_literal_rules_convicts_them_and_goes_on(engine):
    campaign = Campaign(engine, static=True, rules="paper")
    judged = list(campaign.run(0, 4, 1))
    assert len(judged) == 4
    assert any(judgement.failures for judgement in judged)
