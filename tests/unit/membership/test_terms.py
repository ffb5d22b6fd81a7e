"""Nodes that were set up otherwise do not meet, and say so."""

from typing import Any

from roundelay.core.contract import Boot, Origin
from roundelay.core.effects import Differ, Effect, Install, Send
from roundelay.core.ids import Terms, View, ViewId
from roundelay.group.engines import engine_factory
from roundelay.group.stack import Stack
from roundelay.membership.messages import Join, Merge
from roundelay.membership.terms import Agreement

OURS = Terms("engine totem", "a,b")
THEIRS = Terms("engine dtp", "a,b")


class Node:
    """One stack, what it wants sent, and the views it entered."""

    def __init__(self, name: str, terms: Terms, life: int = 0) -> None:
        self.name = name
        self.stack = Stack(Boot("g", name, life), ("a", "b"), engine_factory("totem"), terms=terms)
        self.views: list[View] = []
        self.differs: list[Differ] = []
        self.sent: list[Send[Any]] = []
        self.take(self.stack.start())

    def take(self, effects: list[Effect[Any]]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self.sent.append(effect)
            elif isinstance(effect, Differ):
                self.differs.append(effect)
            elif isinstance(effect, Install) and not effect.view.transitional:
                self.views.append(effect.view)

    def hear(self, sender: "Node", message: object, view: ViewId | None = None) -> None:
        view = view or sender.stack.membership.view.id
        self.take(self.stack.receive(Origin("g", sender.name, 0, view), message))


def exchange(*nodes: Node) -> None:
    """Carry what was sent, and what is sent because of it, until all is quiet."""
    for _ in range(50):
        for node in nodes:
            sent, node.sent = node.sent, []
            for effect in sent:
                for other in nodes:
                    if other is not node and effect.to in (None, other.name):
                        other.hear(node, effect.message, effect.view)


def test_nodes_with_other_settings_stay_apart_and_both_are_told():
    a, b = Node("a", OURS), Node("b", THEIRS)
    exchange(a, b)
    for node in (a, b):
        node.take(node.stack.expire("consensus"))
    exchange(a, b)
    assert [view.members for view in (a.views[-1], b.views[-1])] == [("a",), ("b",)]
    assert Differ("b", THEIRS, refused=True) in a.differs
    assert Differ("a", OURS, refused=True) in b.differs
    count = len(a.views), len(b.views)
    for node in (a, b):  # They hear each other's rings, and let each other be.
        node.take(node.stack.expire("merge_detect"))
        assert any(isinstance(effect.message, Merge) for effect in node.sent)
    exchange(a, b)
    assert (len(a.views), len(b.views)) == count
    assert str(a.stack.membership.phase) == str(b.stack.membership.phase) == "operational"


def test_nodes_with_other_peers_meet_and_both_are_told():
    a, b = Node("a", OURS), Node("b", Terms(OURS.settings, "a,b,c"))
    exchange(a, b)
    assert a.views[-1].members == b.views[-1].members == ("a", "b")
    assert set(a.differs) == {Differ("b", Terms(OURS.settings, "a,b,c"), refused=False)}
    assert set(b.differs) == {Differ("a", OURS, refused=False)}


def test_who_was_heard_of_by_another_frame_is_given_up_once_its_settings_are_known():
    a, b = Node("a", OURS), Node("b", THEIRS)
    for node in (a, b):
        node.take(node.stack.expire("consensus"))
        node.sent.clear()
    a.hear(b, object())  # Of an engine that a does not run.
    assert a.sent[-1].message == Join(("a", "b"), (), a.stack.membership.ring_id.seq, OURS)
    exchange(a, b)
    assert (a.views[-1].members, str(a.stack.membership.phase)) == (("a",), "operational")
    count = len(a.views)
    a.hear(b, object())
    assert (len(a.views), str(a.stack.membership.phase)) == (count, "operational")


def test_a_forged_frame_shuts_nobody_out_and_memory_is_bounded():
    agreement = Agreement(OURS, 8)

    def hear(node: str, life: int, terms: Terms) -> bool:
        origin = Origin("g", node, life, None)
        return agreement.compare(origin, Merge(terms), ViewId(4, "a"))[0]

    assert not hear("b", 7, THEIRS)
    assert agreement.differs(Origin("g", "b", 7, None))
    assert not agreement.differs(Origin("g", "b", 8, None))
    assert hear("b", 7, OURS)
    assert not agreement.differs(Origin("g", "b", 7, None))
    for i in range(100):
        hear(f"x{i}", 1, THEIRS)
    assert len(agreement._others) <= 8
