"""The claims of [DTP97], judged.

The paper's curves are drawn, not told: what can be judged is what its text says of them. Where a
claim is about every group size, the size at which it fares worst is judged, seed by seed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from roundelay.experiments.claims import (
    NEARLY,
    Claim,
    Outcome,
    above,
    at_most,
    below,
    judge,
    near,
)
from roundelay.experiments.papers.dtp.results import GAP_MS, Results
from roundelay.experiments.papers.dtp.runs import Cell
from roundelay.experiments.results import Result, Values

NAMES = {"dtp": "DTP", "cm": "CM", "pinwheel": "Pinwheel", "totem": "Totem"}
RIVALS = ("cm", "pinwheel")
"""The others that order by acknowledgments."""
GAPS_MS = (50.0, 100.0, 200.0)

EVEN = Cell("dtp", 10, GAP_MS, 1, activity=(1.0,) * 10)
UNEVEN = Cell("dtp", 10, 1000.0, 1, activity=(40.0,) * 2 + (10.0,) * 3 + (2.0,) * 5)
"""Messages a second of two busy, three less busy and five idle members."""
STATIONS = Cell("dtp", 3, 0.0, 1, size_bytes=1000)
"""Always ready."""

Places = Mapping[str, Values]
"""By group size, and where it matters 1/lambda: what was measured."""


class Demand(NamedTuple):
    """What is demanded of the worst of several places."""

    worst: Callable[[Iterable[float]], float]
    word: str
    paper: str
    holds: Callable[[float], bool]


def _farthest_from_one(values: Iterable[float]) -> float:
    return max(values, key=lambda value: abs(value - 1))


LESS = Demand(max, "largest", "< 1", below(1))
AT_MOST = Demand(max, "largest", "<= 1", at_most(1))
MORE = Demand(min, "smallest", "> 1", above(1))
GROWS = Demand(min, "smallest step", "> 0", above(0))
ABOUT_ONE = Demand(_farthest_from_one, "farthest from 1", "about 1", near(1))
COMPARABLE = Demand(_farthest_from_one, "farthest from 1", "comparable", near(1, NEARLY))


def claims_of(results: Sequence[Result]) -> list[Claim]:
    """All of them, figure by figure. ValueError if a run that one of them needs is not there."""
    r = Results(results)
    by_figure = {
        "figure2": [*stability(r), *batching(r)],
        "figure3": buffers(r),
        "figure4": delivery(r),
        "figure5": overhead(r),
        "": [*load(r), saturation(r), *underivable()],
    }
    return [replace(c, figure=name) for name, claims in by_figure.items() for c in claims]


def stability(r: Results) -> list[Claim]:
    """Figure 2."""
    largest = r.sizes[-1]
    batched = _place(largest, GAPS_MS[0])
    pinwheel = dict(_ratios(r, "stability_ms", "pinwheel", "cm", GAPS_MS))
    worse = pinwheel.pop(batched)
    everywhere = "every size and 1/lambda"
    return [
        *(_in_gaps(r, "dtp", gap_ms, "about 2/3", near(2 / 3)) for gap_ms in GAPS_MS),
        *(
            _in_gaps(r, rival, gap_ms, "nearly 1", near(1, NEARLY))
            for rival in RIVALS
            for gap_ms in GAPS_MS
        ),
        *(
            _worst(
                f"DTP / {NAMES[rival]}, stability time",
                everywhere,
                _ratios(r, "stability_ms", "dtp", rival, GAPS_MS),
                LESS,
            )
            for rival in RIVALS
        ),
        _worst("Pinwheel / CM, stability time", f"{everywhere} but {batched}", pinwheel, LESS),
        _worst("Pinwheel / CM, stability time", "", {batched: worse}, MORE),
        _worst(
            "Totem / DTP, stability time",
            everywhere,
            _ratios(r, "stability_ms", "totem", "dtp", GAPS_MS),
            LESS,
        ),
        rotations(r),
    ]


def rotations(r: Results) -> Claim:
    """What the paper says of Totem's stability time, after [Totem95]."""
    largest = r.sizes[-1]
    stable = r.of("stability_ms", "totem", largest)
    delivered = r.of("delivery_ms", "totem", largest)
    rotation = r.of("rotation_ms", "totem", largest)
    after = fmean(_divided(_minus(stable, delivered), rotation))
    return judge(
        "Totem, stability time / rotation",
        _place(largest, GAP_MS),
        "about 2",
        _divided(stable, rotation),
        near(2),
        reason="the time runs from the request, and so includes the wait for the token; from the"
        f" last delivery on it is {after:.2f}",
    )


