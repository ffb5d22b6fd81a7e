"""The golden scenario of ATOP, line by line and in every order of arrivals, and its slot lists."""

import pytest

from roundelay.protocols.atop.atom import Atom, Tag
from roundelay.protocols.atop.slots import draw, owner_of_slots, owners, seed

P, Q, R = range(3)
LISTS = {0: "pqr", 1: "pqpqpprp", 2: "pqr"}


def listed(view, distribution, weights):
    """Slot owners by a list that repeats, in the place of the generator."""
    letters = LISTS[distribution]
    return lambda slot: "pqr".index(letters[slot % len(letters)])


W = (5, 2, 1)
SENT = {
    "p0": (P, Tag(1, 0, 1, W)),
    "p1": (P, Tag(1, 1)),
    "p2": (P, Tag(1, 2)),
    "p3": (P, Tag(1, 3)),
    "q0": (Q, Tag(0, 0)),
    "q1": (Q, Tag(1, 0, 1, W)),
    "q2": (Q, Tag(2, 0, 1, (1, 1, 1))),
    "r0": (R, Tag(0, 0)),
    "r1": (R, Tag(1, 0, 1, W)),
    "r2": (R, Tag(1, 1)),
}
LINES = (
    ("q0", "", (0, 0)),
    ("p0", "q0@0.1", (0, 2)),
    ("q1", "", (0, 2)),
    ("p1", "", (0, 2)),
    ("r0", "r0@0.2", (0, 3)),
    ("r1", "p0@1.0 q1@1.1 p1@1.2", (1, 3)),
    ("q2", "", (1, 4)),
    ("p2", "p2@1.4", (1, 5)),
    ("p3", "p3@1.5 r1@1.6", (1, 7)),
    ("r2", "", (1, 7)),
)
END = "r2@1.14 q2@2.1"


def shown(ordered):
    return " ".join(f"{body}@{stamp.distribution}.{stamp.slot}" for body, stamp in ordered)


def arrive(atom, name):
    sender, tag = SENT[name]
    assert atom.plausible(sender, tag), name
    return shown(atom.arrive(sender, tag, name))


def test_golden_line_by_line():
    atom: Atom[str] = Atom(1, 3, P, listed)
    for name, ordered, place in LINES:
        assert (name, arrive(atom, name)) == (name, ordered)
        assert (atom.distribution, atom.slot) == place
    assert shown(atom.close()) == END


def orders(left):
    """Every order of arrivals that keeps each sender's own."""
    if not any(left):
        yield ()
    for i, names in enumerate(left):
        if names:
            rest = (*left[:i], names[1:], *left[i + 1 :])
            yield from ((names[0], *order) for order in orders(rest))


def test_golden_one_log_from_every_order_of_arrivals():
    log = " ".join(filter(None, (*(ordered for _, ordered, _ in LINES), END)))
    seen = 0
    for order in orders((("p0", "p1", "p2", "p3"), ("q0", "q1", "q2"), ("r0", "r1", "r2"))):
        atom: Atom[str] = Atom(1, 3, P, listed)
        parts = [arrive(atom, name) for name in order]
        assert " ".join(filter(None, (*parts, shown(atom.close())))) == log
        seen += 1
    assert seen == 4200


def test_golden_values_of_the_generator():
    assert [draw(0, i) for i in range(3)] == [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
    ]
    assert (seed(1, 0), seed(1, 1)) == (0xDCE423FC82C0D5B8, 0xDDC1ED05282D1D64)
    assert seed(2, 0) == 0xE60BBBF6CA094F3C


@pytest.mark.parametrize(
    ("owner", "letters"),
    [
        (owners(1, 0, (1, 1, 1)), "qqqrpprqrrrrrrrq"),
        (owner_of_slots(1296, (5, 2, 1)), "pqpqpprpqprppqqppprppqpq"),
    ],
)
def test_golden_slot_lists(owner, letters):
    assert "".join("pqr"[owner(slot)] for slot in range(len(letters))) == letters
