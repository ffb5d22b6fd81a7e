"""The performance claims of [Totem95], section 9, and those of [BabayAmir16] for its faster ring.

Every claim is measured under both readings of what a token hop costs (`runs` says which), so
that it shows which verdicts hang on that assumption. Ratios come first. The paper says neither how
long it measured nor how often. What the faster ring wins is claimed of two networks: latency at a
rate at which the other ring has three quarters of what it can order, and at 1.3 times that rate for
the faster one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from roundelay.experiments.claims import (
    ABOUT,
    NEARLY,
    Accepted,
    Claim,
    Outcome,
    above,
    below,
    judge,
    near,
)
from roundelay.experiments.papers.totem.accelerated import mbit_per_s
from roundelay.experiments.papers.totem.runs import HOPS, SMALL_BYTES, Cell, Latency, Workload
from roundelay.experiments.results import Measures, Result

TOKEN_LOSS_MS = 100.0
WINDOWS = (0, 20)
"""Packets that follow the token: none, and all of a visit."""
LOADS = (400, 625)
"""Messages a second; the second is half of what the Ethernet could carry."""


RATES: Mapping[str, Mapping[str, Any]] = {
    "all": {},
    "one": {"senders": 1},
    "all, as printed": {"flow": "printed"},
    "one, as printed": {"senders": 1, "flow": "printed"},
    "small": {"size_bytes": SMALL_BYTES},
}
"""Runs in which senders are always ready: what sets them apart."""

LATENCIES: Mapping[str, Mapping[str, Any]] = {
    f"{service} {load}": {"rate_per_s": float(load), "service": service}
    for service in ("agreed", "safe")
    for load in LOADS
}
"""Runs with Poisson arrivals."""


@dataclass(frozen=True, slots=True)
class Network:
    """One on which [BabayAmir16] compares the two rings."""

    name: str
    link_bps: int
    rates_per_s: tuple[int, int]
    """Messages over all nodes, at which latency is measured: of the ring of [Totem95], and of the
    accelerated ring."""
    throughput: tuple[float, float]
    """How many times the throughput, at least and at most, by the paper."""
    latency: tuple[float, float]
    """How many times the latency at 1.3 times the rate."""


NETWORKS = (
    Network("1 Gbit/s", 1_000_000_000, (47_000, 61_100), (1.3, 1.3), (0.55, 0.55)),
    Network("10 Gbit/s", 10_000_000_000, (228_000, 296_400), (1.25, 1.4), (0.65, 0.7)),
)


@dataclass(slots=True)
class Results:
    """Under one reading: by run, a figure for each seed."""

    rates: dict[str, list[float]]
    latencies: dict[str, list[Latency]]
    losses: list[float]
    """Means over the tokens lost."""
    reformations: list[Measures]
    """Means over those of a seed."""


ACCELERATED = "[BabayAmir16], abstract"
"""Where the accelerated ring is said to be faster, and by how much."""


def claims_of(results: Sequence[Result]) -> list[Claim]:
    """All of them. ValueError if a run that one of them needs is not there."""
    hops = [(f"hop {hop_ms:g} ms", _results(results, hop_ms)) for hop_ms in HOPS]
    return [
        *(claim(r, hop) for claim in (all_and_one, all_and_one_as_printed) for hop, r in hops),
        *(
            claim(r, hop, load)
            for claim in (waiting, agreed, safe)
            for load in LOADS
            for hop, r in hops
        ),
        *(claim(r, hop) for claim in TIMES for hop, r in hops),
        prior_systems(),
        *(
            replace(claim(net, _switched(results, net)), source=ACCELERATED)
            for net in NETWORKS
            for claim in (faster_throughput, faster_latency)
        ),
    ]


def _results(results: Sequence[Result], hop_ms: float) -> Results:
    """Those of one reading, each list in order of the seeds."""

    def pick(workload: Workload, **fields: Any) -> list[Measures]:
        wanted = _identity(Cell(workload, hop_ms, seconds=1, losses=1, **fields))
        found = [r for r in results if _identity(r.cell) == wanted]
        if not found:
            raise ValueError(f"there is no run of {wanted}")
        return [r.measures for r in sorted(found, key=lambda r: r.seed)]

    return Results(
        {n: [m["rate_per_s"] for m in pick("saturated", **f)] for n, f in RATES.items()},
        {n: [Latency(**m) for m in pick("poisson", **f)] for n, f in LATENCIES.items()},
        [m["loss_ms"] for m in pick("token loss")],
        pick("new ring"),
    )


def _identity(cell: Cell) -> Cell:
    """A cell but for its length."""
    return replace(cell, seconds=1, losses=1, length_ms=1)


@dataclass(slots=True)
class Switched:
    """On one network, figures for each seed: of the ring of [Totem95], and of the other one."""

    saturated: list[list[float]]
    agreed_ms: list[list[float]]
    safe_ms: list[list[float]]


def _switched(results: Sequence[Result], net: Network) -> Switched:
    def pick(measure: str, accelerated: int, **fields: Any) -> list[float]:
        cell = Cell(
            hop_ms=0.0, link_bps=net.link_bps, accelerated=accelerated, length_ms=1, **fields
        )
        found = [r for r in results if _identity(r.cell) == _identity(cell)]
        if not found:
            raise ValueError(f"there is no run of {cell}")
        return [r.measures[measure] for r in sorted(found, key=lambda r: r.seed)]

    def latency(service: str) -> list[list[float]]:
        return [
            pick(
                "latency_ms",
                accelerated,
                workload="switched poisson",
                rate_per_s=float(rate),
                service=service,
            )
            for accelerated, rate in zip(WINDOWS, net.rates_per_s, strict=True)
        ]

    saturated = [pick("rate_per_s", n, workload="switched saturated") for n in WINDOWS]
    return Switched(saturated, latency("agreed"), latency("safe"))


# Claims


def all_and_one(r: Results, hop: str) -> Claim:
    """Five senders and one order nearly the same."""
    return judge(
        "all senders / one sender",
        f"always ready, 1024 B, window 30, {hop}",
        "nearly equal",
        _ratios(r.rates["all"], r.rates["one"]),
        near(1, NEARLY),
        reason="the sending of a first packet and the receiving of a last one overlap with nothing,"
        " five times in a rotation or once; where hops are cheap that is most of the difference",
    )


def all_and_one_as_printed(r: Results, hop: str) -> Claim:
    """The same, with the rule of §8.2 to the letter."""
    one, corrected = fmean(r.rates["one, as printed"]), fmean(r.rates["one"])
    return judge(
        "the same, flow control as printed",
        f"window - fcc, own last visit counted, {hop}",
        "nearly equal",
        _ratios(r.rates["all, as printed"], r.rates["one, as printed"]),
        near(1, NEARLY),
        note=f"a single sender fills every other rotation only: {one:.0f}/s, and {corrected:.0f}/s"
        " under the corrected rule",
    )


def waiting(r: Results, hop: str, load: int) -> Claim:
    """The part of the latency to agreed delivery before the message is broadcast."""
    return judge(
        "wait for the token / rotation",
        f"{load}/s Poisson, 1024 B, {hop}",
        "about 0.5",
        [run.wait_ms / run.rotation_ms for run in r.latencies[f"agreed {load}"]],
        near(0.5),
        reason="rotations differ and a message more often comes in a long one, or while the node is"
        " busy with the token, which it then misses",
    )


def agreed(r: Results, hop: str, load: int) -> Claim:
    """§9: about half a rotation, except at very high loads."""
    runs = r.latencies[f"agreed {load}"]
    rotation = fmean(run.rotation_ms for run in runs)
    rest = fmean(run.latency_ms - run.wait_ms for run in runs)
    return judge(
        "agreed latency / rotation",
        f"{load}/s Poisson, 1024 B, {hop}",
        "about 0.5",
        [run.rotations for run in runs],
        near(0.5),
        reason=f"sending, the wire and receiving add {rest:.1f} ms to the wait for the token, and a"
        f" rotation is {rotation:.1f} ms",
    )


def safe(r: Results, hop: str, load: int) -> Claim:
    """§9: about two rotations."""
    return judge(
        "safe latency / rotation",
        f"{load}/s Poisson, 1024 B, {hop}",
        "about 2",
        [run.rotations for run in r.latencies[f"safe {load}"]],
        near(2),
        reason="the wait and the costs come on top of the rotations that make a message safe",
    )


def throughput(r: Results, hop: str) -> Claim:
    """§9: more than 800 messages of 1024 bytes a second."""
    return judge(
        "ordered per second",
        f"all always ready, 1024 B, window 30, {hop}",
        "> 800/s",
        r.rates["all"],
        above(800),
        unit="/s",
        reason="hops and wire leave no room for more",
    )


def throughput_small(r: Results, hop: str) -> Claim:
    """§9: more than 1000 smaller ones."""
    return judge(
        "ordered per second, smaller messages",
        f"all always ready, {SMALL_BYTES} B, window 30, {hop}",
        "> 1000/s",
        r.rates["small"],
        above(1000),
        unit="/s",
        reason="0.8 ms to send a frame of any size allow 1250/s, and five hops in every 30 messages"
        " take their part; the paper's window, which it tuned for each size, is not given",
    )


def agreed_low(r: Results, hop: str) -> Claim:
    """§9: under 10 ms at 400 messages a second."""
    return judge(
        "agreed latency, 400/s",
        f"Poisson, 1024 B, {hop}",
        "< 10 ms",
        [run.latency_ms for run in r.latencies["agreed 400"]],
        below(10),
        unit="ms",
        reason="the rotation, and so the latency, grows with the cost of a hop, which is assumed",
    )


def agreed_high(r: Results, hop: str) -> Claim:
    """§9: about 13 ms at 625 messages a second."""
    return judge(
        "agreed latency, 625/s",
        f"Poisson, 1024 B, {hop}",
        "about 13 ms",
        [run.latency_ms for run in r.latencies["agreed 625"]],
        near(13),
        unit="ms",
        reason="the rotation, and so the latency, grows with the cost of a hop, which is assumed",
    )


def token_loss(r: Results, hop: str) -> Claim:
    """§9: 16 ms until a lost token is made good, where it is retransmitted."""
    return judge(
        "token loss, retransmission on",
        f"timer 15 ms, 400/s Poisson, {hop}",
        "16 ms",
        r.losses,
        near(16),
        unit="ms",
        note="nearly all of it is the timer, which the paper does not give",
    )


def reconfiguration(r: Results, hop: str) -> Claim:
    """§9: a new ring takes 40 ms more than the Token Loss timeout of 100 ms."""
    runs = r.reformations
    hops, forming = fmean(m["hops"] for m in runs), fmean(m["forming_ms"] for m in runs)
    return judge(
        "reconfiguration - Token Loss timeout",
        f"token destroyed, all alive, 100 ms, {hop}",
        "40 ms",
        [m["total_ms"] - TOKEN_LOSS_MS for m in runs],
        near(40),
        unit="ms",
        note=f"{hops:.0f} token hops and {forming:.0f} ms from the first timeout, which comes up to"
        " a rotation early, counted from the loss; stable storage is free here",
    )


def prior_systems() -> Claim:
    """§9 quotes what others measured."""
    return Claim(
        "prior systems",
        "Transis, Amoeba, 1024 B",
        "about 300/s",
        None,
        None,
        Outcome.UNDERIVABLE,
        reason="quoted from others' measurements; neither system is here",
    )


def faster_throughput(net: Network, r: Switched) -> Claim:
    """[BabayAmir16], abstract: 30 % more, to saturation; and 25 to 40 % more where the network is
    faster."""
    least, most = net.throughput
    before, after = (mbit_per_s(fmean(rates)) for rates in r.saturated)
    figures = f"{after:.0f} Mbit/s of messages, and {before:.0f} without"
    return judge(
        "accelerated / other ring, throughput",
        f"{net.name}, 8 nodes always ready, 1350 B, window 80",
        f"{least:g}" if least == most else f"{least:g} to {most:g}",
        _ratios(r.saturated[1], r.saturated[0]),
        _about(least, most),
        note=figures,
        reason=f"{figures}: with the same windows for both, a ring that waits for the token loses"
        " more the faster the links are",
    )


def faster_latency(net: Network, r: Switched) -> Claim:
    """The same: 45 % less latency with 30 % more throughput at the same time, and 30 to 35 %."""
    least, most = net.latency
    before, after = map(fmean, r.agreed_ms)
    safe_before, safe_after = map(fmean, r.safe_ms)
    figures = (
        f"{after:.3f} ms at {net.rates_per_s[1]}/s, and {before:.3f} ms at {net.rates_per_s[0]}/s"
        f" without; safe {safe_after:.3f} ms, and {safe_before:.3f} ms without"
    )
    return judge(
        "accelerated / other ring, agreed latency",
        f"{net.name}, 8 nodes, 1.3 times the rate, Poisson, 1350 B, window 80",
        f"{least:g}" if least == most else f"{least:g} to {most:g}",
        _ratios(r.agreed_ms[1], r.agreed_ms[0]),
        _about(least, most),
        note=figures,
        reason=f"{figures}; what a hop costs is assumed",
    )


TIMES = (throughput, throughput_small, agreed_low, agreed_high, token_loss, reconfiguration)


def _about(least: float, most: float) -> Accepted:
    """Near what the paper gives as one figure, or as from one to another."""
    if least == most:
        return near(least)
    why = f"within a quarter of {least:g} to {most:g}"
    return Accepted(least * (1 - ABOUT), most * (1 + ABOUT), why=why)


def _ratios(over: list[float], under: list[float]) -> list[float]:
    """Seed by seed."""
    return [a / b for a, b in zip(over, under, strict=True)]
