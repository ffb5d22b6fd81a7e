"""What must be on disk before it is said; and that each of these rules is one that can be broken.

All stories of the harness are held to the rules of `duties`. Here each rule is taken out of the
code, one at a time, and a story shows it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.unit.group.log.cluster import Cluster
from tests.unit.group.log.duties import BrokenDutyError
from tests.unit.group.log.test_chaos import Story

from roundelay.core.effects import Persist
from roundelay.core.log import Place
from roundelay.group.log.log import ReplicatedLog
from roundelay.group.log.state import LogState
from roundelay.membership.machine import Membership
from roundelay.membership.primary import Standing


def append(cluster: Cluster, name: str) -> None:
    cluster[name].append("early " + name)


def story() -> None:
    """Views come and go while disks are slow and messages are appended."""
    cluster = Cluster("abc")
    cluster.sync_s = 0.004
    for name in "abc":
        cluster.later(0.5, partial(append, cluster, name))
    cluster.run(1)
    for round_ in range(6):
        for name in "abc":
            if cluster[name].alive:
                cluster[name].append(f"{name}{round_}")
        cluster.run(0.003)
        if round_ % 2:
            cluster.kill("c")
        elif not cluster["c"].alive:
            cluster.start("c")
        cluster.run(0.05 + round_ / 10)
        cluster.split("ab", "c")
        cluster.run(0.4)
        cluster.heal()
        cluster.run(0.4)


def stories() -> None:
    story()
    for seed in range(12):
        Story(seed).run(30)


def test_the_story_breaks_no_rule():
    story()


def offer_unsynced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LogState, "idle", property(lambda self: True))


def ready_before_the_mark_is_stored(patch: pytest.MonkeyPatch) -> None:
    def ready(self: ReplicatedLog) -> bool:
        return self._view is not None and self.state.place.term == self._view.id

    patch.setattr(ReplicatedLog, "_ready", property(ready))


def acknowledge_before_the_sync(patch: pytest.MonkeyPatch) -> None:
    flush = LogState.flush

    def too_early(self: LogState) -> None:
        flush(self)
        if self.stored.term == self.place.term != Place().term:
            self.stored = self.place

    patch.setattr(LogState, "flush", too_early)


def open_without_noting_it(patch: pytest.MonkeyPatch) -> None:
    note = Membership.note_open

    def forgetful(self: Membership, view: Any) -> list[Any]:
        return [effect for effect in note(self, view) if not isinstance(effect, Persist)]

    patch.setattr(Membership, "note_open", forgetful)


def keep_attempts_at_the_opening(patch: pytest.MonkeyPatch) -> None:
    move = Standing.open

    def hoarding(self: Standing, view: Any, voters: Any) -> None:
        attempts = self.attempts
        move(self, view, voters)
        self.attempts = attempts

    patch.setattr(Standing, "open", hoarding)


def feed_before_it_is_open(patch: pytest.MonkeyPatch) -> None:
    enter = ReplicatedLog.enter

    def hasty(self: ReplicatedLog, install: Any) -> None:
        enter(self, install)
        if self.opening is not None:
            while self.sending.unfed:
                self.sending.feed(self._queue.enqueue)
                self.fed = True

    patch.setattr(ReplicatedLog, "enter", hasty)


def attempt_in_memory_alone(patch: pytest.MonkeyPatch) -> None:
    attempt = Standing.attempt

    def lazy(self: Standing, view: Any, ruling: Any) -> bool:
        attempt(self, view, ruling)
        return False

    patch.setattr(Standing, "attempt", lazy)


def speak_after_the_freeze(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Membership, "frozen", property(lambda self: False))


@pytest.mark.parametrize(
    "fault",
    [
        offer_unsynced,
        ready_before_the_mark_is_stored,
        acknowledge_before_the_sync,
        open_without_noting_it,
        keep_attempts_at_the_opening,
        feed_before_it_is_open,
        attempt_in_memory_alone,
        speak_after_the_freeze,
    ],
)
def test_each_rule_is_needed(fault: Callable[[pytest.MonkeyPatch], None]):
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        with pytest.raises(BrokenDutyError):
            stories()
