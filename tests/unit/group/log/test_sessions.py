"""The table of sessions: a function of the log, also after records were taken away again."""

from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from roundelay.core.contract import Boot
from roundelay.core.effects import Effect
from roundelay.core.ids import ViewId
from roundelay.core.log import EMPTY_LOG, NAMED, Mark, Place, Session
from roundelay.group.body import pack
from roundelay.group.log.arrival import Arrival
from roundelay.group.log.config import LogConfig
from roundelay.group.log.sessions import SessionTable
from roundelay.group.log.state import LogState

OWN = (1, 2, 3)
CLIENTS = (NAMED | 1, NAMED | 2, NAMED | 3, NAMED | 4)
LOG = b"L" * 16


def new_state(sessions_max: int = 4) -> LogState:
    config = LogConfig(sessions_max=sessions_max)
    return LogState(Boot("g", "a", journal=EMPTY_LOG), config, [])


def arrival(session: int, number: int, count: int) -> Arrival:
    body = pack([f"{session}:{number + i}".encode() for i in range(count)]) if count else b"name"
    return Arrival("a", 0, session, number, count, 5, body)


def mark(term: int, base: int, sessions: tuple[int, ...], opened: int = 0) -> Mark:
    names = tuple("abc"[: len(sessions)])
    return Mark(ViewId(term, "a"), base, names, names, sessions, 0, LOG, opened=opened)


def test_the_one_longest_unused_is_forgotten():
    table = SessionTable(2)
    table.use(1, 0, 0, ())
    table.use(2, 0, 1, ())
    table.use(1, 1, 2, ())
    table.use(3, 0, 3, ())
    assert table.sessions == (Session(1, 1, 2), Session(3, 0, 3))


def test_a_session_of_a_member_is_never_forgotten():
    table = SessionTable(2)
    for session in (1, 2, 3, 4):
        table.use(session, 0, session, {1, 2, 3})
    assert {session.session for session in table.sessions} == {1, 2, 3, 4}
    table.use(5, 0, 5, {1, 2, 3})
    assert {session.session for session in table.sessions} == {1, 2, 3, 5}


def test_sessions_of_nodes_that_are_away_are_forgotten_after_named_ones():
    table = SessionTable(4)
    for session in (1, 2, CLIENTS[0], CLIENTS[1], CLIENTS[2]):
        table.use(session, 0, 0, ())
    assert [session.session for session in table.sessions] == [1, 2, *CLIENTS[1:3]]


def test_sessions_of_nodes_that_are_away_never_fill_more_than_half_for_long():
    table = SessionTable(4)
    for session in (1, 2, 3, CLIENTS[0], CLIENTS[1]):
        table.use(session, 0, 0, ())
    assert [session.session for session in table.sessions] == [2, 3, *CLIENTS[:2]]
    table.use(CLIENTS[2], 0, 0, (2,))
    assert [session.session for session in table.sessions] == [2, 3, *CLIENTS[1:3]]


def test_an_own_session_gets_its_next_number_alone():
    state = new_state()
    state.append(mark(4, 0, (1,)))
    assert state.take(arrival(1, 1, 1)) is None
    assert state.take(arrival(1, 0, 2)) is not None
    assert state.take(arrival(1, 1, 1)) is None
    overlapping = state.take(arrival(1, 1, 3))
    assert overlapping is not None
    assert (overlapping.head.number, overlapping.head.count, overlapping.head.index) == (2, 2, 2)
    assert overlapping.body == pack([b"1:2", b"1:3"])
    assert state.length == 4


def test_a_named_session_takes_any_larger_number_once_it_is_open():
    state = new_state()
    state.append(mark(4, 0, (1,)))
    client = CLIENTS[0]
    assert state.take(arrival(client, 3, 1)) is None
    assert state.take(arrival(client, 0, 0)) is not None
    assert state.take(arrival(client, 0, 0)) is None
    assert state.take(arrival(client, 41, 1)) is not None
    assert state.take(arrival(client, 41, 1)) is None
    assert state.take(arrival(client, 7, 1)) is None
    assert state.length == 1
    assert state.sessions.get(client) == (41, 0, 2)


class Table(RuleBasedStateMachine):
    """A log with random sessions, cut at random: its table, digest and marks are those of a log
    that never had more."""

    def __init__(self) -> None:
        super().__init__()
        self.state = new_state()
        self.history: list[Arrival | Mark] = []
        """What led to the present log."""
        self.places: list[Place] = [Place()]
        self.term = 0

    def replayed(self) -> LogState:
        state = new_state()
        for item in self.history:
            if isinstance(item, Mark):
                state.append(item)
            else:
                assert state.take(item) is not None
        return state

    @rule(sessions=st.sets(st.sampled_from(OWN), max_size=3))
    def begin_a_term(self, sessions: set[int]) -> None:
        self.term += 1
        place = self.state.place
        begun = mark(self.term, place.length, tuple(sorted(sessions)), place.opened)
        self.state.append(begun)
        self.history.append(begun)
        self.places.append(self.state.place)

    @precondition(lambda self: self.state.marks)
    @rule(
        session=st.sampled_from(OWN + CLIENTS),
        number=st.integers(0, 6),
        count=st.integers(0, 3),
    )
    def deliver(self, session: int, number: int, count: int) -> None:
        if not count and session < NAMED:
            return
        packet = arrival(session, 0 if not count else number, count)
        before = self.state.place
        taken = self.state.take(packet)
        if taken is None:
            assert self.state.place == before
            return
        assert taken.head.index == before.length
        self.history.append(packet)
        self.places.append(self.state.place)

    @rule(data=st.data())
    def cut(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.places) - 1))
        assert self.state.can_cut(self.places[at])
        self.state.cut(self.places[at])
        del self.history[at:]
        del self.places[at + 1 :]

    @invariant()
    def is_that_of_a_log_that_never_had_more(self) -> None:
        other = self.replayed()
        mine = self.state
        assert mine.checkpoint == other.checkpoint
        assert mine.marks == other.marks
        assert (mine.log, mine.generation) == (other.log, other.generation)

    @invariant()
    def remembers_what_it_was_before(self) -> None:
        state = self.state
        for place in self.places:
            assert state.holds(place) == (place.term != Place().term or place == Place())


TestTable = Table.TestCase
TestTable.settings = settings(stateful_step_count=25)


def test_a_restart_within_a_term_spares_the_same_sessions():
    """The journal begins to be read at a checkpoint, behind the mark that says who is spared."""
    state = new_state(2)
    begun = mark(4, 0, (1, 2))
    state.append(begun)
    state.take(arrival(1, 0, 1))
    state.take(arrival(2, 0, 1))
    checkpoint = state.checkpoint
    out: list[Effect[Any]] = []
    kept = replace(
        EMPTY_LOG, log=LOG, marks=(begun,), checkpoint=checkpoint, tail=(), committed=1, able=True
    )
    taken = [state.take(arrival(client, 0, 0)) for client in CLIENTS[:3]]
    tail = [entries.head for entries in taken if entries is not None]
    again = LogState(
        Boot("g", "a", journal=replace(kept, tail=tuple(tail))), LogConfig(sessions_max=2), out
    )
    assert again.sessions.sessions == state.sessions.sessions
    assert again.sessions.get(1) is not None
