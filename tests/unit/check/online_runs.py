"""Runs for the online checker: random ones, right and wrong, and long ones that are right.

Brute force says what the random ones break.
"""

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

from roundelay.core.effects import Kind
from roundelay.core.ids import Service
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import REGULAR, TRANSITIONAL, Row, expand

from .trial import recounted

Columns = dict[str, Any]

FLAWS = (0.0, 0.02, 0.1, 0.3)
"""How often something is done wrong."""


class Author:
    """Writes a random run of a group of three: mostly what a good protocol would do."""

    def __init__(self, rng: random.Random, *, views: bool) -> None:
        self.rng = rng
        self.nodes = 3
        self.rows: list[Row] = []
        self.flaw = rng.choice(FLAWS)
        self.primaries = rng.randint(0, 1000)
        self.untrue = rng.random() < 0.15
        """Whether the trace itself may be wrong."""
        self.keyed = rng.random() < 0.7
        self.partial = rng.random() < 0.3
        self.longest = rng.choice((1, 1, 3))
        self.lseq: Counter[tuple[int, int]] = Counter()
        self.inc = [0] * self.nodes
        self.sent: Counter[tuple[int, int]] = Counter()
        self.view: list[tuple[int, int] | None] = [None] * self.nodes
        self.regular: list[tuple[int, int]] = [(0, 0)] * self.nodes
        self.order: dict[tuple[int, int], list[Row]] = {}
        """By regular view: what was sent in it, in the order all should deliver it."""
        self.reached: Counter[tuple[int, tuple[int, int]]] = Counter()
        self.down: set[int] = set()
        if views:
            for node in range(self.nodes):
                self.install(node, 1, REGULAR)
        actions = [self.send, self.deliver, self.deliver, self.deliver, self.receive, self.receive]
        actions += [self.claim, self.assign, self.token]
        rare = [self.crash, self.recover, self.withdraw]
        rare += [self.move, self.move, self.move, self.freeze] * views
        for _ in range(rng.randint(5, 60)):
            rng.choice(actions if rng.random() < 0.9 else rare)()

    def wrong(self) -> bool:
        return self.rng.random() < self.flaw

    def write(self, kind: str, proc: int, **columns: Any) -> Row:
        writer = proc, self.inc[proc]
        view = self.view[proc]
        if view is not None:
            columns = {"c_seq": view[0], "c_rep": 0, "c_kind": view[1], **columns}
        row = Row(kind, proc, self.inc[proc], self.lseq[writer], gseq=len(self.rows), **columns)
        self.lseq[writer] += 1
        self.rows.append(row)
        return row

    def someone(self) -> int:
        up = [node for node in range(self.nodes) if node not in self.down or self.untrue]
        if not up:
            self.recover()
            return self.someone()
        return self.rng.choice(up)

    def install(self, node: int, seq: int, kind: int) -> None:
        members = tuple(range(self.nodes))
        if self.wrong():
            members = tuple(self.rng.sample(members, 2))
        self.view[node] = seq, kind
        self.write(Kind.INSTALL, node, members=members, **self.primacy(seq, kind))
        if kind == REGULAR:
            self.regular[node] = (seq, 0)

    def primacy(self, seq: int, kind: int) -> Columns:
        """Whether a view is primary, and its voters; now and then nodes disagree on that."""
        rng = random.Random(seq + self.primaries)
        if kind != REGULAR or rng.random() < 0.3:
            return {"primary": self.wrong()}
        voters = rng.choice((None, (0,), (1,), (2,), (0, 1), (0, 1, 2)))
        return {"primary": not self.wrong(), "voters": voters}

    def freeze(self) -> None:
        """Often for the view that comes next, as if a node always heard of it."""
        node = self.someone()
        seq = (self.view[node] or (0, REGULAR))[0]
        self.write(Kind.FREEZE, node, k0=seq + self.rng.randint(1, 3), k1=0)

    def move(self) -> None:
        node = self.someone()
        view = self.view[node] or (0, TRANSITIONAL)
        seq = max(view[0], self.regular[node][0]) + (0 if self.wrong() else 1)
        self.install(node, seq, REGULAR if view[1] == TRANSITIONAL else TRANSITIONAL)

    def crash(self) -> None:
        node = self.someone()
        if node not in self.down:
            self.write(Kind.CRASH, node)
            self.down.add(node)

    def recover(self) -> None:
        node = self.rng.choice(sorted(self.down) or [0])
        if node in self.down or self.untrue:
            self.inc[node] += 1
            self.view[node] = None
            self.down.discard(node)
            self.write(Kind.RECOVER, node, level=self.rng.choice((None, 0, 1, 1)))

    def send(self) -> None:
        node = self.someone()
        sender = node, self.inc[node]
        count = self.rng.randint(1, self.longest)
        dst = None
        if self.partial and self.rng.random() < 0.7:
            dst = tuple(sorted(self.rng.sample(range(self.nodes), 2)))
        first = self.sent[sender]
        if first and self.untrue and self.wrong():
            first -= 1
        row = self.write(
            Kind.ORIGINATE,
            node,
            m_src=node,
            m_inc=self.inc[node],
            m_seq=first,
            count=count,
            dst=dst,
            svc=self.rng.choice((Service.AGREED, Service.AGREED, Service.SAFE)),
            digest=self.rng.randint(0, 9),
        )
        self.sent[sender] = max(self.sent[sender], first + count)
        self.order.setdefault(self.regular[node], []).append(row)

    def any_sent(self) -> Row | None:
        sent = [row for rows in self.order.values() for row in rows]
        return self.rng.choice(sent) if sent else None

    def about(self, row: Row) -> Columns:
        """Columns for a row about what was sent, or now and then about a part of it or more."""
        first, count = row.m_seq or 0, row.count
        if self.wrong():
            first += self.rng.randrange(count)
            count = self.rng.randint(1, (row.m_seq or 0) + count - first)
            if self.rng.random() < (0.3 if self.untrue else 0.02):
                count += 1
        return {"m_src": row.m_src, "m_inc": row.m_inc, "m_seq": first, "count": count}

    def receive(self) -> None:
        if (row := self.any_sent()) is not None:
            self.write(Kind.RECEIVE, self.someone(), **self.about(row))

    def deliver(self) -> None:
        node = self.someone()
        view = self.regular[node]
        order = self.order.get(view, [])
        place = self.reached[node, view]
        if self.wrong() and order:
            row = self.rng.choice(order) if self.rng.random() < 0.8 else self.any_sent()
        else:
            row = order[place] if place < len(order) else None
            self.reached[node, view] += row is not None
        if row is None or (row.dst is not None and node not in row.dst and not self.wrong()):
            return
        columns = self.about(row)
        if self.keyed and not self.wrong():
            number = place if row not in order else order.index(row)
            columns |= dict(zip(("k0", "k1", "k2", "k3"), (*view, number, 0), strict=True))
        if (columns["m_seq"], columns["count"]) == (row.m_seq, row.count):
            columns["digest"] = (row.digest or 0) + self.wrong()
        self.write(Kind.DELIVER, node, svc=row.svc, dst=row.dst, **columns)

    def claim(self) -> None:
        if (row := self.any_sent()) is not None and (self.wrong() or self.rng.random() < 0.2):
            level = self.rng.choice((1, 2, None))
            self.write(Kind.STABLE, self.someone(), level=level, **self.about(row))

    def assign(self) -> None:
        row = self.any_sent()
        if row is not None and self.rng.random() < 0.5:
            view = (row.c_seq or 0, 0)
            number = (
                self.order.get(view, [row]).index(row) if row in self.order.get(view, []) else 9
            )
            if self.wrong():
                number += 1
            columns = dict(zip(("k0", "k1", "k2", "k3"), (*view, number, 0), strict=True))
            assigner = row.proc if not self.wrong() else self.someone()
            if assigner not in self.down:
                self.write(Kind.ORDER, assigner, **self.about(row), **columns)

    def token(self) -> None:
        node = self.someone()
        if self.rng.random() < 0.5:
            self.write(Kind.TOKEN, node, tag="acquire")
            if not self.wrong():
                self.write(Kind.TOKEN, node, tag="release")

    def withdraw(self) -> None:
        row = self.any_sent()
        if row is None or row.proc in self.down or row.inc != self.inc[row.proc]:
            return
        node = row.proc
        columns = {"m_src": row.m_src, "m_inc": row.m_inc, "m_seq": row.m_seq, "count": row.count}
        self.write(Kind.WITHDRAW, node, **columns)
        if self.regular[node] != (row.c_seq or 0, 0) or self.untrue:
            again = self.write(
                Kind.ORIGINATE, node, **columns, dst=row.dst, svc=row.svc, digest=row.digest
            )
            self.order.setdefault(self.regular[node], []).append(again)


