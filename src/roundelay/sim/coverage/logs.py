"""Goals of a replicated log: openings, cuts, votes, disks, catch-up, sessions and reads."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from roundelay.core.ids import NodeId
from roundelay.membership.messages import CommitEntry
from roundelay.membership.primary import Ruling, rule
from roundelay.sim.coverage.evidence import Evidence, Life, Sent, life, members, when
from roundelay.trace.schema import Row

# Entries and openings


def committed_without_its_sender(run: Evidence) -> bool:
    """An entry is committed when its sender is dead."""
    dead = {life(row): when(row) for row in run.kinds["crash"]}
    first = _first_commits(run)
    return any(
        (row.m_src, row.m_inc) in dead
        and row.idx in first
        and dead[row.m_src, row.m_inc] < first[row.idx]
        for row in run.kinds["entry"]
        if row.idx is not None and row.m_src is not None and row.m_inc is not None
    )


def _first_commits(run: Evidence) -> dict[int, int]:
    """By index: when somebody first knew it to be committed."""
    first: dict[int, int] = {}
    known = 0
    for row in sorted(run.kinds["commit"], key=when):
        while known < (row.idx or 0):
            first[known] = when(row)
            known += 1
    return first


def tail_cut(run: Evidence) -> bool:
    """A node cuts off entries that it had stored."""
    length: dict[int, int] = defaultdict(int)
    for row in sorted((*run.kinds["stored"], *run.kinds["cut"]), key=when):
        assert row.idx is not None
        if row.kind == "cut" and row.idx < length[row.proc]:
            return True
        length[row.proc] = row.idx
    return False


def tail_kept(run: Evidence) -> bool:
    """A view opens with entries of which nobody knew that they were committed."""
    known = 0
    opened: set[tuple[int | None, int | None]] = set()
    for row in sorted((*run.kinds["commit"], *run.kinds["open"]), key=when):
        assert row.idx is not None
        if row.kind == "commit":
            known = max(known, row.idx)
        elif (row.k0, row.k1) not in opened:
            opened.add((row.k0, row.k1))
            if row.idx > known:
                return True
    return False


def adopted_from_a_restarted_node(run: Evidence) -> bool:
    """A view opens with the log of a node that was restarted, which was better than the others'."""
    back = {life(row) for row in run.kinds["recover"]}
    opened = {(row.k0, row.k1) for row in run.kinds["open"]}
    for offers in _offers(run).values():
        best = max(sent.message.place for sent in offers)
        holders = {_sender(run, sent) for sent in offers if sent.message.place == best}
        ring = offers[0].view
        assert ring is not None
        adopted = len(offers) > len(holders) and holders <= back and _first_views(run, holders)
        if adopted and (ring.seq, run.number(ring.rep)) in opened:
            return True
    return False


def _first_views(run: Evidence, lives: set[Life]) -> bool:
    """Whether none of these lives has opened a log before, as far as one view of theirs tells."""
    counts: dict[Life, int] = defaultdict(int)
    for row in run.kinds["open"]:
        counts[life(row)] += 1
    return any(counts[who] <= 1 for who in lives)


def _offers(run: Evidence) -> dict[object, list[Sent]]:
    """By view: the offers, one of each sender."""
    found: dict[object, dict[NodeId, Sent]] = defaultdict(dict)
    for sent in run.sent("OFFER"):
        found[sent.view].setdefault(sent.frame.sender, sent)
    return {view: list(by_sender.values()) for view, by_sender in found.items()}


def _sender(run: Evidence, sent: Sent) -> Life:
    return run.number(sent.frame.sender), sent.frame.incarnation


def opened_while_one_fills(run: Evidence) -> bool:
    """A view is open while another member still fetches what it lacks."""
    return any(
        event.verb == "log"
        and event.what is not None
        and (event.what.state, event.what.condition) == ("open", "filling")
        for event in run.of_logs
    )


