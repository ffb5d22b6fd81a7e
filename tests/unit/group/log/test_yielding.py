"""How much a member holds back for one that catches up, look by look."""

from typing import Any

from roundelay.core.effects import CancelTimer, SetTimer
from roundelay.group.log.config import LOOK_TIMER, YIELD_TIMER, LogConfig
from roundelay.group.log.yielding import Yielding

CONFIG = LogConfig(live_window_bytes=1000, yield_vain_max=4, yield_share_max=0.5)
RATE = 5000


class Group:
    """A member's view of a group in which one member lags; entries take a byte."""

    def __init__(self, config: LogConfig = CONFIG) -> None:
        self.out: list[Any] = []
        self.yielding = Yielding(config, self.out)
        self.yielding.live_bytes = self.yielding.live_entries = 1
        self.lengths = {"a": 20_000, "b": 20_000, "c": 0}
        self.rate = RATE
        self.armed: dict[str, bool] = {}

    def goes_on(self, **grown: int) -> float:
        """What is held back after a look, when logs have grown so much and this node had wanted
        `RATE` to be ordered."""
        for node, count in grown.items():
            self.lengths[node] += count
        for node, length in self.lengths.items():
            self.yielding.note(node, length)
        looked = self.looks
        self.yielding.watch()
        if self.yielding.share:
            self.fed_until_the_next_look()
        else:
            self.yielding.fed(self.rate)
        if looked:
            self.armed.clear()
            self.yielding.expire(LOOK_TIMER)
        return self.yielding.share

    @property
    def looks(self) -> bool:
        """Whether the timer runs."""
        for effect in self.out:
            if getattr(effect, "timer", "") == LOOK_TIMER:
                self.armed[LOOK_TIMER] = isinstance(effect, SetTimer)
        self.out.clear()
        return self.armed.get(LOOK_TIMER, False)

    def fed_until_the_next_look(self) -> int:
        """Bytes of this node that are ordered, if it always has more."""
        fed = 0
        for _ in range(50):
            while not self.yielding.holds:
                self.yielding.fed(10)
                fed += 10
            self.yielding.expire(YIELD_TIMER)
        return fed


def outrun(looks: int, config: LogConfig = CONFIG) -> Group:
    """The member advances, and the others are faster."""
    group = Group(config)
    for _ in range(looks + 1):
        group.goes_on(a=3000, b=3000, c=1000)
    return group


def test_nobody_looks_while_all_are_near() -> None:
    group = Group()
    group.lengths["c"] = 19_500
    assert group.goes_on() == 0
    assert not group.looks
    assert not group.out


def test_more_is_held_back_from_look_to_look_up_to_the_most() -> None:
    shares = [outrun(looks).yielding.share for looks in range(1, 14)]
    assert shares[0] == 0  # It is not known yet whether it comes nearer.
    assert [round(share, 2) for share in shares[1:4]] == [0.05, 0.1, 0.15]
    assert max(shares) == CONFIG.yield_share_max


def test_what_is_ordered_is_a_part_of_what_it_was() -> None:
    group = outrun(4)
    assert group.yielding.share > 0.1
    ordered = group.fed_until_the_next_look()
    assert abs(ordered - RATE * (1 - group.yielding.share)) < RATE / 10


def test_no_more_is_held_back_once_the_member_comes_nearer() -> None:
    group = outrun(5)
    share = group.yielding.share
    for _ in range(5):
        assert group.goes_on(a=1000, b=1000, c=3000) == share


def test_all_go_on_at_full_speed_once_it_is_near() -> None:
    group = outrun(5)
    lag = group.lengths["a"] - group.lengths["c"]
    assert group.goes_on(c=lag - 900) > 0  # Near enough to begin, and not to stop.
    assert group.goes_on(c=450) == 0
    assert not group.looks
    assert not group.yielding.holds


def test_a_member_that_does_not_advance_is_not_waited_for() -> None:
    group = outrun(5)
    assert group.goes_on(a=3000, b=3000) == 0
    for _ in range(20):
        assert group.goes_on(a=3000, b=3000) == 0


def test_a_member_that_is_too_slow_is_waited_for_no_more_after_a_while() -> None:
    assert outrun(13).yielding.share == CONFIG.yield_share_max
    assert outrun(30).yielding.share == 0


def test_a_node_that_appended_nothing_may_begin_to() -> None:
    group = Group()
    group.rate = 0
    for _ in range(6):
        group.goes_on(a=3000, b=3000, c=1000)
    assert group.yielding.share > 0
    assert group.fed_until_the_next_look() > 100


def test_nothing_is_held_back_where_that_is_not_wanted() -> None:
    group = outrun(20, LogConfig(live_window_bytes=1000, yield_share_max=0.0))
    assert group.yielding.share == 0
    assert not group.yielding.holds


def test_the_end_of_a_view_ends_it() -> None:
    group = outrun(5)
    assert group.looks
    group.yielding.close()
    assert {effect.timer for effect in group.out} == {LOOK_TIMER, YIELD_TIMER}
    assert all(isinstance(effect, CancelTimer) for effect in group.out)
    assert not group.yielding.holds
