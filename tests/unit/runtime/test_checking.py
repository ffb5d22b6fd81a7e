"""What a node checks on its own rows, and what it says when they break a promise."""

import logging
from typing import Any

import pytest

from roundelay.check import profile
from roundelay.core.effects import Kind
from roundelay.runtime import checking
from roundelay.runtime.checking import OwnCheck, own_properties
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import REGULAR, Row

MANIFEST = Manifest(run="g", nodes=("a", "b"), protocol="totem", mode="views")
VIEW: dict[str, Any] = {"c_seq": 1, "c_rep": 0, "c_kind": REGULAR}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def made(clock: Clock | None = None) -> OwnCheck:
    return OwnCheck("g/a", MANIFEST, traced=False, clock=clock or Clock())


def deliver(check: OwnCheck, number: int, key: int | None = None, **more: Any) -> None:
    """Node a delivers message `number` of b."""
    about: dict[str, Any] = {"m_src": 1, "m_inc": 7, "m_seq": number, "k0": 1, "k1": 0, "k3": 0}
    about |= {"k2": number if key is None else key, **VIEW, **more}
    check.append(Row(Kind.DELIVER, 0, 5, check.rows, **about))


def install(check: OwnCheck) -> None:
    check.append(Row(Kind.INSTALL, 0, 5, check.rows, members=(0, 1), **VIEW))


def test_only_what_needs_one_node_is_checked():
    held = profile("totem", mode="views")
    assert own_properties(held) == ("T1", "T2", "T3", "M1", "M2", "D2", "O1", "O4")
    assert own_properties(held, traced=False) == ("T1", "T2", "M1", "M2", "D2", "O1", "O4")
    assert "O4" not in own_properties(profile("fifo", mode="views"))


def test_what_others_did_is_not_missed(caplog):
    """Nobody's sending is in a node's own rows; that is no reason for an alarm."""
    caplog.set_level(logging.INFO)
    check = made()
    install(check)
    for number in range(20):
        check.append(Row(Kind.RECEIVE, 0, 5, check.rows, m_src=1, m_inc=7, m_seq=number, **VIEW))
        deliver(check, number)
    check.close()
    found = check.status()
    assert (found["violations"], found["first"], found["rows"]) == (0, None, 41)
    (said,) = caplog.messages
    assert said == "g/a: checked 41 rows for T1, T2, M1, M2, D2, O1, O4: no violation"


def test_breaches_are_counted_and_told_now_and_then(caplog):
    clock = Clock()
    check = made(clock)
    install(check)
    deliver(check, 0)
    for _ in range(3):
        deliver(check, 0)
    clock.now = checking.REPEAT_S
    deliver(check, 0)
    found = check.status()
    assert found["violated"] == {"D2": 4}
    assert found["first"] == "D2, 'Nobody delivers a message twice': a delivers b'7:0 twice"
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    assert caplog.messages[0] == f"g/a: violation: {found['first']}"
    assert caplog.messages[1] == f"g/a: violation, 4 times so far: {found['first']}"
    check.close()
    assert caplog.messages[2].endswith(f"violated: D2 4 times; the first: {found['first']}")


def test_a_property_that_breaks_all_the_time_is_given_up(monkeypatch):
    monkeypatch.setattr(checking, "BREACHES_MAX", 5)
    check = made()
    install(check)
    for number in range(20):
        deliver(check, number, key=100 - number)
        deliver(check, number)
    found = check.status()
    assert found["violated"] == {"D2": 5, "O4": 5}
    assert found["rows"] == 41


def test_a_check_that_fails_ends_and_says_so(caplog):
    check = made()
    install(check)
    check.append(Row(Kind.DELIVER, 9, 5, 0, m_src=1, m_inc=7, m_seq=0))
    deliver(check, 0)
    deliver(check, 0)
    found = check.status()
    assert found["failure"].startswith("the check itself failed at row 0: ")
    assert (found["violations"], found["rows"]) == (0, 4)
    assert "please report it" in caplog.messages[0]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_life_begins_as_it_likes(restarted):
    """A node that was killed wrote no row of that; its next life may begin with a recovery."""
    check = made()
    if restarted:
        check.append(Row(Kind.RECOVER, 0, 5, check.rows, level=1))
    install(check)
    check.append(Row(Kind.CRASH, 0, 5, check.rows))
    assert check.status()["violations"] == 0
    deliver(check, 0)
    assert check.status()["violated"] == {"T2": 1}