def batching(r: Results) -> list[Claim]:
    """What the paper says of Pinwheel's acknowledgments of several messages."""
    single = Cell("pinwheel", r.sizes[-1], GAPS_MS[0], 1, batch=1)
    place = _place(single.nodes, single.gap_ms)

    def effect(measure: str) -> Places:
        batched = r.of(measure, single.protocol, single.nodes, single.gap_ms)
        return {place: _divided(batched, r.like(measure, single))}

    name = "Pinwheel / itself without batches"
    return [
        _worst(f"{name}, stability time", "", effect("stability_ms"), MORE),
        _worst(f"{name}, delivery time", "", effect("delivery_ms"), LESS),
    ]


def buffers(r: Results) -> list[Claim]:
    """Figure 3, and the bounds of section 4.2."""
    each = "100 ms, every size"
    claims = [
        _worst(f"DTP / {NAMES[rival]}, buffer", each, _ratios(r, "buffer", "dtp", rival), LESS)
        for rival in RIVALS
    ]
    for rival in RIVALS:
        more = [_minus(r.of("buffer", rival, n), r.of("buffer", "dtp", n)) for n in r.sizes]
        steps = {
            _step(sizes): _minus(after, before)
            for sizes, (before, after) in zip(pairwise(r.sizes), pairwise(more), strict=True)
        }
        claims.append(_worst(f"{NAMES[rival]} - DTP, buffer, by size", "100 ms", steps, GROWS))
    claims.append(_worst("Totem / DTP, buffer", each, _ratios(r, "buffer", "totem", "dtp"), LESS))
    bounds: tuple[tuple[str, str, Callable[[int], int]], ...] = (
        ("buffer_msgs_max", "messages held / (2n - 1)", lambda n: 2 * n - 1),
        ("buffer_acks_max", "ACKs held / (n - 1)", lambda n: n - 1),
    )
    for measure, name, bound in bounds:
        shares = {
            _place(n, gap_ms): [most / bound(n) for most in r.of(measure, "dtp", n, gap_ms)]
            for n in r.sizes
            for gap_ms in GAPS_MS
        }
        claims.append(
            _worst(f"DTP, most {name}", "no loss, every size and 1/lambda", shares, AT_MOST)
        )
    return claims


def delivery(r: Results) -> list[Claim]:
    """Figure 4."""
    return [
        *(
            _worst(
                f"DTP / {NAMES[rival]}, delivery time",
                "100 ms, every size",
                _ratios(r, "delivery_ms", "dtp", rival),
                COMPARABLE,
            )
            for rival in RIVALS
        ),
        _worst("Totem, delivery time, by size", "100 ms", _steps(r, "delivery_ms", "totem"), MORE),
    ]


def overhead(r: Results) -> list[Claim]:
    """Figure 5."""
    each = "100 ms, every size"
    return [
        *(
            _worst(
                f"{NAMES[protocol]}, overhead messages a message",
                each,
                {_place(n): r.of("overhead", protocol, n) for n in r.sizes},
                ABOUT_ONE,
            )
            for protocol in ("dtp", *RIVALS)
        ),
        _worst("Totem / DTP, overhead", each, _ratios(r, "overhead", "totem", "dtp"), MORE),
        _worst("Totem, overhead, by size", "100 ms", _steps(r, "overhead", "totem"), LESS),
    ]


