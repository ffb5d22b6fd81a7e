"""A map: values, versions, times to live, watchers."""

import pytest

from roundelay.structures import Change, GapError, Map, Refused, Rehearsal, Value
from roundelay.structures.rehearsal import WATCH_MAX


@pytest.fixture
def log() -> Rehearsal[Map[Value]]:
    return Rehearsal(Map[Value], ("a", "b"))


def test_what_is_set_is_found_at_all_nodes(log):
    assert log.face("a").set.wait("k", {"n": [1, b"x"]}) == 0
    assert log.face("b").get.stale("k") == {"n": [1, b"x"]}
    assert log.face("b").get.wait("other") is None


def test_the_version_of_a_key_is_the_index_at_which_it_was_set(log):
    face = log.face()
    face.set.wait("k", 1)
    face.set.wait("other", 1)
    assert face.set.wait("k", 2) == 2
    assert face.slot.stale("k") == (2, 2, None)
    face.delete.wait("k")
    face.set.wait("k", 2)
    assert face.slot.stale("k").version == 4  # Never that of an earlier life of the key.


def test_setdefault_keeps_what_is_there(log):
    assert log.face().setdefault.wait("k", 1) == 1
    assert log.face().setdefault.wait("k", 2) == 1


def test_compare_and_set_compares_values(log):
    face = log.face()
    assert face.compare_and_set.wait("k", None, 1)
    assert not face.compare_and_set.wait("k", None, 2)
    assert not face.compare_and_set.wait("k", 2, 3)
    assert face.compare_and_set.wait("k", 1, 2)
    assert face.get.stale("k") == 2
    assert face.compare_and_set.wait("k", 2, None)
    assert face.size.stale() == 0


def test_set_if_compares_versions(log):
    face = log.face()
    assert face.set_if.wait("k", 1, None) == 0
    assert face.set_if.wait("k", 2, None) is None
    assert face.set_if.wait("k", 2, 0) == 2
    assert face.set_if.wait("k", 3, 0) is None
    assert face.get.stale("k") == 2
    assert face.set_if.wait("k", None, 2) == 4
    assert face.get.stale("k") is None


def test_update_sets_all_keys_at_one_index(log):
    assert log.face().update.wait({"x": 1, "y": 2}) == 0
    assert [log.face().slot.stale(key).version for key in "xy"] == [0, 0]


def test_delete_and_pop_tell_what_was_there(log):
    face = log.face()
    face.update.wait({"x": 1, "y": 2})
    assert (face.delete.wait("x"), face.delete.wait("x")) == (True, False)
    assert (face.pop.wait("y"), face.pop.wait("y")) == (2, None)


def test_keys_items_and_clear_take_a_prefix(log):
    face = log.face()
    face.update.wait({"a/1": 1, "b/1": 2, "a/2": 3})
    assert face.keys.stale("a/") == ["a/1", "a/2"]
    assert face.items.stale("a/") == {"a/1": 1, "a/2": 3}
    assert face.clear.wait("a/") == 2
    assert face.keys.stale() == ["b/1"]


def test_none_is_no_value(log):
    for call in (
        lambda: log.face().set.wait("k", None),
        lambda: log.face().update.wait({"x": 1, "k": None}),
        lambda: log.face().setdefault.wait("k", None),
    ):
        with pytest.raises(Refused, match="None is no value"):
            call()
    assert log.face().size.stale() == 0  # Of an update that is refused nothing is done.


def test_a_time_to_live_ends_everywhere_without_anybody_writing(log):
    log.face().set.wait("k", 1, ttl_s=2.5)
    log.pass_s(2)
    assert log.face("b").get.stale("k") == 1
    log.pass_s(1)
    assert [log.face(node).get.stale("k") for node in "ab"] == [None, None]
    count = len(log.entries)
    log.pass_s(5)
    assert len(log.entries) == count  # No ticks while nothing ends.


def test_a_key_that_is_set_again_lives_on(log):
    face = log.face()
    face.set.wait("longer", 1, ttl_s=2)
    face.set.wait("longer", 2, ttl_s=10)
    face.set.wait("ever", 1, ttl_s=2)
    face.set.wait("ever", 2)
    face.set.wait("again", 1, ttl_s=2)
    face.delete.wait("again")
    face.set.wait("again", 2)
    log.pass_s(5)
    assert face.keys.stale() == ["longer", "ever", "again"]
    log.pass_s(6)
    assert face.keys.stale() == ["ever", "again"]


@pytest.mark.parametrize("ttl_s", [0, -1, 1e12])
def test_a_time_to_live_has_bounds(log, ttl_s):
    with pytest.raises(Refused, match="time to live"):
        log.face().set.wait("k", 1, ttl_s=ttl_s)


def test_keys_that_are_often_set_anew_do_not_fill_memory(log):
    for n in range(500):
        log.face().set.wait("k", n, ttl_s=3600)
    assert len(log.state()._due) < 100


def test_a_time_to_live_survives_a_snapshot(log):
    log.face().set.wait("k", 1, ttl_s=5)
    log.restart("b")
    log.pass_s(6)
    assert log.face("b").size.stale() == 0


def test_a_watcher_sees_each_change_once_and_in_order(log):
    seen: list[Change[Value]] = []

    async def watch(prefix: str) -> None:
        async for change in log.face("b").watch(prefix):
            seen.append(change)  # noqa: PERF401  # What was seen when the watch ends counts.

    log.start(watch("k"))
    face = log.face("a")
    face.set.wait("k1", [1])
    face.set.wait("other", 1)
    face.update.wait({"k1": 2, "k2": 3})
    face.delete.wait("k1")
    face.delete.wait("k1")
    face.set.wait("k3", 4, ttl_s=1)
    log.pass_s(2)
    log.settle()
    assert seen == [
        *(("k1", [1], 0), ("k1", 2, 2), ("k2", 3, 2), ("k1", None, 3), ("k3", 4, 5)),
        ("k3", None, 6),
    ]


def test_what_a_watcher_does_to_a_value_stays_with_it(log):
    async def watch() -> None:
        async for change in log.face("b").watch():
            change.value.append(2)

    log.start(watch())
    log.face("a").set.wait("k", [1])
    log.settle()
    assert log.face("b").get.stale("k") == [1]


def test_a_watcher_that_is_too_slow_is_told_that_it_missed_something(log):
    job = log.start(_count(log.face("b")))
    log.face("a").update.wait({f"k{n}": n for n in range(WATCH_MAX + 1)})
    log.settle()
    assert isinstance(job.error, GapError)


async def _count(face: Map[Value]) -> int:
    count = 0
    async for _ in face.watch():
        count += 1
    return count


def test_the_map_tells_its_size(log):
    log.face().update.wait({"x": 1, "y": 2})
    assert log.state("b").status() == {"size": 2}
