"""The watch of ST notices what a member must never do, however it came about.

Planted bugs show the rest: see `tests/bugs/planted_st.py`.
"""

from collections.abc import Callable
from typing import Any

import pytest

from roundelay.protocols.st.member import StMember
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.sim.watch import Watch

BEFORE = """
engine st static window_packets=2
group packet_messages=1
network lan latency=100us
nodes a b c
run 20ms
lose DT to=c times=1
submit b x times=3
run 60ms
----
"""
AFTER = """
submit b y times=3
run 60ms
end
----
"""


def forget_expectations(engine: StMember) -> None:
    engine.logs.expected[1] -= 1


def forget_words(engine: StMember) -> None:
    engine.logs.acks[0] = (0, 0, 0)


def return_to_an_old_epoch(engine: StMember) -> None:
    engine.logs.epoch -= 1


def skip_a_number(engine: StMember) -> None:
    engine.logs.next += 1


def open_the_window(engine: StMember) -> None:
    engine._window = lambda: 3  # type: ignore[method-assign]


def deny_what_was_delivered(engine: StMember) -> None:
    engine.logs.pack = lambda: (0, 0, 0)  # type: ignore[method-assign]


def nothing(engine: StMember) -> None:
    """The product keeps everything."""


CASES: dict[Callable[[StMember], None], str] = {
    forget_expectations: "b expected",
    forget_words: "b knew",
    return_to_an_old_epoch: "b goes back to epoch",
    skip_a_number: "b sends number 5 after 3",
    open_the_window: "b has 3 packets under way",
    deny_what_was_delivered: "b says",
}


def play(change: Callable[[StMember], None]) -> None:
    story = ScenarioRunner(watch=Watch())
    (before,) = parse(BEFORE)
    (after,) = parse(AFTER)
    story.play(before)
    core: Any = story.world.hosts["b"].core
    engine = core.engine
    assert engine.logs.epoch == 1, "there was a recovery"
    change(engine)
    story.play(after)


@pytest.mark.parametrize("change", CASES, ids=lambda change: change.__name__)
def test_the_watch_notices(change):
    with pytest.raises(AssertionError, match=CASES[change]):
        play(change)


def test_the_watch_lets_the_product_be():
    play(nothing)