def load(r: Results) -> list[Claim]:
    """Abstract and section 6: who does the work of ordering."""
    uneven = "2 members 40/s, 3 members 10/s, 5 members 2/s"
    ours = r.like("work_variation", UNEVEN)
    return [
        judge(
            "DTP, variation of ACKs over members",
            f"n = {EVEN.nodes}, equal rates, 100 ms",
            "even",
            r.like("ordering_variation", EVEN),
            at_most(NEARLY),
            reason=f"even would be {NEARLY:g} at most",
        ),
        _worst(
            "DTP, ACKs of an idle / a busy member",
            "",
            {uneven: _divided(r.like("idlest_share", UNEVEN), r.like("busiest_share", UNEVEN))},
            MORE,
        ),
        *(
            _worst(
                f"DTP / {NAMES[rival]}, variation of frames sent over members",
                "",
                {uneven: _divided(ours, r.like("work_variation", replace(UNEVEN, protocol=rival)))},
                LESS,
            )
            for rival in RIVALS
        ),
    ]


def saturation(r: Results) -> Claim:
    """Section 5, of three workstations."""
    return judge(
        "DTP, ordered per second",
        f"{STATIONS.nodes} members always ready, {STATIONS.size_bytes} B",
        "about 1000/s",
        r.like("rate_per_s", STATIONS),
        near(1000),
        unit="/s",
        note="the wire alone sets the limit; the paper measured machines that are not modelled",
    )


def underivable() -> list[Claim]:
    """What the text does not give, or is of others."""
    curves = "drawn, and not told in numbers; the points of ours are written with -o"
    others = "quoted from others' work; the protocol is not here"
    return [
        Claim(claim, parameters, paper, None, None, Outcome.UNDERIVABLE, reason=reason)
        for claim, parameters, paper, reason in (
            ("values of the curves", "figures 2 to 5", "drawn", curves),
            ("Transis, buffer and times", "unequal rates", "worse", others),
            ("ABCAST / Pinwheel", "-", "worse", others),
        )
    ]


# How they are put together


def _worst(claim: str, parameters: str, places: Places, demand: Demand) -> Claim:
    """The claim at the place at which it fares worst; if it does not come out, that is named."""
    values = [demand.worst(of_seed) for of_seed in zip(*places.values(), strict=True)]
    means = {place: fmean(of_place) for place, of_place in places.items()}
    worst = demand.worst(means.values())
    place = next(place for place, mean in means.items() if mean == worst)
    if len(places) > 1:
        parameters, reason = f"{parameters}; the {demand.word}", f"worst at {place}"
    else:
        parameters, reason = place, "it is the other way round"
    return judge(claim, parameters, demand.paper, values, demand.holds, reason=reason)


def _in_gaps(
    r: Results, protocol: str, gap_ms: float, paper: str, holds: Callable[[float], bool]
) -> Claim:
    """Stability time in the largest group, in units of 1/lambda."""
    largest = r.sizes[-1]
    return judge(
        f"{NAMES[protocol]}, stability time / (1/lambda)",
        _place(largest, gap_ms),
        paper,
        [time_ms / gap_ms for time_ms in r.of("stability_ms", protocol, largest, gap_ms)],
        holds,
        reason="it tends to something else",
    )


def _ratios(
    r: Results, measure: str, over: str, under: str, gaps_ms: tuple[float, ...] = (GAP_MS,)
) -> Places:
    """Of two protocols, at every size and 1/lambda."""
    return {
        _place(n, gap_ms): _divided(r.of(measure, over, n, gap_ms), r.of(measure, under, n, gap_ms))
        for n in r.sizes
        for gap_ms in gaps_ms
    }


def _steps(r: Results, measure: str, protocol: str) -> Places:
    """From each size to the next, by how much a measure is multiplied."""
    return {
        _step(sizes): _divided(r.of(measure, protocol, sizes[1]), r.of(measure, protocol, sizes[0]))
        for sizes in pairwise(r.sizes)
    }


def _place(nodes: int, gap_ms: float | None = None) -> str:
    return f"n = {nodes}" if gap_ms is None else f"n = {nodes}, {gap_ms:g} ms"


def _step(sizes: tuple[int, int]) -> str:
    return f"n = {sizes[0]} to {sizes[1]}"


def _divided(over: Values, under: Values) -> Values:
    return [a / b for a, b in zip(over, under, strict=True)]


def _minus(more: Values, less: Values) -> Values:
    return [a - b for a, b in zip(more, less, strict=True)]
