"""The claims of [ATOP98], judged.

The paper draws two figures and prints no latency. Its text says what was close to what, and what
grew. What stands in brackets is how we read such a word. Where there is nothing but brackets the
paper is silent, and the rest cannot be understood without it: the value is around what a small
model of the rules gave, which is older than the engine.

The rules of the paper have no dummies; its remarks call for them, and do not say when to send one.
So every claim about ATOP is judged for the rules as they are written, and with dummies.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean

from roundelay.experiments.claims import (
    ABOUT,
    NEARLY,
    Accepted,
    Claim,
    Outcome,
    above,
    at_least,
    at_most,
    below,
    between,
    judge,
    near,
)
from roundelay.experiments.papers.atop.results import (
    ALL_ACK,
    CAUSAL,
    COVER,
    COVER_BEFORE,
    DEMAND,
    NAMES,
    NULLS,
    RESTLESS,
    SWITCH,
    WRITTEN,
    WRITTEN_BEFORE,
    Results,
    slow,
)
from roundelay.experiments.papers.atop.runs import Cell
from roundelay.experiments.results import Result, Values

CLOSE_MS = 2.0 + COVER.hold_ms
"""A latency is close to that of causal multicast if it is at most so much greater: a dummy is sent
`hold_ms` late and takes its way, which is less than 2 ms."""
FOLLOWS = (0.65, 0.85)
"""All-Ack waits for the largest of the remaining waits of three slow senders, which is three
quarters of their period on average, and this much by the chance of their phases."""
DUMMIES = (0.9, 1.5)
"""What the model gave for dummies a message, at all rates of the slow senders."""
SAVING = 0.6
"""Dummies after adaptation are at most this share of those before it."""
MUCH = 50.0
"""A variance is much greater than another from this ratio on."""
BAD = 0.1
"""Before adaptation, less than this share of the messages is delivered within the run."""
STEADY_PERIOD_S = 3.0
"""Of the slow senders, where variances are measured."""

DRIFT = (
    "no rule keeps a member at the pace of its slots, which are drawn at random, so slots and"
    " messages drift apart, and all wait for whoever is behind"
)
"""Why ATOP as it is written is not close to causal multicast."""
WHY_NOT = {
    DEMAND: "a member fills one slot at a time, and each costs its hold and its way",
    SWITCH: "dummies only tell of new weights, and messages wait for the next ones",
}
"""Why other rules for dummies do not bring it close."""

Places = Mapping[str, Values]
"""By the rate of the slow senders: what was measured."""


def claims_of(results: Sequence[Result]) -> list[Claim]:
    """All of them, figure by figure. ValueError if a run that one of them needs is not there."""
    r = Results(results)
    by_figure = {
        "latency": [*all_ack(r), *with_dummies(r), *as_written(r)],
        "dummies": dummies(r),
        "variance": variance(r),
        "": underivable(),
    }
    return [replace(c, figure=name) for name, claims in by_figure.items() for c in claims]


def all_ack(r: Results) -> list[Claim]:
    """The latency of All-Ack follows the slowest sender."""
    low, high = FOLLOWS
    claims = []
    for period_s in r.periods_s:
        latency_ms = r.of("latency_ms", ALL_ACK, period_s)
        claims.append(
            judge(
                "All-Ack, latency / slow period",
                slow(period_s),
                f"follows the slowest ({low:g} to {high:g})",
                [ms / 1000 / period_s for ms in latency_ms],
                between(low, high),
                note=f"{fmean(latency_ms) / 1000:.2f} s, without null messages",
                reason="it waits for something else than the next message of the slowest",
            )
        )
    steps = {
        f"{slow(a)} to {slow(b)}": _divided(
            r.of("latency_ms", ALL_ACK, b), r.of("latency_ms", ALL_ACK, a)
        )
        for a, b in pairwise(r.periods_s)
    }
    grows = _worst("All-Ack, latency, by slow period", steps, min, "smallest step", "> 1", above(1))
    return [*claims, grows]


def with_dummies(r: Results) -> list[Claim]:
    """ATOP after adaptation is close to causal multicast, whatever the slow senders do."""
    ratios = [
        max(of_seed) / min(of_seed)
        for of_seed in zip(*(r.of("latency_ms", COVER, p) for p in r.periods_s), strict=True)
    ]
    return [
        *(_close(r, COVER, period_s) for period_s in r.periods_s),
        judge(
            "ATOP, cover, largest / smallest latency",
            "every slow rate",
            f"independent (<= {1 + ABOUT:g})",
            ratios,
            at_most(1 + ABOUT),
            reason="it depends on the slowest sender",
        ),
        *(_close_everywhere(r, kind) for kind in (DEMAND, SWITCH)),
        _worst(
            "ATOP, cover, latency before / after adaptation",
            _ratios(r, "latency_ms", COVER_BEFORE, COVER),
            min,
            "smallest",
            "> 1",
            above(1),
            note=f"before it is {_everywhere(r, 'latency_ms', COVER_BEFORE)} ms, with"
            f" {_everywhere(r, 'dummies_per_message', COVER_BEFORE)} dummies a message",
        ),
    ]


def as_written(r: Results) -> list[Claim]:
    """The same of ATOP without dummies. Its latency depends on the list of slots, by more than a
    factor of ten, and grows with the length of the run: it says nothing about All-Ack."""
    restless = _ratios(r, "latency_ms", RESTLESS, CAUSAL)
    delivered = {slow(p): r.of("delivered_share", WRITTEN_BEFORE, p) for p in r.periods_s}
    return [
        *(_drifts(r, period_s) for period_s in r.periods_s),
        _worst(
            "ATOP as written / causal, latency",
            restless,
            min,
            "smallest",
            "slightly greater",
            _close_to(fmean(r.of("latency_ms", CAUSAL, r.periods_s[0]))),
            setting="threshold 0, ",
            reason="weights change all the time, and every change waits for a message of each"
            " member",
        ),
        _worst(
            "ATOP as written, share delivered",
            delivered,
            max,
            "largest",
            f"(< {BAD:g})",
            below(BAD),
            setting="before adaptation, ",
            note="all have the same weight, so nobody gets ahead of the slowest sender; after"
            f" adaptation it is {_everywhere(r, 'delivered_share', WRITTEN)}",
        ),
    ]


def _drifts(r: Results, period_s: float) -> Claim:
    latency_ms, causal_ms = (r.of("latency_ms", kind, period_s) for kind in (WRITTEN, CAUSAL))
    return judge(
        "ATOP as written / causal, latency",
        f"{slow(period_s)}, no dummies",
        "slightly greater",
        _divided(latency_ms, causal_ms),
        _close_to(fmean(causal_ms)),
        reason=f"{_seconds(latency_ms)}: {DRIFT}",
    )


def dummies(r: Results) -> list[Claim]:
    """What the latencies above cost in frames, of which the paper says nothing."""
    low, high = DUMMIES
    return [
        *(
            judge(
                "ATOP, cover, dummies a message",
                slow(period_s),
                f"({low:g} to {high:g})",
                r.of("dummies_per_message", COVER, period_s),
                between(low, high),
                reason="the model of the rules gave something else",
            )
            for period_s in r.periods_s
        ),
        _worst(
            "ATOP, cover, dummies after / before adaptation",
            _ratios(r, "dummies_per_message", COVER, COVER_BEFORE),
            max,
            "largest",
            f"(<= {SAVING:g})",
            at_most(SAVING),
        ),
        _worst(
            "ATOP, cover / All-Ack with null messages, dummies",
            _ratios(r, "dummies_per_message", COVER, NULLS),
            max,
            "largest",
            "(< 1)",
            below(1),
            note=f"All-Ack sends {_everywhere(r, 'dummies_per_message', NULLS)} a message, which is"
            f" delivered after {_everywhere(r, 'latency_ms', NULLS)} ms",
        ),
    ]


def variance(r: Results) -> list[Claim]:
    """Figures 7 and 8: messages of one sender at 10/s that are delivered in a tick of 100 ms."""
    place = f"sender at 10/s, {slow(STEADY_PERIOD_S)}, per 100 ms"

    def of(measure: str, kind: Cell) -> Values:
        return r.of(measure, kind, STEADY_PERIOD_S)

    ours, theirs = of("delivery_variance", COVER), of("delivery_variance", ALL_ACK)
    empty, fullest = fmean(of("empty_ticks_share", ALL_ACK)), max(of("fullest_tick", ALL_ACK))
    return [
        judge(
            "All-Ack / ATOP, cover, variance of deliveries",
            place,
            f"much greater (>= {MUCH:g})",
            _divided(theirs, ours),
            at_least(MUCH),
            note=f"{fmean(theirs):.3g} and {fmean(ours):.2g}; in All-Ack {empty:.0%} of the ticks"
            f" are empty, and up to {fullest:.0f} messages come in one",
            reason="it is not much greater",
        ),
        judge(
            "ATOP, cover, variance of deliveries / of sending",
            place,
            "close to the sender's",
            _divided(ours, of("sending_variance", COVER)),
            near(1),
            reason="deliveries come less evenly than they are sent, or more so",
        ),
        *(
            judge(
                f"{NAMES[kind]}, delivered / sent",
                place,
                "close",
                of("delivery_rate", kind),
                near(1, NEARLY),
                reason="not all of it is delivered in the time that is measured",
            )
            for kind in (ALL_ACK, COVER)
        ),
    ]


def underivable() -> list[Claim]:
    """What the text does not give."""
    return [
        Claim(claim, parameters, paper, None, None, Outcome.UNDERIVABLE, reason=reason)
        for claim, parameters, paper, reason in (
            (
                "latencies",
                "every protocol",
                "not told",
                "the text compares them and gives none; ours are written with -o",
            ),
            (
                "values of the curves",
                "figures 7 and 8",
                "drawn",
                "drawn, and not told in numbers",
            ),
            (
                "length of the adaptation",
                "-",
                "short",
                "it depends on the window of the book-keeper, which is not told; ours takes 192"
                " messages, five seconds",
            ),
        )
    ]


# How they are put together


def _close_to(causal_ms: float) -> Accepted:
    """How many times that of causal multicast a latency may be that is close to it."""
    why = f"at most {CLOSE_MS:g} ms more than {causal_ms:.3g} ms"
    return Accepted(high=1 + CLOSE_MS / causal_ms, why=why)


def _close(r: Results, kind: Cell, period_s: float) -> Claim:
    """How much greater a latency is than that of causal multicast."""
    ours, causal = r.of("latency_ms", kind, period_s), r.of("latency_ms", CAUSAL, period_s)
    count = fmean(r.of("dummies_per_message", kind, period_s))
    figures = f"{fmean(ours):.3g} ms and {fmean(causal):.3g} ms, with {count:.2f} dummies a message"
    return judge(
        f"{NAMES[kind]} - causal, latency",
        f"{slow(period_s)}, hold {kind.hold_ms:g} ms",
        f"slightly greater (<= {CLOSE_MS:g} ms)",
        [a - b for a, b in zip(ours, causal, strict=True)],
        Accepted(0, CLOSE_MS, open=True),
        unit="ms",
        note=figures,
        reason=f"{figures}: {WHY_NOT.get(kind, 'it waits for more than its dummies')}",
    )


def _close_everywhere(r: Results, kind: Cell) -> Claim:
    """The same where it is least."""
    claims = [_close(r, kind, period_s) for period_s in r.periods_s]
    least = min(claims, key=lambda claim: claim.ours or 0.0)
    return replace(least, parameters=f"{least.parameters}; the smallest")


def _worst(
    claim: str,
    places: Places,
    worst: Callable[[Values], float],
    word: str,
    paper: str,
    holds: Callable[[float], bool],
    *,
    setting: str = "",
    reason: str = "",
    note: str = "",
) -> Claim:
    """The claim at the rate of the slow senders at which it fares worst."""
    values = [worst(list(of_seed)) for of_seed in zip(*places.values(), strict=True)]
    means = {place: fmean(of_place) for place, of_place in places.items()}
    place = next(name for name, mean in means.items() if mean == worst(list(means.values())))
    reason = reason or f"the {word} is at {place}"
    parameters = f"{setting}every slow rate; the {word}"
    return judge(claim, parameters, paper, values, holds, reason=reason, note=note)


def _ratios(r: Results, measure: str, over: Cell, under: Cell) -> Places:
    """Of two kinds of runs, at every rate of the slow senders."""
    return {slow(p): _divided(r.of(measure, over, p), r.of(measure, under, p)) for p in r.periods_s}


def _everywhere(r: Results, measure: str, kind: Cell) -> str:
    """The smallest and the largest of the means over the seeds."""
    means = [fmean(r.of(measure, kind, period_s)) for period_s in r.periods_s]
    low, high = f"{min(means):.2g}", f"{max(means):.2g}"
    return low if low == high else f"{low} to {high}"


def _seconds(latency_ms: Values) -> str:
    seconds = [ms / 1000 for ms in latency_ms]
    return f"{fmean(seconds):.1f} s ({min(seconds):.1f} to {max(seconds):.1f}, by the slot list)"


def _divided(over: Values, under: Values) -> Values:
    return [a / b for a, b in zip(over, under, strict=True)]