def random_run(seed: int, *, views: bool) -> tuple[Manifest, list[Row]]:
    author = Author(random.Random(seed), views=views)
    manifest = Manifest(
        run="random",
        nodes=("p", "q", "r"),
        resilience=1,
        mode="views" if views else "static",
    )
    return recounted(manifest, author.rows), author.rows


def deliveries(lines: list[list[int]], keys: list[int] | None, rng: random.Random) -> list[Row]:
    """Everybody sends nothing but node 0; each line is what a node delivers, in random turns."""
    count = 1 + max((item for line in lines for item in line), default=0)
    rows = [Row(Kind.ORIGINATE, 0, 0, i, gseq=i, m_src=0, m_inc=0, m_seq=i) for i in range(count)]
    lseq = [count] + [0] * (len(lines) - 1)
    left = [list(line) for line in lines]
    while any(left):
        proc = rng.choice([proc for proc, line in enumerate(left) if line])
        item = left[proc].pop(0)
        columns: Columns = {"m_src": 0, "m_inc": 0, "m_seq": item}
        if keys is not None:
            columns |= {"k0": 0, "k1": 0, "k2": keys[item], "k3": 0}
        rows.append(Row(Kind.DELIVER, proc, 0, lseq[proc], gseq=len(rows), **columns))
        lseq[proc] += 1
    return rows


