"""Goals of views, whatever engine runs in them: how rings form, fail, part and meet again."""

from collections import defaultdict
from collections.abc import Iterator

from roundelay.core.ids import NodeId, Service
from roundelay.membership.messages import FIRST_TAG
from roundelay.sim.coverage.evidence import (
    Evidence,
    Life,
    Message,
    life,
    members,
    message,
    reason,
    view,
    when,
)
from roundelay.trace.schema import REGULAR, TRANSITIONAL, Row

# How an old view ends


def transitional_delivery(run: Evidence) -> bool:
    """A message is delivered in a transitional view."""
    return any(row.c_kind == TRANSITIONAL for row in run.kinds["deliver"])


def safe_across_a_crash(run: Evidence) -> bool:
    """A safe message is sent, a member crashes, and a transitional view delivers the message."""
    sent = {message(row): row for row in run.kinds["originate"] if row.svc == Service.SAFE}
    late = [row for row in run.kinds["deliver"] if row.c_kind == TRANSITIONAL]
    return any(
        when(sent[message(row)]) < when(crash) < when(row)
        and view(crash) == view(sent[message(row)])
        for row in late
        if message(row) in sent
        for crash in run.kinds["crash"]
    )


def discarded_behind_a_gap(run: Evidence) -> bool:
    """A message was received, and is discarded for what is missing before it."""
    received: dict[Life, set[Message]] = defaultdict(set)
    delivered: dict[Life, set[Message]] = defaultdict(set)
    rows = (*run.kinds["receive"], *run.kinds["deliver"], *run.regular)
    for row in sorted(rows, key=when):
        if row.kind == "install":
            if received.pop(life(row), set()) - delivered[life(row)]:
                return True
        else:
            (received if row.kind == "receive" else delivered)[life(row)].add(message(row))
    return False


def held_by_one_survivor(run: Evidence) -> bool:
    """Of the members that stay, one alone has a message of another; the exchange spreads it."""
    direct: dict[tuple[Message, object], set[int]] = defaultdict(set)
    exchanged: list[Row] = []
    for row in run.kinds["receive"]:
        cause = run.cause(row)
        if cause is not None and cause.tag == "RITEM":
            exchanged.append(row)
        else:
            direct[message(row), view(row)].add(row.proc)
    return any(
        row.m_src not in stay and len(direct[message(row), view(row)].intersection(stay)) == 1
        for row in exchanged
        for stay in _moved_with(run, row)
    )


def _moved_with(run: Evidence, row: Row) -> Iterator[tuple[int, ...]]:
    """Members of the transitional view, if it comes to one, that ends the view of a row."""
    for install in run.transitional:
        if life(install) == life(row) and install.prev_c == (*view(row), REGULAR):
            yield members(install)


def piece_left_over(run: Evidence) -> bool:
    """A view ends in the middle of a large message; the pieces that came are dropped."""
    whole = {(d.life, d.ordered, d.span[:3]) for d in run.deliveries if d.span.count}
    ended = {(life(row), row.prev_c) for row in run.transitional}
    return any(
        (d.life, (d.ordered.seq, run.number(d.ordered.rep), REGULAR)) in ended
        for d in run.deliveries
        if not d.span.count and d.ordered and (d.life, d.ordered, d.span[:3]) not in whole
    )


def large_message_again(run: Evidence) -> bool:
    """A large message that a view change interrupted is sent again from its first piece on."""
    views: dict[object, set[object]] = defaultdict(set)
    for d in run.deliveries:
        if not d.span.count and run.nodes[d.life[0]] == d.span.node:
            views[d.span[:3]].add(d.ordered)
    return any(len(ordered) > 1 for ordered in views.values())


# How a new view is formed


def commit_lost_filling(run: Evidence) -> bool:
    """A Commit token is lost in its first rotation."""
    return any(sent.message.index < len(sent.message.entries) for sent in run.lost("COMMIT"))


def commit_lost_showing(run: Evidence) -> bool:
    """A Commit token is lost in its second rotation."""
    return any(sent.message.index == len(sent.message.entries) for sent in run.lost("COMMIT"))


def forming_token_lost(run: Evidence) -> bool:
    """The token of a ring that is being formed is lost."""
    return any(run.lost("RTOKEN"))