def installed_and_never_opened(run: Evidence) -> bool:
    """A primary view is installed and never opens, and another one opens later."""
    opened = {(row.k0, row.k1): when(row) for row in run.kinds["open"]}
    last = max(opened.values(), default=0)
    return any(
        row.primary and (row.c_seq, row.c_rep) not in opened and when(row) < last
        for row in run.regular
    )


def packet_before_ready(run: Evidence) -> bool:
    """A log packet tells a member that the view is open, before it knows that others are ready."""
    for row in run.kinds["open"]:
        cause = run.cause(row)
        if cause is not None and cause.kind == "arrive" and cause.tag not in ("READY", "OFFER"):
            return True
    return False


# Votes


def attempt_blocks(run: Evidence) -> bool:
    """A view is not primary since its members cannot know how an attempt ended."""
    return any(
        not ruling.voters and rule([replace(e, attempts=()) for e in entries]).voters
        for entries, ruling in _rulings(run)
    )


def attempt_settled_by_a_majority(run: Evidence) -> bool:
    """A majority of the voters of an attempt in doubt settle it."""
    return any(2 * here > of for here, of in _settled(run))


def attempt_settled_by_half(run: Evidence) -> bool:
    """Exactly half of the voters of an attempt in doubt settle it."""
    return any(2 * here == of for here, of in _settled(run))


def _settled(run: Evidence) -> Iterator[tuple[int, int]]:
    """Of attempts that did not block a primary view: how many voters were there, of how many."""
    for entries, ruling in _rulings(run):
        if not ruling.voters:
            continue
        last = max((e.last.id for e in entries if e.last is not None), default=None)
        able = {e.node for e in entries if e.able}
        for attempt in {a for e in entries for a in e.attempts}:
            if last is None or attempt.id > last:
                yield len(able.intersection(attempt.voters)), len(attempt.voters)


def _rulings(run: Evidence) -> Iterator[tuple[Sequence[CommitEntry], Ruling]]:
    """What was decided about each ring that was being formed, and on what."""
    seen: set[object] = set()
    for sent in run.sent("COMMIT"):
        message = sent.message
        if message.index == len(message.entries) and message.ring not in seen:
            seen.add(message.ring)
            yield message.entries, rule(message.entries)


def attempts_merged(run: Evidence) -> bool:
    """A node has two attempts with the same voters, and remembers the newer one."""
    held: dict[NodeId, dict[tuple[NodeId, ...], object]] = defaultdict(dict)
    for sent in run.sent("COMMIT"):
        for entry in sent.message.entries:
            known = held[entry.node]
            now = {attempt.voters: attempt.id for attempt in entry.attempts}
            if any(known.get(voters, ring) != ring for voters, ring in now.items()):
                return True
            held[entry.node] = now
    return False


def voters_shrink(run: Evidence) -> bool:
    """A view opens with fewer voters than the one before."""
    return any(len(after) < len(before) for before, after, _ in _successions(run))


def voters_stay_at_three(run: Evidence) -> bool:
    """A view opens with two members and the three voters of the view before."""
    return any(
        len(before) == len(after) == 3 and set(before) == set(after) and len(present) == 2
        for before, after, present in _successions(run)
    )


def voters_grow(run: Evidence) -> bool:
    """A view opens with more voters than the one before."""
    return any(len(after) > len(before) for before, after, _ in _successions(run))


