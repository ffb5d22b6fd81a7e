"""At most one primary component, whatever is lost and whoever installs."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random

import pytest

from roundelay.core.ids import ViewId
from roundelay.membership import primary as rules
from roundelay.membership.messages import ATTEMPTS_MAX, CommitEntry, Primary
from roundelay.membership.primary import Ruling, Standing, able_members, rule

ABC, ABCDE = tuple("abc"), tuple("abcde")


def entry(node: str, standing: Standing, founders: tuple[str, ...] = ABCDE) -> CommitEntry:
    last, attempts, able = standing.last, standing.attempts, standing.able
    return CommitEntry(node, ViewId(4, node), b"", (), last, attempts, able, founders)


def voters(*entries: CommitEntry) -> str:
    return "".join(rule(entries).voters)


def lost(nodes: str) -> list[CommitEntry]:
    return [entry(node, Standing()) for node in nodes]


def able(nodes: str, last: Primary | None, *attempts: Primary) -> list[CommitEntry]:
    return [entry(node, Standing(True, last, attempts)) for node in nodes]


def test_a_group_is_founded_by_all_its_founders_at_once():
    assert voters(*lost("abcde")) == "abcde"
    assert rule(lost("abcde")).founding
    assert voters(*lost("abcd")) == ""
    assert "e missing" in rule(lost("abcd")).why


def test_founders_that_differ_found_nothing_and_are_named():
    ruling = rule([entry("a", Standing(), ABC), entry("b", Standing(), tuple("ab"))])
    assert not ruling.voters
    assert "the peers of a and of b differ" in ruling.why
    last = Primary(ViewId(8, "a"), ABC)
    remembered = [
        entry("a", Standing(True, last), ABC),
        entry("b", Standing(True, last), tuple("abd")),
    ]
    assert rule(remembered).voters == ABC  # Once a view is remembered they no longer matter.


def test_a_founding_that_not_all_installed_is_repeated_by_a_majority():
    attempt = Primary(ViewId(8, "a"), ABCDE)
    assert voters(*able("cde", None, attempt)) == "cde"
    assert voters(*able("de", None, attempt)) == ""


def test_a_majority_of_the_last_voters_is_enough_and_needed():
    last = Primary(ViewId(8, "a"), ABCDE)
    assert voters(*able("abc", last)) == "abc"
    assert voters(*able("ab", last)) == ""
    assert rule(able("ab", last)).why == "needs 1 more of c, d, e, voters of view 8.a"


def test_voters_never_become_fewer_than_three():
    last = Primary(ViewId(8, "a"), ABC)
    assert voters(*able("ab", last)) == "abc"
    assert voters(*able("ab", Primary(ViewId(8, "a"), ("a", "b")))) == "ab"
    assert voters(*able("abde", last)) == "abde"


def test_who_lost_its_storage_has_no_vote():
    last = Primary(ViewId(8, "a"), ABCDE)
    assert voters(*able("ab", last), *lost("cde")) == ""
    assert voters(*able("abc", last), *lost("de")) == "abc"


def test_a_group_that_lost_its_majority_is_told_how_to_begin_anew():
    last = Primary(ViewId(8, "a"), ABC)
    ruling = rule([*lost("ab"), *able("c", last)])
    assert ruling.why == "a, b lost their state; restart c as well, without state, to begin anew"


def test_half_of_an_attempt_is_enough_and_needed():
    last = Primary(ViewId(8, "a"), tuple("abcdefg"))
    attempt = Primary(ViewId(12, "a"), tuple("abcd"))
    assert voters(*able("a", last, attempt), *able("befg", last)) == "abefg"
    ruling = rule([*able("a", last, attempt), *able("efg", last)])
    assert ruling.why == "needs one of b, c, d: they may have gone on in view 12.a"


def test_attempts_before_the_last_primary_view_do_not_matter():
    last = Primary(ViewId(16, "a"), ABC)
    earlier = Primary(ViewId(12, "d"), ("d", "e"))
    assert voters(*able("ab", last, earlier)) == "abc"


def test_attempts_are_merged_and_never_dropped():
    standing = Standing(True, Primary(ViewId(4, "a"), ABCDE))
    assert not standing.attempt(ViewId(8, "a"), Ruling())
    for seq in range(8, 60, 4):
        assert standing.attempt(ViewId(seq, "a"), Ruling(ABC))
    assert standing.attempt(ViewId(60, "a"), Ruling(tuple("bcd")))
    merged = (Primary(ViewId(56, "a"), ABC), Primary(ViewId(60, "a"), tuple("bcd")))
    assert standing.attempts == merged

    standing.install(ViewId(58, "a"), Ruling(ABCDE))
    assert standing.last == Primary(ViewId(58, "a"), ABCDE)
    assert [*standing.attempts] == [*merged[1:]]  # Later than what was installed: it stands.


def test_a_view_for_which_a_member_would_need_one_attempt_too_many_is_not_primary():
    last = Primary(ViewId(8, "a"), ABCDE)
    many = tuple(Primary(ViewId(12 + 4 * i, "a"), (*"abc", f"n{i}")) for i in range(ATTEMPTS_MAX))
    ruling = rule([entry("a", Standing(True, last, many)), *able("bcd", last)])
    assert not ruling.voters
    assert "too many unfinished view changes in the memory of a" in ruling.why
    assert voters(entry("a", Standing(True, last, many[1:])), *able("bcd", last)) == "abcd"


def test_a_member_whose_memory_did_not_fit_the_token_makes_the_view_not_primary():
    crowded = CommitEntry("a", ViewId(4, "a"), crowded=True)
    ruling = rule([crowded, *able("bcde", Primary(ViewId(8, "a"), ABCDE))])
    assert not ruling.voters
    assert "too many past members" in ruling.why


# Histories: who forms a view, who of them completes the exchange, who installs.


class Group:
    """A group without engines and network: nodes, their memory, and the views they hold."""

    def __init__(self, nodes: Iterable[str]) -> None:
        self.nodes = tuple(nodes)
        self.memory = {node: Standing() for node in self.nodes}
        self.disk = {node: Standing() for node in self.nodes}
        self.holds: dict[str, Primary | None] = dict.fromkeys(self.nodes)
        self.knows: dict[str, Primary | None] = dict.fromkeys(self.nodes)
        """The last primary view that each installed and still remembers."""
        self.seq = 0
        self.parents: dict[Primary, Primary | None] = {}
        self.installed: dict[Primary, set[str]] = {}

    def form(self, formed: str, complete: str | None = None, installed: str | None = None) -> bool:
        """Whether the view is primary, at any rate; all of `formed` freeze what they held."""
        self.seq += 4
        entries = [entry(node, self.memory[node], self.nodes) for node in formed]
        ruling = rule(entries)
        view = Primary(ViewId(self.seq, formed[0]), ruling.voters)
        for node in formed:
            self.holds[node] = None
        if not ruling.voters:
            return False
        known = [p for node in formed if (p := self.knows[node]) is not None]
        self.parents[view] = max(known, key=lambda p: p.id, default=None)
        for node in formed if complete is None else complete:
            self.memory[node].attempt(view.id, ruling)
            self._store(node)
        everybody = formed if complete is None else complete
        for node in everybody if installed is None else installed:
            self.memory[node].install(view.id, ruling)
            self._store(node)
            self.holds[node] = self.knows[node] = view
            self.installed.setdefault(view, set()).add(node)
        return True

    def _store(self, node: str) -> None:
        m = self.memory[node]
        self.disk[node] = Standing(m.able, m.last, m.attempts)

    def restart(self, nodes: str, *, kept: bool = True) -> None:
        for node in nodes:
            if not kept:
                self.disk[node] = Standing()
                self.knows[node] = None
            d = self.disk[node]
            self.memory[node] = Standing(d.able, d.last, d.attempts)
            self.holds[node] = None

    def broken(self) -> str:
        """What is wrong, if anything: the two halves of property M10."""
        held = {view for view in self.holds.values() if view is not None}
        ruling = [v for v in held if self._majority(v, (n for n in v.voters if self.holds[n] == v))]
        if len(ruling) > 1:
            return f"two at once: {ruling}"
        established = sorted(
            (v for v, by in self.installed.items() if self._majority(v, by)), key=lambda v: v.id
        )
        line: set[Primary] = set()
        at = established[-1] if established else None
        founding = None
        while at is not None:
            line.add(at)
            founding = at
            at = self.parents[at]
        beside = [v for v in established if v not in line and founding and v.id > founding.id]
        return f"beside the line: {beside}" if beside else ""

    @staticmethod
    def _majority(view: Primary, nodes: Iterable[str]) -> bool:
        return 2 * len(set(nodes) & set(view.voters)) > len(view.voters)


def whole_view_restarted(g: Group) -> None:
    g.form("abcde")
    g.form("abc")
    g.form("abde")
    g.form("bde")
    g.form("de")
    g.restart("ab")
    g.form("abc")


def fifth_attempt(g: Group) -> None:
    g.form("abcde")
    g.form("abe", "abe", "e")
    for _ in range(4):
        g.form("abcd", "bcd", "")
    g.form("bcd")
    g.form("ae")


def restarted_in_a_doubt(g: Group) -> None:
    g.form("abcdefg")
    g.form("abcdg", "abcdg", "bcd")
    g.form("bcd")
    g.form("bd")
    g.restart("c", kept=False)
    g.form("acefg")


def lost_directory(g: Group) -> None:
    g.form("abcde")
    g.form("abc")
    g.restart("c", kept=False)
    g.form("cde")
    g.form("ab")


SCHEDULES: list[tuple[str, Callable[[Group], None]]] = [
    ("abcde", whole_view_restarted),
    ("abcde", fifth_attempt),
    ("abcdefg", restarted_in_a_doubt),
    ("abcde", lost_directory),
]


@pytest.mark.parametrize(("nodes", "schedule"), SCHEDULES)
def test_schedules_that_once_gave_two_primary_views(nodes, schedule):
    group = Group(nodes)
    schedule(group)
    assert group.broken() == ""
    assert len(group.installed) >= 2


def test_after_a_full_outage_a_majority_that_kept_its_storage_is_primary_again():
    group = Group("abc")
    group.form("abc")
    group.restart("abc")
    assert group.form("ab")
    group.restart("abc", kept=False)
    assert not group.form("ab")
    assert group.form("abc")


def history(seed: int) -> Group:
    """A random one, of three to six nodes, with lost disks in some."""
    random = Random(seed)
    group = Group("abcdef"[: random.randint(3, 6)])
    disks = random.choice((0, 0, 1, 2))
    for _ in range(random.randint(5, 30)):
        if random.random() < 0.25:
            kept = not disks or random.random() < 0.7
            disks -= not kept
            group.restart(random.choice(group.nodes), kept=kept)
            continue
        formed = "".join(sorted(random.sample(group.nodes, random.randint(1, len(group.nodes)))))
        share = random.choice((0.5, 0.8, 1.0))
        complete = "".join(node for node in formed if random.random() < share)
        # Nobody installs before all are complete.
        whole = complete == formed or random.random() < 0.5
        installs = "".join(node for node in formed if whole and random.random() < share)
        group.form(formed, formed if whole else complete, installs)
        late = [node for node in formed if node not in installs]
        if late and random.random() < 0.3:
            group.restart(random.choice(late))
        if broken := group.broken():
            raise AssertionError(f"seed {seed}: {broken}")
    return group


def test_no_random_history_has_two_primary_components():
    groups = [history(seed) for seed in range(3000)]
    assert sum(len(group.installed) for group in groups) > 5000
    assert max(len(s.attempts) for group in groups for s in group.memory.values()) >= 3


def first_conviction(seeds: int = 6000) -> int | None:
    for seed in range(seeds):
        try:
            history(seed)
        except AssertionError:
            return seed
    return None


def unable_votes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that lost its storage votes."""
    original = rules.rule

    def everybody(entries: list[CommitEntry]) -> Ruling:
        return original(
            [
                CommitEntry(e.node, e.old, b"", (), e.last, e.attempts, True, e.founders)
                for e in entries
            ]
        )

    monkeypatch.setitem(globals(), "rule", everybody)


