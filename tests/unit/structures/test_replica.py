"""A replica: machines under names, log time, exactly once, snapshots."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.ids import ViewId
from roundelay.core.log import NAMED
from roundelay.structures import (
    Counter,
    Lock,
    Machine,
    MachineError,
    Map,
    Set,
    UpgradeError,
    replica,
    write,
)
from roundelay.structures.replica import (
    REPLY_KEPT_BYTES_MAX,
    TICK,
    LogEntry,
    Replica,
    announcement,
    command_head,
)
from roundelay.structures.values import dumps

TERM = ViewId(1, "a")


def entry(index: int, payload: bytes, **kwargs: Any) -> LogEntry:
    fields: dict[str, Any] = {"session": 7, "number": index, "stamp_us": index} | kwargs
    return LogEntry(index, payload, TERM, "a", **fields)


def add(amount: int, name: str = "") -> bytes:
    return command_head(name) + dumps(["add", 1, amount])


def put(key: str, value: object, ttl_s: float | None = None, name: str = "") -> bytes:
    return command_head(name) + dumps(["set", 1, key, value, ttl_s])


def test_machines_of_one_log_have_names():
    both = Replica({"n": Counter(), "m": Counter()})
    both.apply(entry(0, add(2, "n")))
    both.apply(entry(1, add(3, "m")))
    assert both.status() == {"m": {"value": 3}, "n": {"value": 2}}


def test_indexes_come_in_order():
    one = Replica({"": Counter()})
    one.apply(entry(0, add(1)))
    with pytest.raises(MachineError, match="index 2 came where 1 was next"):
        one.apply(entry(2, add(1)))


@pytest.mark.parametrize("payload", [b"", b"hello", b"\x00", b"\xd6\x01"])
def test_payloads_of_others_are_skipped_and_counted(payload):
    one = Replica({"": Counter()})
    assert one.apply(entry(0, payload)) is None
    assert (one.index, one.skipped_count) == (1, 1)


@pytest.mark.parametrize("payload", [b"\xd7\x01", b"\xd7\x01\x05ab", b"\xd7\x01\x00"])
def test_a_damaged_command_is_refused(payload):
    one = Replica({"": Counter()})
    assert one.apply(entry(0, payload)) == b"\1this is no command"


@pytest.mark.parametrize("payload", [b"\xd7", b"\xd7\x04x", TICK + b"x", add(1, "other")])
def test_what_a_newer_version_wrote_stops_the_node(payload):
    with pytest.raises(UpgradeError, match="upgrade this node first"):
        Replica({"": Counter()}).apply(entry(0, payload))


def test_log_time_never_falls():
    one = Replica({"": Counter()})
    times = []
    for index, stamp_us in enumerate([5, 3, 9, 8]):
        one.apply(entry(index, TICK, stamp_us=stamp_us))
        times.append(one.time_us)
    assert times == [5, 5, 9, 9]


def test_a_time_to_live_ends_at_the_first_entry_at_or_after_it():
    one = Replica({"": Map()})
    one.apply(entry(0, put("k", 1, 2.0), stamp_us=1_000_000))
    assert one.due_us() == 3_000_000
    state = one.machines[""]
    assert isinstance(state, Map)
    one.apply(entry(1, TICK, stamp_us=2_999_999))
    assert "k" in state._slots
    one.apply(entry(2, command_head("") + dumps(["setdefault", 1, "k", 2]), stamp_us=3_000_000))
    assert state._slots["k"].value == 2  # The old one was gone before the command.
    assert one.due_us() is None


def test_time_passes_for_all_machines_of_a_log():
    both = Replica({"m": Map(), "n": Counter()})
    both.apply(entry(0, put("k", 1, 2.0, "m"), stamp_us=0))
    both.apply(entry(1, add(1, "n"), stamp_us=2_000_000))
    assert both.status()["m"] == {"size": 0}


def test_the_last_reply_of_a_named_session_is_kept():
    one = Replica({"": Counter()})
    one.apply(entry(0, add(2), session=NAMED | 1, number=40))
    one.apply(entry(1, add(2), session=NAMED | 1, number=41))
    one.apply(entry(2, add(2), session=1, number=0))
    kept = one.kept(NAMED | 1)
    assert kept is not None
    assert (kept.number, kept.index, kept.reply) == (41, 1, b"\x004")
    assert one.kept(1) is None


def test_long_replies_are_not_kept():
    one = Replica({"": Map()})
    text = "x" * REPLY_KEPT_BYTES_MAX
    payload = command_head("") + dumps(["setdefault", 1, "k", text])
    one.apply(entry(0, payload, session=NAMED | 1))
    kept = one.kept(NAMED | 1)
    assert kept is not None
    assert kept.reply is None


def test_the_session_longest_unused_is_forgotten(monkeypatch):
    monkeypatch.setattr(replica, "SESSIONS_MAX", 2)
    one = Replica({"": Counter()})
    for index, session in enumerate([1, 2, 1, 3]):
        one.apply(entry(index, add(1), session=NAMED | session))
    assert one.kept(NAMED | 2) is None
    assert one.kept(NAMED | 1) is not None


def filled() -> Replica:
    made = Replica({"n": Counter(), "m": Map(), "s": Set()})
    made.apply(entry(0, add(2, "n"), session=NAMED | 1))
    made.apply(entry(1, put("k", {"=b": "eA=="}, 5.0, "m")))
    made.apply(entry(2, b"of others"))
    return made


def empty() -> Replica:
    return Replica({"n": Counter(), "m": Map(), "s": Set()})


@given(st.lists(st.integers(1, 40), min_size=1))
def test_a_snapshot_may_be_divided_anywhere(sizes):
    made = filled()
    data = b"".join(made.snapshot())
    chunks: list[bytes] = []
    while data:
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(data[:size])
        data = data[size:]
    other = empty()
    other.restore(chunks)
    assert list(other.snapshot()) == list(made.snapshot())
    assert (other.index, other.time_us, other.skipped_count) == (3, 2, 1)
    assert other.kept(NAMED | 1) == made.kept(NAMED | 1)


def test_a_snapshot_does_not_see_what_comes_later():
    made = filled()
    expected, pieces = list(made.snapshot()), made.snapshot()
    made.apply(entry(3, put("k2", 1, None, "m")))
    assert list(pieces) == expected


def test_every_cut_of_a_snapshot_is_refused():
    data = b"".join(filled().snapshot())
    for size in range(len(data)):
        with pytest.raises((ValueError, UpgradeError)):
            empty().restore([data[:size]])
    with pytest.raises(ValueError, match="longer"):
        empty().restore([data, b"\0\0\0\1x"])


@given(st.data())
def test_a_flipped_byte_of_a_snapshot_never_is_another_exception(data):
    raw = bytearray(b"".join(filled().snapshot()))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with contextlib.suppress(ValueError, UpgradeError):
        empty().restore([bytes(raw)])


def test_a_snapshot_of_other_machines_is_refused():
    with pytest.raises(UpgradeError, match="the machines"):
        Replica({"n": Counter()}).restore(filled().snapshot())


class Later(Counter):
    version = 2


def test_a_snapshot_of_a_newer_version_is_refused_and_an_older_one_is_read():
    with pytest.raises(UpgradeError, match="version 2 of Counter took the snapshot"):
        Replica({"": Counter()}).restore(Replica({"": Later()}).snapshot())
    Replica({"": Later()}).restore(Replica({"": Counter()}).snapshot())


class Careless(Machine):
    """Does not ask for all pieces of its snapshot."""

    def snapshot(self):
        return [b"one", b"two"]

    def restore(self, chunks):
        next(iter(chunks))


def test_pieces_that_a_machine_does_not_ask_for_are_not_those_of_the_next():
    made = Replica({"a": Careless(), "b": Counter()})
    made.apply(entry(0, add(5, "b")))
    other = Replica({"a": Careless(), "b": Counter()})
    other.restore(made.snapshot())
    assert other.status()["b"] == {"value": 5}


def test_a_name_that_is_too_long_is_refused():
    with pytest.raises(ValueError, match="too long"):
        Replica({"x" * 256: Counter()})


def test_a_mark_is_applied_once():
    one = Replica({"": Lock()})
    one.begin_term(ViewId(1, "a"), {"a": 7, "b": 8})
    one.begin_term(ViewId(3, "a"), {"a": 7, "b": 8})
    one.apply(entry(0, command_head("") + dumps(["ask", 1, 1, "", True])))
    other = Replica({"": Lock()})
    other.restore(one.snapshot())
    for replica_ in (one, other):
        replica_.begin_term(ViewId(2, "b"), {"b": 8})
        replica_.begin_term(ViewId(3, "a"), {"b": 8})
        assert replica_.status()[""]["holders"] == ["a"]
        replica_.begin_term(ViewId(4, "b"), {"b": 8})
        assert replica_.status()[""]["holders"] == []


def told(*versions: tuple[int, dict[str, int]]) -> Replica:
    """A replica in a term of sessions 7 of a and 8 of b that told these versions."""
    one = Replica({"": Counter()})
    one.begin_term(TERM, {"a": 7, "b": 8})
    for index, (session, known) in enumerate(versions):
        one.apply(entry(index, announcement(known), session=session))
    return one


def test_members_tell_which_versions_they_know():
    one = told((7, {"": 2}), (8, {"": 1}))
    assert one.known_versions("") == [("a", 2), ("b", 1)]
    assert one.known_versions("other") == [("a", 0), ("b", 0)]
    assert one.all_announced()
    half = told((7, {"": 2}))
    assert (half.announced(7), half.announced(8), half.all_announced()) == (True, False, False)
    assert half.known_versions("") == [("a", 2)]
    assert not Replica({}).all_announced()


def test_what_a_session_told_ends_at_a_mark_without_it():
    one = told((7, {"": 2}), (8, {"": 1}))
    one.begin_term(ViewId(2, "a"), {"a": 7, "b": 9})
    assert one.known_versions("") == [("a", 2)]
    assert not one.all_announced()


def test_what_was_told_is_in_the_snapshot():
    one = told((7, {"": 2}))
    other = Replica({"": Counter()})
    other.restore(one.snapshot())
    assert other.known_versions("") == [("a", 2)]
    assert not other.announced(8)
    assert b"".join(other.snapshot()) == b"".join(one.snapshot())


@pytest.mark.parametrize(
    ("payload", "session"),
    [
        (announcement({"": 2}), 9),
        (announcement({"": 2}), NAMED | 7),
        (announcement({})[:2] + b"{", 7),
        (announcement({})[:2] + b"[]", 7),
        (announcement({})[:2] + b'{"":"2"}', 7),
        (announcement({})[:2] + b'{"":true}', 7),
    ],
)
def test_what_is_no_announcement_of_a_member_changes_nothing(payload, session):
    one = told()
    assert one.apply(entry(0, payload, session=session)) is None
    assert not one.announced(session)
    assert one.index == 1


class Third(Counter):
    """A counter whose newest write is of version 3."""

    @write(version=3)
    def triple(self) -> int:
        return self._become(self.number * 3)


def test_a_machine_knows_the_newest_version_of_its_writes():
    assert Replica({"": Counter(), "t": Third()}).versions() == {"": 1, "t": 3}
    methods = Third.write_arguments()
    assert (methods["triple"].version, methods["add"].version) == (3, 1)


@pytest.mark.parametrize("text", ["\u05e9\u05dc\u05d5\u05dd", "\u05c0", "\u05ff"])
def test_text_in_any_language_is_no_command(text):
    one = Replica({"": Counter()})
    assert text.encode()[0] == command_head("")[0]
    assert one.apply(entry(0, text.encode())) is None
    assert (one.index, one.skipped_count) == (1, 1)
