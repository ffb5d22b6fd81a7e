"""Nodes with journals: a primary view is an attempt until the log has opened in it."""

from dataclasses import replace
from typing import Any

from roundelay.core.contract import Boot
from roundelay.core.effects import Install, Persist, SetTimer, Suspect
from roundelay.core.ids import View, ViewId
from roundelay.core.log import EMPTY_LOG, Mark
from roundelay.group.engines import engine_factory
from roundelay.group.packer import Packer
from roundelay.membership.config import CAUGHT_UP, CONSENSUS
from roundelay.membership.machine import Membership
from roundelay.membership.messages import Primary
from roundelay.membership.phase import Phase
from roundelay.membership.primary import Standing
from roundelay.membership.storage import pack, unpack


def membership(
    *, journal: bool = True, able: bool = False, stored: bytes | None = None
) -> Membership:
    kept = replace(EMPTY_LOG, able=able) if journal else None
    boot = Boot("g", "a", 0, stored, journal=kept, session=5)
    engine = engine_factory("totem")("a", Packer("a", 0))
    return Membership(boot, ("a",), engine)


def alone(member: Membership) -> list[Any]:
    """The effects by which a node that is alone founds its group."""
    return [*member.start(), *member.expire(CONSENSUS)]


def last_stored(effects: list[Any]) -> Standing:
    persisted = [effect.state for effect in effects if isinstance(effect, Persist)]
    found = unpack(persisted[-1])
    assert found is not None
    return found[1]


def installed(effects: list[Any]) -> Install:
    return [e for e in effects if isinstance(e, Install) and not e.view.transitional][-1]


def test_without_a_journal_a_primary_view_counts_once_it_is_installed():
    effects = alone(membership(journal=False))
    view = installed(effects).view
    assert view.primary
    assert last_stored(effects).last == Primary(view.id, ("a",))
    assert not last_stored(effects).attempts


def test_with_a_journal_an_installed_view_is_an_attempt():
    member = membership()
    effects = alone(member)
    view = installed(effects).view
    assert view.primary
    assert member.journals == ("a",)
    standing = last_stored(effects)
    assert standing.last is None
    assert standing.attempts == (Primary(view.id, ("a",)),)
    assert standing.able  # A founder lacks nothing.


def test_a_view_counts_once_it_is_open():
    member = membership()
    view = installed(alone(member)).view
    member.begin()
    effects = member.note_open(view)
    standing = last_stored(effects)
    assert standing.last == Primary(view.id, ("a",))
    assert not standing.attempts
    assert member.able


def test_a_node_whose_journal_lacks_something_is_not_able_whatever_it_stored():
    stored = pack(8, Standing(True, Primary(ViewId(8, "a"), ("a", "b"))))
    assert membership(able=True, stored=stored).able
    member = membership(able=False, stored=stored)
    assert not member.able
    assert not last_stored(member.start()).able  # Nor does a later start forget that.


def test_a_member_without_a_vote_asks_for_another_view_once_the_view_is_open():
    member = membership()
    view = installed(alone(member)).view
    member.begin()
    other = View(view.id, view.members, primary=True, voters=("b", "c"))
    assert SetTimer(CAUGHT_UP, 1.0) in member.note_open(other)
    assert SetTimer(CAUGHT_UP, 1.0) not in member.note_open(view)
    effects = member.expire(CAUGHT_UP)
    assert [e.reason for e in effects if isinstance(e, Suspect)] == [
        "a has caught up, and may vote from now on"
    ]


def test_a_view_that_is_over_when_it_is_found_open_asks_for_nothing():
    member = membership()
    view = installed(alone(member)).view
    before = View(ViewId(view.id.seq - 4, "b"), ("a", "b"), primary=True, voters=("b", "c"))
    assert not [e for e in member.note_open(before) if isinstance(e, SetTimer)]


def test_the_log_may_end_a_view_that_lasts_and_no_other():
    suspicion = Suspect(("b",), "it offers no log")
    member = membership()
    member.start()
    assert member.phase is Phase.GATHER
    assert member.suspect(suspicion) == []
    view = installed(member.expire(CONSENSUS)).view
    member.begin()
    effects = member.suspect(suspicion)
    assert suspicion in effects
    assert installed(effects).view.id > view.id


def test_a_view_is_frozen_from_the_commit_token_to_the_next_view():
    member = membership()
    alone(member)
    assert member.waiting
    assert not member.frozen  # The view is new.
    member.begin()
    assert not member.frozen
    member.guard.freeze()
    assert member.frozen


def test_views_are_later_than_the_log_whatever_was_stored_and_the_clock_says():
    mark = Mark(ViewId(4001, "z"), 0, ("a",), ("a",), (5,), 0, b"L" * 16)
    kept = replace(EMPTY_LOG, marks=(mark,))
    for stored in (None, b"torn", pack(8, Standing())):
        boot = Boot("g", "a", 3, stored, 10, journal=kept)
        member = Membership(boot, ("a",), engine_factory("totem")("a", Packer("a", 3)))
        assert installed(member.start()).view.id.seq > 4001
