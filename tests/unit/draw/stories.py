"""Traces worth drawing, made by hand or by a small generator."""

import random
from itertools import count
from typing import Any, TypeAlias

from roundelay.core.effects import Kind
from roundelay.trace import mini
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import REGULAR, TRANSITIONAL, WORLD, Row, frame_key

TOTEM = """
p+V1{p,q,r} q+V1{p,q,r} r+V1{p,q,r} p!a/s q?a r?a p.a=1 q.a=1 r.a=1 q!b q.b=2 r?b r.b=2 p?b p.b=2
r!c q?c p~T2{p} q~T3{q,r} r~T3{q,r} q.c=3 r.c=3 p+V4{p} q+V5{q,r} r+V5{q,r} end{p}{q,r}
"""
"""Totem 7.3, cut to three processes."""

DISAGREEMENT = "p!a q!b p?b q?a r?a r?b p#a=1 q#b=1 p.a=1 r.a=1 q.b=1 p.b=2 r.b=2 q.a=2 end{p,q,r}"
"""q delivers in another order than p and r."""

Told: TypeAlias = tuple[Manifest, list[Row]]


class Scribe:
    """Writes rows as a simulator would."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.rows: list[Row] = []
        self.t_ns = 0
        self.inc = [0] * len(names)
        self._lseq: dict[tuple[int, int], int] = {}
        self._packets = count()

    @property
    def manifest(self) -> Manifest:
        return Manifest(run="story", nodes=self.names, protocol="totem", seed=7)

    def wait(self, ns: int) -> None:
        self.t_ns += ns

    def row(self, kind: str, proc: int, **columns: Any) -> Row:
        inc = self.inc[proc] if proc != WORLD else 0
        lseq = self._lseq.get((proc, inc), 0)
        self._lseq[proc, inc] = lseq + 1
        plain = Row(kind, proc, inc, lseq, gseq=len(self.rows), t_ns=self.t_ns)
        row = plain._replace(**columns)
        self.rows.append(row)
        return row

    def install(self, proc: int, seq: int, members: tuple[int, ...], **more: Any) -> Row:
        kind = TRANSITIONAL if more.pop("transitional", False) else REGULAR
        view = {"c_seq": seq, "c_rep": members[0], "c_kind": kind, "members": members}
        return self.row(Kind.INSTALL, proc, **view, **more)

    def send(self, proc: int, tag: str, peer: int | None = None) -> int:
        pkt = frame_key(proc, self.inc[proc], next(self._packets))
        self.row(Kind.SEND, proc, tag=tag, pkt=pkt, peer=peer, size=120)
        return pkt

    def arrive(self, proc: int, pkt: int, tag: str, peer: int) -> None:
        self.row(Kind.ARRIVE, proc, tag=tag, pkt=pkt, peer=peer, size=120)

    def lose(self, pkt: int, peer: int) -> None:
        self.row(Kind.DROP, WORLD, tag="loss", pkt=pkt, peer=peer)


def lossy(events: int = 200, nodes: int = 7, seed: int = 1) -> Told:
    """A token goes round, its holders broadcast, frames get lost, doubled and late."""
    chance = random.Random(seed)
    scribe = Scribe(*"abcdefgh"[:nodes])
    everyone = tuple(range(nodes))
    for proc in everyone:
        scribe.install(proc, 4, everyone, primary=True)
    pending: list[tuple[int, int, str, int, int | None]] = []
    key = 0
    numbers = [0] * nodes
    known: dict[int, tuple[int, int, int]] = {}
    held = {proc: dict[int, int]() for proc in everyone}
    delivered = [0] * nodes
    holder = 0

    def deliver(proc: int) -> None:
        while delivered[proc] + 1 in held[proc]:
            delivered[proc] += 1
            src, seq, _ = known[delivered[proc]]
            scribe.row(
                Kind.DELIVER, proc, m_src=src, m_inc=0, m_seq=seq, svc=2, k0=4, k1=0,
                k2=delivered[proc], k3=0, c_seq=4, c_rep=0, c_kind=REGULAR, size=64, digest=seq,
            )  # fmt: skip

    def fly(until_ns: int) -> None:
        pending.sort()
        while pending and pending[0][0] <= until_ns:
            at, pkt, tag, proc, order = pending.pop(0)
            scribe.t_ns = max(scribe.t_ns, at)
            scribe.arrive(proc, pkt, tag, pkt >> 48)
            if order is not None:
                src, seq, _ = known[order]
                again = order in held[proc]
                message = {"m_src": src, "m_inc": 0, "m_seq": seq, "pkt": pkt, "peer": src}
                scribe.row(Kind.RECEIVE, proc, **message)
                if not again:
                    held[proc][order] = pkt
                    deliver(proc)

    while len(scribe.rows) < events:
        scribe.row(Kind.TOKEN, holder, tag="acquire")
        for _ in range(chance.randrange(1, 3)):
            key += 1
            message = {"m_src": holder, "m_inc": 0, "m_seq": numbers[holder]}
            known[key] = (holder, numbers[holder], key)
            numbers[holder] += 1
            scribe.row(Kind.ORIGINATE, holder, svc=2, size=64, **message)
            pkt = scribe.send(holder, "MSG")
            held[holder][key] = pkt
            for proc in everyone:
                if proc == holder:
                    continue
                if chance.random() < 0.1:
                    scribe.lose(pkt, proc)
                    continue
                late = 300_000 if chance.random() < 0.05 else 0
                delay = 40_000 + late + chance.randrange(4) * 1_000
                pending.append((scribe.t_ns + delay, pkt, "MSG", proc, key))
                if chance.random() < 0.05:
                    pending.append((scribe.t_ns + delay + 20_000, pkt, "MSG", proc, key))
            deliver(holder)
            scribe.wait(15_000)
        heir = (holder + 1) % nodes
        pkt = scribe.send(holder, "TOKEN", heir)
        scribe.row(Kind.TOKEN, holder, tag="release")
        fly(scribe.t_ns + 60_000)
        if chance.random() < 0.15:
            scribe.lose(pkt, heir)
            scribe.wait(9_000_000)
            fly(scribe.t_ns)
            scribe.row(Kind.EXPIRE, holder, tag="token_retransmission")
            pkt = scribe.send(holder, "TOKEN", heir)
        scribe.wait(60_000)
        fly(scribe.t_ns)
        scribe.arrive(heir, pkt, "TOKEN", holder)
        holder = heir
    return scribe.manifest, scribe.rows[:events]


def partition() -> Told:
    """One node is cut off, another crashes and comes back, all meet again."""
    s = Scribe("ann", "bob", "cyd", "dee")
    a, b, c, d = range(4)
    everyone = (a, b, c, d)
    message = {"m_src": a, "m_inc": 0, "m_seq": 0}

    for proc in everyone:
        s.install(proc, 4, everyone, primary=True)
    s.wait(1_000_000)
    s.row(Kind.SUBMIT, a, svc=3, size=12, **message)
    s.row(Kind.ORIGINATE, a, svc=3, size=12, **message)
    pkt = s.send(a, "MSG")
    s.lose(pkt, d)
    s.wait(80_000)
    for proc in (b, c):
        s.arrive(proc, pkt, "MSG", a)
        s.row(Kind.RECEIVE, proc, pkt=pkt, peer=a, **message)
    s.wait(2_000_000)
    s.row(Kind.FAULT, WORLD, tag="partition", x='{"groups": [["ann", "bob", "cyd"], ["dee"]]}')
    s.wait(200_000_000)
    s.row(Kind.EXPIRE, a, tag="token_loss")
    s.row(Kind.SUSPECT, a, members=(d,))
    pkt = s.send(a, "JOIN")
    s.lose(pkt, d)
    s.wait(70_000)
    s.arrive(b, pkt, "JOIN", a)
    s.arrive(c, pkt, "JOIN", a)
    s.wait(900_000)
    for proc in (a, b, c):
        s.install(proc, 6, (a, b, c), transitional=True)
    s.wait(10_000)
    for proc in (a, b, c):
        key = {"k0": 4, "k1": 0, "k2": 1, "k3": 0}
        s.row(Kind.DELIVER, proc, svc=3, c_seq=6, c_rep=0, c_kind=TRANSITIONAL, **message, **key)
    s.wait(400_000)
    for proc in (a, b, c):
        s.install(proc, 8, (a, b, c), primary=True)
    s.install(d, 6, (d,), transitional=True)
    s.wait(50_000)
    s.install(d, 8, (d,))
    s.wait(3_000_000)
    s.row(Kind.CRASH, c)
    s.wait(30_000_000)
    s.inc[c] = 1
    s.row(Kind.RECOVER, c, k0=8)
    s.wait(1_000_000)
    s.row(Kind.FAULT, WORLD, tag="heal")
    s.wait(40_000_000)
    for proc in (a, b):
        s.install(proc, 10, (a, b), transitional=True)
    s.install(d, 10, (d,), transitional=True)
    s.wait(100_000)
    for proc in everyone:
        s.install(proc, 12, everyone, primary=True)
    s.wait(100_000)
    mine = {"m_src": c, "m_inc": 1, "m_seq": 0, "count": 5}
    s.row(Kind.ORIGINATE, c, svc=2, **mine)
    pkt = s.send(c, "MSG")
    for proc in (a, b, d):
        s.wait(30_000)
        s.arrive(proc, pkt, "MSG", c)
        s.row(Kind.RECEIVE, proc, pkt=pkt, peer=c, **mine)
        s.row(Kind.DELIVER, proc, svc=2, k0=12, k1=0, k2=1, k3=0, **mine)
    s.row(Kind.DELIVER, c, svc=2, k0=12, k1=0, k2=1, k3=0, **mine)
    s.wait(10_000)
    s.row(Kind.STABLE, c, level=1, **mine)
    s.wait(500_000)
    s.row(Kind.END, WORLD, members=everyone)
    return s.manifest, s.rows


def written(text: str) -> Told:
    return mini.parse(text)