def attempt_stuck(run: Evidence) -> bool:
    """An attempt to form a ring gets stuck, and another follows."""
    stuck = "the ring being formed got stuck"
    return any(reason(row) == stuck for row in run.kinds["suspect"])


def obligation(run: Evidence) -> bool:
    """A node leaves a view bound to deliver messages of a member that is no longer with it."""
    return any(
        run.obligations.get((life(row), row.prev_c), frozenset()).difference(members(row))
        for row in run.transitional
        if row.prev_c is not None
    )


def forced_failure(run: Evidence) -> bool:
    """A membership failed so often that its largest member is given up."""
    fails: dict[Life, set[NodeId]] = defaultdict(set)
    for row in run.joins:
        now = set(run.frame(row).message.fails)
        cause = run.cause(row)
        if cause is not None and cause.tag == "ring_loss" and now > fails[life(row)]:
            return True
        fails[life(row)] = now
    return False


def expelled_for_not_receiving(run: Evidence) -> bool:
    """A member is heard and does not receive what is sent to it; the others go on without it."""
    deaf = ("it fails to receive", "nothing is acknowledged")
    accused = [row for row in run.kinds["suspect"] if reason(row) in deaf]
    return any(
        life(after) == life(row)
        and view(before) == view(row)
        and not set(members(row)).intersection(members(after))
        for row in accused
        for before, after in run.steps
    )


def left_alone(run: Evidence) -> bool:
    """A node that was expelled twice is taken back only after a while."""
    return any(row.tag.startswith("pause ") for row in run.kinds["expire"])


def idle_rings_meet(run: Evidence) -> bool:
    """Two rings with nothing to say find each other, because one shows that it is there."""
    for row in run.joins:
        cause = run.cause(row)
        if cause is None or cause.tag != "MERGE":
            continue
        for install in run.regular:
            if life(install) == life(row) and when(install) > when(row):
                if cause.peer in members(install):
                    return True
                break
    return False


def three_rings_meet(run: Evidence) -> bool:
    """Members of three views or more, none of them just started, enter one view."""
    sources: dict[object, set[object]] = defaultdict(set)
    for before, after in run.steps:
        if before.prev_c is not None:
            sources[view(after)].add(view(before))
    return any(len(found) >= 3 for found in sources.values())


def same_members_again(run: Evidence) -> bool:
    """A view of several is followed by another with the same members."""
    return any(
        len(members(after)) > 1 and members(before) == members(after) for before, after in run.steps
    )


def view_of_one(run: Evidence) -> bool:
    """In a group of several, a node forms a view of its own."""
    return len(run.nodes) > 1 and any(len(members(after)) == 1 for _, after in run.steps)


def early_frame(run: Evidence) -> bool:
    """A frame arrives of a view that the receiver is about to install."""
    installed = {(life(row), row.c_seq, run.nodes[row.c_rep or 0]): row for row in run.regular}
    for row in run.kinds["arrive"]:
        sent = run.frame(row)
        if sent.view is None or sent.frame.frame.tag >= FIRST_TAG:
            continue
        install = installed.get((life(row), *sent.view))
        if install is not None and when(row) < when(install):
            return True
    return False


def installed_answer(run: Evidence) -> bool:
    """A node that has installed already answers a token that is still being sent again."""
    return any(row.tag == "INSTALLED" for row in run.kinds["arrive"])


# Which part is primary


def primary_regained(run: Evidence) -> bool:
    """A node leaves the primary component for another, and comes back to it."""
    stage: dict[Life, int] = defaultdict(int)
    for row in run.regular:
        # Counts the changes: out of the first primary view, and into the next.
        stage[life(row)] += bool(row.primary) is (stage[life(row)] % 2 == 0)
    return any(changes >= 3 for changes in stage.values())


def primary_in_doubt(run: Evidence) -> bool:
    """A node cannot know whether a primary view that it helped to form was installed."""
    return any(entry.attempts for sent in run.sent("COMMIT") for entry in sent.message.entries)


# Crashes, pauses and cuts


