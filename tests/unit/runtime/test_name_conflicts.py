"""A restart is let in at once; of two nodes of one name the second is kept out."""

from roundelay.core.contract import Origin
from roundelay.runtime.name_conflicts import NameConflicts, TakenReports
from roundelay.runtime.node_log import NodeLog
from roundelay.transport.address import SocketAddress

MEMBER, OTHER = 10, 20
THERE: SocketAddress = ("127.0.0.9", 9)


class Court:
    """Conflicts about peer b, whose member has life 10."""

    def __init__(self) -> None:
        self.now = 100.0
        self.asked: list[int] = []
        self.told: list[tuple[str, int, SocketAddress | None]] = []
        self.admitted: list[bytes] = []
        self.node_log = NodeLog("g", "a", 0.4, lambda: self.now)
        self.conflicts = NameConflicts(
            self.node_log,
            lambda: self.now,
            0.2,
            self._ask,
            lambda *told: self.told.append(told),
            self.admitted.append,
        )

    def _ask(self, node: str) -> int:
        assert node == "b"
        self.asked.append(len(self.asked) + 1)
        return self.asked[-1]

    def hear(self, life: int = OTHER, data: bytes = b"join") -> bool:
        return self.conflicts.allows(Origin("g", "b", life, None), MEMBER, data, THERE)

    def answer(self, life: int, nonce: int | None = None) -> None:
        number = self.asked[-1] if nonce is None else nonce
        self.conflicts.on_answer(Origin("g", "b", life, None), number)


def test_a_restarted_node_is_let_in_after_one_round_trip():
    court = Court()
    assert not court.hear()
    court.answer(OTHER)
    assert court.admitted == [b"join"]
    assert court.hear()
    assert court.told == []


def test_whose_address_another_life_has_is_gone():
    """Many restarts within a moment: a frame of the last life but one was held back."""
    court = Court()
    assert not court.hear()
    court.answer(30)
    assert court.admitted == []
    assert court.hear(30)


def test_a_member_that_is_there_keeps_the_other_out_for_as_long_as_it_takes():
    court = Court()
    for i in range(100):
        assert not court.hear()
        court.answer(MEMBER)
        court.now += 0.15
        assert len(court.asked) <= 1 + i * 0.15 / 0.4
    assert set(court.told) == {("b", OTHER, THERE), ("b", MEMBER, None)}
    assert court.admitted == []
    assert len(court.node_log.warnings()) == 1
    # An hour later another one tries: the member is asked anew.
    court.now += 3600
    asked, told = len(court.asked), len(court.told)
    assert not court.hear(40)
    assert len(court.asked) == asked + 1
    assert len(court.told) == told
    court.answer(MEMBER)
    assert ("b", 40, THERE) in court.told


def test_a_member_that_falls_silent_makes_room():
    court = Court()
    assert not court.hear()
    court.answer(MEMBER)
    court.now += 0.5
    seen = []
    for _ in range(12):
        seen.append(court.hear())
        court.now += 0.04
    assert seen == sorted(seen)  # Once it is let in, it stays.
    assert seen.index(True) in (5, 6)
    assert len(court.asked) >= 4  # One lost frame is no silence.


def test_an_answer_with_a_wrong_nonce_proves_nothing():
    court = Court()
    assert not court.hear()
    court.answer(OTHER, nonce=77)
    court.answer(MEMBER, nonce=77)
    assert court.admitted == []
    assert court.told == []


def test_a_node_stops_after_it_was_told_for_a_second():
    now = 100.0
    reports = TakenReports(lambda: now)
    assert not any(reports.count() for _ in range(100))  # A burst.
    now += 2.0
    assert not any(reports.count() for _ in range(100))
    now += 60.0
    seen = []
    for _ in range(12):
        seen.append(reports.count())
        now += 0.15
    assert seen == [False] * 7 + [True] * 5
    reports.reset()
    assert not reports.count()