def _successions(
    run: Evidence,
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    """Voters of an open view, those of the next one, and the members of that."""
    opened: dict[tuple[int, int], Row] = {}
    for row in run.kinds["open"]:
        assert row.k0 is not None
        assert row.k1 is not None
        opened.setdefault((row.k0, row.k1), row)
    present = {(row.c_seq, row.c_rep): members(row) for row in run.regular}
    views = sorted(opened)
    for before, after in pairwise(views):
        yield members(opened[before]), members(opened[after]), present.get(after, ())


def founding_repeated(run: Evidence) -> bool:
    """The founders found the group again, since nobody knows that the first view was opened."""
    return any(
        ruling.founding and any(entry.attempts for entry in entries)
        for entries, ruling in _rulings(run)
    )


# Disks


def lost_disk_votes_again(run: Evidence) -> bool:
    """A node loses its disk, is filled, and is a voter once more."""
    lost = {who: when(fault) for who, fault in _lost(run)}
    return any(
        row.proc in lost and lost[row.proc] < when(row) and row.proc in members(row)
        for row in run.kinds["open"]
    )


def not_able_after_a_power_cut(run: Evidence) -> bool:
    """A node is not able after a power cut, since it did not sync all that it acknowledged."""
    lives = {(row.proc, row.inc + 1) for row in run.kinds["crash"] if row.tag == "power"}
    return any(
        event.life in lives and event.verb == "log" and event.what.condition == "not able"
        for event in run.of_logs
        if event.what is not None
    )


def torn_tail_cut(run: Evidence) -> bool:
    """A node starts and finds the last record of its journal torn."""
    return any((event.verb, event.what) == ("found", "torn") for event in run.of_logs)


def rot_found_and_fetched(run: Evidence) -> bool:
    """A node starts and finds a record damaged, and has caught up later."""
    return _after(run, "found", "damaged")


def _after(run: Evidence, verb: str, what: object) -> bool:
    """Whether a node has caught up in the life in which this happened."""
    lives = {event.life: event.time_ns for event in run.of_logs if event[2:] == (verb, what)}
    return any(life(row) in lives and lives[life(row)] <= row.t_ns for row in run.kinds["caught"])


def behind_and_back(run: Evidence) -> bool:
    """A disk cannot keep up, so its node drops what it should store, and fetches it later."""
    behind: set[Life] = set()
    for event in run.of_logs:
        if event.verb == "log" and event.what is not None:
            if event.what.condition == "behind":
                behind.add(event.life)
            elif event.what.condition == "able" and event.life in behind:
                return True
    return False


# Catching up


def donor_changed(run: Evidence) -> bool:
    """A learner asks one donor, and then another in the same view."""
    asked: dict[tuple[Life, object], set[NodeId | None]] = defaultdict(set)
    for sent in run.sent("FETCH"):
        asked[_sender(run, sent), sent.view].add(sent.frame.to)
    return any(len(donors) > 1 for donors in asked.values())


def cut_answered(run: Evidence) -> bool:
    """A donor answers that the learner's log is none of its own."""
    return any(run.sent("CUT"))


def snapshot_installed(run: Evidence) -> bool:
    """A node is so far behind that it is given a snapshot."""
    return bool(_given_a_state(run))


def _given_a_state(run: Evidence) -> set[Life]:
    """Lives that were given the state of an application, and not only the end of a log."""
    return {life(row) for row in run.kinds["restore"] if row.digest is not None}


def begun_in_the_middle(run: Evidence) -> bool:
    """A node without an application's state begins where the log of its donor begins."""
    return not _given_a_state(run).issuperset(map(life, run.kinds["restore"]))


def _lost(run: Evidence) -> Iterator[tuple[int, Row]]:
    """Nodes that were started with an empty disk."""
    for fault, arguments in run.faults():
        if fault.tag == "restart" and arguments.get("storage") == "lost":
            yield run.number(arguments["node"]), fault


def window_joined(run: Evidence) -> bool:
    """A learner has caught up with entries that were delivered while it was filled."""
    base: dict[tuple[int | None, int | None], int] = {}
    for row in run.kinds["open"]:
        assert row.idx is not None
        base[row.k0, row.k1] = row.idx
    filling = {
        event.life
        for event in run.of_logs
        if event.verb == "log" and event.what is not None and event.what.condition == "filling"
    }
    return any(
        life(row) in filling and (row.idx or 0) > base.get((row.c_seq, row.c_rep), row.idx or 0)
        for row in run.kinds["caught"]
    )


# Clients


def duplicate_dropped(run: Evidence) -> bool:
    """A client repeats a message through another node, and both are told one index."""
    told: dict[tuple[int, int], set[int]] = defaultdict(set)
    for event in run.of_logs:
        if event.verb == "appended" and event.what.count and not event.what.forgotten:
            told[event.what.session, event.what.number].add(event.life[0])
    return any(len(nodes) > 1 for nodes in told.values())


def session_forgotten(run: Evidence) -> bool:
    """A client appends in a session that the log has forgotten, and is told so."""
    return any(event.verb == "appended" and event.what.forgotten for event in run.of_logs)


def read_that_waited(run: Evidence) -> bool:
    """A read waits until what it is as of is committed here."""
    heard = {(life(row), row.t_ns) for row in run.kinds["arrive"] if row.tag == "REPLY"}
    asked = {_sender(run, sent) for sent in run.sent("PROBE")}
    return any(
        life(row) in asked and (life(row), row.t_ns) not in heard and row.t_ns > call.t_ns
        for call, row in _reads(run)
    )


def read_interrupted(run: Evidence) -> bool:
    """A view changes after a read was begun in it, which is answered in another one."""
    opened = _opened_first(run)
    return any(
        opened.get(life(call), when(row)) < when(call) < when(change) < when(row)
        for call, row in _reads(run)
        for change in run.regular
        if life(change) == life(row)
    )


def _opened_first(run: Evidence) -> dict[Life, int]:
    """When each life first found a view open."""
    first: dict[Life, int] = {}
    for row in run.kinds["open"]:
        first.setdefault(life(row), when(row))
    return first


def _reads(run: Evidence) -> Iterator[tuple[Row, Row]]:
    """Reads that were to be fresh: how they began, and their replies."""
    begun = {(life(row), row.lseq): row for row in run.kinds["invoke"] if row.level is None}
    for row in run.kinds["reply"]:
        call = begun.get((life(row), row.cause or 0))
        if call is not None:
            yield call, row


def stale_read_in_a_minority(run: Evidence) -> bool:
    """A node whose view is not primary answers a read that may be old."""
    return any(event.verb == "reads" and event.what.state == "closed" for event in run.of_logs)


def append_that_waited(run: Evidence) -> bool:
    """A message is appended in a view that is not primary, and gets its index in a later one."""
    primary: dict[Life, bool] = {}
    waiting: set[tuple[int | None, int | None, int | None]] = set()
    rows = (*run.regular, *run.kinds["append"], *run.kinds["entry"])
    for row in sorted(rows, key=when):
        if row.kind == "install":
            primary[life(row)] = bool(row.primary)
        elif row.kind == "append":
            if not primary.get(life(row), False):
                waiting.add((row.m_src, row.m_inc, row.m_seq))
        elif (row.m_src, row.m_inc, row.m_seq) in waiting:
            return True
    return False


def generation_begun(run: Evidence) -> bool:
    """A view opens with a log that an operator had recovered, at two nodes or more."""
    begun = [event.time_ns for event in run.of_logs if event.verb == "begins"]
    opened: dict[object, set[int]] = defaultdict(set)
    for row in run.kinds["open"]:
        if begun and row.t_ns > begun[0]:
            opened[row.k0, row.k1].add(row.proc)
    return any(len(nodes) > 1 for nodes in opened.values())


def fork_refused(run: Evidence) -> bool:
    """A node stops because the log that others recovered lacks what it knows to be committed."""
    return any(event.verb == "forks" for event in run.of_logs)


WITH_A_LOG = (
    committed_without_its_sender,
    tail_cut,
    tail_kept,
    adopted_from_a_restarted_node,
    opened_while_one_fills,
    installed_and_never_opened,
    packet_before_ready,
    attempt_blocks,
    attempt_settled_by_a_majority,
    attempt_settled_by_half,
    attempts_merged,
    voters_shrink,
    voters_stay_at_three,
    voters_grow,
    founding_repeated,
    lost_disk_votes_again,
    not_able_after_a_power_cut,
    torn_tail_cut,
    rot_found_and_fetched,
    behind_and_back,
    donor_changed,
    cut_answered,
    snapshot_installed,
    begun_in_the_middle,
    window_joined,
    duplicate_dropped,
    session_forgotten,
    read_that_waited,
    read_interrupted,
    stale_read_in_a_minority,
    append_that_waited,
    generation_begun,
    fork_refused,
)