def quick_restart(run: Evidence) -> bool:
    """A node restarts before any other member of its view has noticed that it was gone."""
    crashes = {life(row): row for row in run.kinds["crash"]}
    for row in run.kinds["recover"]:
        crash = crashes[row.proc, row.inc - 1]
        entered = [r for r in run.regular if view(r) == view(crash) and r.prev_c is not None]
        peers = [r for r in entered if r.proc != row.proc and when(r) < when(crash)]
        if peers and not any(_stirred(run, peer, until=when(row)) for peer in peers):
            return True
    return False


def _stirred(run: Evidence, install: Row, *, until: int) -> bool:
    """Whether a node did anything by then that ends the view it installed."""
    signs = (*run.joins, *run.kinds["crash"], *run.kinds["suspect"])
    return any(life(row) == life(install) and when(install) < when(row) < until for row in signs)


def storage_lost(run: Evidence) -> bool:
    """A node restarts without its stable storage."""
    return any(arguments.get("storage") == "lost" for _, arguments in run.faults())


def storage_torn(run: Evidence) -> bool:
    """A node restarts with the beginning of what it last stored."""
    return any(arguments.get("storage") == "torn" for _, arguments in run.faults())


def paused_and_back(run: Evidence) -> bool:
    """A node is paused until the others go on without it, and joins them again."""
    for node, paused, woken in _pauses(run):
        without = {
            after.proc
            for before, after in run.steps
            if when(paused) < when(after) < when(woken)
            and node in members(before)
            and node not in members(after)
        }
        for row in run.regular:
            if row.proc == node and when(row) > when(woken) and without.intersection(members(row)):
                return True
    return False


def _pauses(run: Evidence) -> Iterator[tuple[int, Row, Row]]:
    """Which node was paused, from where to where in the run."""
    paused: dict[int, Row] = {}
    for fault, arguments in run.faults():
        if fault.tag == "pause":
            paused.setdefault(run.number(arguments["node"]), fault)
        woken = [arguments["node"]] if fault.tag == "resume" else run.nodes
        if fault.tag in ("resume", "heal"):
            for node in map(run.number, woken):
                if node in paused:
                    yield node, paused.pop(node), fault


def parted_by_a_one_way_cut(run: Evidence) -> bool:
    """One node hears another and is not heard by it, and they go on in different views."""
    cuts: set[tuple[int, int]] = set()
    down: set[int] = set()
    entered = {when(after): before for before, after in run.steps}
    arguments = {when(fault): given for fault, given in run.faults()}
    changes = (*run.kinds["fault"], *run.kinds["crash"], *run.kinds["recover"], *run.regular)
    for row in sorted(changes, key=when):
        if row.kind == "fault":
            cuts = _cuts(run, cuts, row, arguments[when(row)])
        elif row.kind != "install":
            (down.add if row.kind == "crash" else down.discard)(row.proc)
        elif (before := entered.get(when(row))) is not None:
            gone = set(members(before)).difference(members(row), down)
            if any(((node, row.proc) in cuts) != ((row.proc, node) in cuts) for node in gone):
                return True
    return False


def _cuts(
    run: Evidence, cuts: set[tuple[int, int]], fault: Row, arguments: dict[str, list[str]]
) -> set[tuple[int, int]]:
    """Links that carry nothing, after a fault; partitions cut both ways and do not count."""
    match fault.tag:
        case "cut":
            pairs = (link.split(">") for link in arguments["links"])
            return cuts | {(run.number(a), run.number(b)) for a, b in pairs}
        case "partition" | "merge" | "heal":
            return set()
        case _:
            return cuts


IN_VIEWS = (
    transitional_delivery,
    safe_across_a_crash,
    discarded_behind_a_gap,
    held_by_one_survivor,
    piece_left_over,
    large_message_again,
    commit_lost_filling,
    commit_lost_showing,
    forming_token_lost,
    attempt_stuck,
    obligation,
    forced_failure,
    expelled_for_not_receiving,
    left_alone,
    idle_rings_meet,
    three_rings_meet,
    same_members_again,
    view_of_one,
    early_frame,
    installed_answer,
    primary_regained,
    primary_in_doubt,
    quick_restart,
    storage_lost,
    storage_torn,
    paused_and_back,
    parted_by_a_one_way_cut,
)
