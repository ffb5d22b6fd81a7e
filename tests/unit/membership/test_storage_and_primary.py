"""Ring numbers that never come twice, and at most one primary component."""

from random import Random

import pytest

from roundelay.core.contract import Boot
from roundelay.core.ids import View, ViewId
from roundelay.membership.messages import ATTEMPTS_MAX, Entry, Primary
from roundelay.membership.primary import Standing, is_primary
from roundelay.membership.storage import last_seq, pack, unpack

FOUNDERS = ("a", "b", "c", "d", "e")
FOUNDING = Primary(ViewId(0, ""), FOUNDERS)


def test_storage_reads_as_it_was_written():
    assert unpack(pack(400, 7)) == (400, 7)


@pytest.mark.parametrize("cut", range(20))
def test_torn_storage_is_known_as_such(cut):
    assert unpack(pack(400, 7)[:cut]) is None


def test_a_flipped_bit_is_noticed():
    whole = pack(400, 7)
    for bit in range(len(whole) * 8):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        assert unpack(bytes(damaged)) is None


def test_a_node_counts_on_from_its_storage_or_in_doubt_from_the_clock():
    assert last_seq(Boot("g", "a")) == 0
    assert last_seq(Boot("g", "a", 3, pack(400, 2), 99)) == 400
    assert last_seq(Boot("g", "a", 3, None, 99)) == 4 * 99
    assert last_seq(Boot("g", "a", 0, b"garbage", 99)) == 4 * 99


def entries(nodes: str, primary: Primary | None, *attempts: Primary) -> list[Entry]:
    return [Entry(node, ViewId(4, node), primary=primary, attempts=attempts) for node in nodes]


def test_a_node_starts_with_the_founders_in_mind_and_restarts_with_nothing():
    assert Standing(Boot("g", "a"), FOUNDERS).last == FOUNDING
    assert Standing(Boot("g", "a", incarnation=1), FOUNDERS).last is None


def test_a_view_in_doubt_is_remembered_until_a_primary_view_is_installed():
    standing = Standing(Boot("g", "a"), FOUNDERS)
    standing.doubt(ViewId(8, "a"), entries("abc", FOUNDING))
    standing.doubt(ViewId(12, "a"), entries("ab", FOUNDING))  # Not primary: nobody's concern.
    assert standing.attempts == (Primary(ViewId(8, "a"), ("a", "b", "c")),)

    standing.note(View(ViewId(16, "a"), ("a", "b")))
    assert (standing.last, len(standing.attempts)) == (FOUNDING, 1)
    standing.note(View(ViewId(20, "a"), ("a", "b", "d"), primary=True))
    assert standing.last == Primary(ViewId(20, "a"), ("a", "b", "d"))
    assert not standing.attempts


def test_of_many_views_in_doubt_the_last_are_remembered():
    standing = Standing(Boot("g", "a"), FOUNDERS)
    for number in range(ATTEMPTS_MAX + 3):
        standing.doubt(ViewId(4 * number + 4, "a"), entries("abc", FOUNDING))
    assert len(standing.attempts) == ATTEMPTS_MAX
    assert standing.attempts[-1].id.seq == 4 * (ATTEMPTS_MAX + 3)


def test_a_majority_of_the_founders_is_primary():
    assert is_primary(entries("abc", FOUNDING), FOUNDERS)
    assert not is_primary(entries("ab", FOUNDING), FOUNDERS)


def test_a_majority_of_the_last_primary_is_enough_and_needed():
    last = Primary(ViewId(8, "a"), ("a", "b", "c"))
    assert is_primary(entries("ab", last), FOUNDERS)
    assert is_primary(entries("ab", last) + entries("de", FOUNDING), FOUNDERS)
    assert not is_primary(entries("a", last) + entries("de", FOUNDING), FOUNDERS)
    assert not is_primary(entries("de", FOUNDING), FOUNDERS)


def test_a_primary_in_doubt_needs_a_majority_too():
    doubt = Primary(ViewId(12, "a"), ("a", "b", "c"))
    # a may have installed {a,b,c} and gone on; b and c did not, and meet d and e.
    assert is_primary(entries("bcde", FOUNDING, doubt), FOUNDERS)  # b and c are its majority.
    alone = Primary(ViewId(12, "a"), ("a", "b"))
    assert not is_primary(entries("bcde", FOUNDING, alone), FOUNDERS)


def test_the_restarted_have_no_vote_until_everybody_is_there():
    assert not is_primary(entries("abcd", None), FOUNDERS)
    assert is_primary(entries("abcde", None), FOUNDERS)
    assert not is_primary(entries("ab", FOUNDING) + entries("cd", None), FOUNDERS)
    assert is_primary(entries("ab", FOUNDING) + entries("cde", None), FOUNDERS)
    pair = Primary(ViewId(8, "a"), ("a", "b"))
    assert not is_primary(entries("a", pair) + entries("cde", FOUNDING), FOUNDERS)
    assert is_primary(entries("a", pair) + entries("b", None), FOUNDERS)


def test_those_who_were_about_to_install_vote_for_what_somebody_did():
    last = Primary(ViewId(8, "a"), FOUNDERS)
    about = entries("bc", FOUNDING, last)
    assert is_primary(entries("a", last) + about, FOUNDERS)
    assert not is_primary(entries("a", last) + entries("bc", FOUNDING), FOUNDERS)


def test_primaries_follow_each_other_whoever_fails_to_install():
    """Random histories. Components form views; of a primary one some members install, the others
    get only so far that somebody may have. Each primary must hold a majority of the one that was
    installed before it, by anybody; only founders who all restarted begin a new line."""
    random = Random(5)
    chains = []
    for _ in range(300):
        memory: dict[str, Primary | None] = dict.fromkeys(FOUNDERS, FOUNDING)
        attempts: dict[str, tuple[Primary, ...]] = dict.fromkeys(FOUNDERS, ())
        newest = FOUNDING
        chain = 0
        for step in range(1, 60):
            component = tuple(sorted(random.sample(FOUNDERS, random.randint(1, 5))))
            view = Primary(ViewId(4 * step, component[0]), component)
            entries = [
                Entry(n, ViewId(4, n), primary=memory[n], attempts=attempts[n]) for n in component
            ]
            if is_primary(entries, FOUNDERS):
                installers = [n for n in component if random.random() < 0.5]
                if installers:
                    common = set(component) & set(newest.members)
                    cold = all(entry.primary is None for entry in entries)
                    assert cold or 2 * len(common) > len(newest.members), (newest, entries)
                    newest = view
                    chain += 1
                for node in component:
                    if node in installers:
                        memory[node], attempts[node] = view, ()
                    elif installers or random.random() < 0.5:
                        attempts[node] = (*attempts[node], view)
            if random.random() < 0.05:
                restarted = random.choice(FOUNDERS)
                memory[restarted], attempts[restarted] = None, ()
        chains.append(chain)
    assert sum(chains) > 500