def agreed_run(messages: int, lags: tuple[int, ...]) -> Iterator[Row]:
    """Nodes send in turn, and deliver in one order with keys; each lags behind by so much."""
    nodes = len(lags)
    lseq: Counter[int] = Counter()
    gseq = itertools.count()

    def row(kind: str, proc: int, number: int, **more: Any) -> Row:
        lseq[proc] += 1
        more |= {"m_src": number % nodes, "m_inc": 0, "m_seq": number // nodes, "svc": 2}
        return Row(kind, proc, 0, lseq[proc] - 1, gseq=next(gseq), **more)

    for number in range(messages + max(lags)):
        if number < messages:
            sender = number % nodes
            yield row(Kind.ORIGINATE, sender, number, digest=number)
            for proc in range(nodes):
                if proc != sender:
                    yield row(Kind.RECEIVE, proc, number)
        for proc, lag in enumerate(lags):
            if 0 <= number - lag < messages:
                key = {"k0": 0, "k1": 0, "k2": number - lag, "k3": 0}
                yield row(Kind.DELIVER, proc, number - lag, digest=number - lag, **key)


Broken = set[str]


def brute_force(rows: list[Row], resilience: int) -> Broken:
    """Which properties of deliveries break, by their definitions and with no care for cost."""
    broken: Broken = set()
    static = not any(row.kind == Kind.INSTALL for row in rows)
    place: dict[int, tuple[int, int] | None] = {}
    regular: dict[int, tuple[int, int] | None] = {}
    histories: dict[int, list[Row]] = {proc: [] for proc in range(3)}
    in_view: dict[tuple[int, object], list[object]] = {}
    delivered: dict[object, list[tuple[Row, object]]] = {}
    sent: dict[object, Row] = {}
    having: dict[object, set[int]] = {}
    members: dict[tuple[int, int], tuple[int, ...]] = {}
    """As the first install of a view has them; transitional views bind no others."""
    withdrawn = any(row.kind == Kind.WITHDRAW for row in rows)
    for row in expand(rows):
        proc, message = row.proc, (row.m_src, row.m_inc, row.m_seq)
        if row.kind == Kind.INSTALL:
            place[proc] = view = (row.c_seq or 0, row.c_kind or 0)
            members.setdefault(view, row.members or ())
            if row.c_kind == REGULAR:
                regular[proc] = view
        elif row.kind in (Kind.CRASH, Kind.RECOVER):
            place[proc] = regular[proc] = None
        elif row.kind == Kind.ORIGINATE:
            sent[message] = row
        if row.kind in (Kind.ORIGINATE, Kind.RECEIVE, Kind.DELIVER):
            having.setdefault(message, set()).add(proc)
        if row.kind != Kind.DELIVER:
            continue
        if message not in sent:
            broken.add("D1")
        elif (dst := sent[message].dst) is not None and proc not in dst:
            broken.add("D9")
        where = regular.get(proc)
        if not withdrawn and any(other != where for _, other in delivered.get(message, [])):
            broken.add("D3")
        for other, _ in delivered.get(message, []):
            if None not in (_key(other), _key(row)) and _key(other) != _key(row):
                broken.add("O3f")
        for key, other_message in (
            (_key(other), m) for m, others in delivered.items() for other, _ in others
        ):
            if key is not None and key == _key(row) and other_message != message:
                broken.add("O3i")
        if static and len(having[message]) < resilience + 1:
            broken.add("S6")
        delivered.setdefault(message, []).append((row, where))
        history = histories[proc]
        if any(_message(other) == message for other in history):
            broken.add("D2")
            continue
        if any(_message(other)[0] == row.m_src and _message(other) > message for other in history):
            broken.add("O1")
        keys = [_key(other) for other in history if _key(other) is not None]
        if _key(row) is not None and any(key >= _key(row) for key in keys):
            broken.add("O4")
        history.append(row)
        here = place.get(proc)
        guest = here is not None and here[1] == TRANSITIONAL and proc not in members[here]
        if (static or here is not None) and not guest:
            in_view.setdefault((proc, here), []).append(message)
    for stay, other_stay in itertools.combinations(in_view, 2):
        if stay[1] == other_stay[1]:
            pairs = zip(in_view[stay], in_view[other_stay], strict=False)
            if any(a != b for a, b in pairs):
                broken.add("O6")
    if cyclic([[_message(row) for row in history] for history in histories.values()]):
        broken.add("O5")
    return broken


def _message(row: Row) -> tuple[int, int, int]:
    return row.m_src or 0, row.m_inc or 0, row.m_seq or 0


def _key(row: Row) -> Any:
    return None if row.k2 is None else (row.k0, row.k1, row.k2, row.k3)


def cyclic(lines: list[list[Any]]) -> bool:
    """Whether no order of all items agrees with every line, by the closure of what they say."""
    before = {pair for line in lines for pair in itertools.combinations(line, 2)}
    while True:
        more = {(a, d) for a, b in before for c, d in before if b == c} - before
        if not more:
            return any(a == b for a, b in before)
        before |= more