def attempts_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts are not in stable storage."""

    def store(self: Group, node: str) -> None:
        m = self.memory[node]
        self.disk[node] = Standing(m.able, m.last, ())

    monkeypatch.setattr(Group, "_store", store)


def only_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the newest attempt is remembered."""
    original = Standing.attempt

    def attempt(self: Standing, view: ViewId, ruling: Ruling) -> bool:
        noted = original(self, view, ruling)
        self.attempts = self.attempts[-1:]
        return noted

    monkeypatch.setattr(Standing, "attempt", attempt)


def no_doubts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A majority of the last primary view is enough."""
    original = rules.rule

    def careless(entries: list[CommitEntry]) -> Ruling:
        return original(
            [CommitEntry(e.node, e.old, b"", (), e.last, (), e.able, e.founders) for e in entries]
        )

    monkeypatch.setitem(globals(), "rule", careless)


def all_attempts_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who founds anew forgets what it knew: a lost disk founds with whoever is there."""
    original = rules.rule

    def hasty(entries: list[CommitEntry]) -> Ruling:
        ruling = original(entries)
        if not ruling.voters and all(e.last is None for e in entries) and len(entries) > 1:
            return Ruling(tuple(e.node for e in entries), founding=True)
        return ruling

    monkeypatch.setitem(globals(), "rule", hasty)


def half_of_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the last voters is taken for a majority."""
    original = rules._present
    monkeypatch.setattr(rules, "_present", lambda able, v: min(original(able, v) + 1, len([*v])))


@pytest.mark.parametrize(
    "bug",
    [
        unable_votes,
        attempts_forgotten,
        only_the_newest,
        no_doubts,
        all_attempts_dropped,
        half_of_the_last,
    ],
)
def test_every_weaker_rule_is_convicted(monkeypatch, bug):
    bug(monkeypatch)
    assert first_conviction() is not None


def test_a_view_found_open_leaves_the_attempts_after_it():
    early, view, late = (Primary(ViewId(seq, "a"), tuple("ab")) for seq in (4, 8, 12))
    standing = Standing(False, early, (view, late))
    standing.open(view.id, view.voters)
    assert (standing.able, standing.last, standing.attempts) == (True, view, (late,))


def test_among_nodes_with_journals_one_without_has_no_vote():
    last = Primary(ViewId(8, "a"), ABC)
    with_journal = [replace(e, journal=True) for e in able("ab", last)]
    assert voters(*with_journal[:1], *able("b", last)) == ""
    assert voters(*with_journal, *able("c", last)) == "abc"
    assert able_members([*with_journal, *able("c", last)]) == ("a", "b")
    assert able_members(able("abc", last)) == ABC


def test_a_view_of_nodes_with_journals_may_have_opened():
    last, attempt = Primary(ViewId(8, "a"), ABCDE), Primary(ViewId(12, "a"), ABC)
    known = [*able("a", last, attempt), *able("de", last)]
    assert rule(known).why == "needs one of b, c: they may have gone on in view 12.a"
    known = [replace(e, journal=True) for e in known]
    assert rule(known).why == "needs one of b, c: they may have opened view 12.a"
