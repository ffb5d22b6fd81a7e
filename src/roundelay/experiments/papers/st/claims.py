"""The claims of [TachikawaTakizawa], section 5, judged.

The curves of its figures come from formulas, and the figures give no numbers. So what a formula
gives stands in the place of the paper's figure, to five digits, and next to it what comes out if
losses are drawn as the formula has it. What the text says of the curves is judged as well, and what
the engine sends again. What stands in brackets is ours.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import log
from statistics import fmean

from roundelay.experiments.claims import NEARLY, Claim, Outcome, above, below, judge, near
from roundelay.experiments.papers.st.figures import ENGINE_LOSSES, SCHEMES, formula
from roundelay.experiments.papers.st.formulas import LIMIT, longest
from roundelay.experiments.papers.st.results import (
    FIGURE_9_LOSS,
    KINDS,
    LENGTH,
    LOSSES,
    NODES,
    Results,
    drawn,
    formulas,
    of_engine,
)
from roundelay.experiments.results import Result, Values

SYMBOLS = {"selective": "R_S/L", "go-back-n": "R_G/L"}
BELOW = 0.2
"""The share of the normal processing time that recovery takes less than, says the paper ..."""
BELOW_LOSS = 0.001
"""... if f is smaller than this."""
FITTED = (0.2, 0.8)
"""d/n between which growth is measured."""


def claims_of(results: Sequence[Result]) -> list[Claim]:
    """All of them, figure by figure. ValueError if a run that one of them needs is not there."""
    r = Results(results)
    by_figure = {
        "figure8": [*over_loss(r), *fewer(r), *per_destination(r), *engine(r)],
        "figure9": [*over_destinations(r), *growth(r)],
        "figure10": [*recovery(r), *below_a_fifth(r)],
    }
    return [replace(c, figure=name) for name, claims in by_figure.items() for c in claims]


# Figure 8


def over_loss(r: Results) -> list[Claim]:
    """The curves, f by f."""
    return [
        _curve(r, f"{kind}, {SYMBOLS[scheme]}", scheme, f, to)
        for scheme in SCHEMES
        for to, kind in KINDS.items()
        for f in LOSSES
    ]


def fewer(r: Results) -> list[Claim]:
    """Selective retransmission sends less again."""
    claims = []
    for to, kind in KINDS.items():
        ratios = [
            _divided(r.of("goback_share", drawn(f, to)), r.of("missed_share", drawn(f, to)))
            for f in LOSSES
        ]
        smallest = [min(values) for values in zip(*ratios, strict=True)]
        claims.append(
            judge(
                f"{kind}, go-back-n / selective",
                f"d/n = {to:g}, every f; the smallest",
                "> 1",
                smallest,
                above(1),
                reason="go-back-n sends no more again than was lost",
            )
        )
    return claims


def per_destination(r: Results) -> list[Claim]:
    """What f means, if it is what a destination loses."""
    f = LOSSES[-1]
    claims = []
    for to, kind in KINDS.items():
        d = to * NODES
        claims.append(
            judge(
                f"{kind}, R_S/L, each destination loses f",
                _at(f, to),
                _digits(formula("selective", f, to)),
                r.of("missed_share", drawn(f, to, thinned=False)),
                near(formula("selective", f, to)),
                reason=f"F counts d twice: it is (1 - f d/n)^d, and {d:g} destinations that lose"
                f" {f:g} of their messages each all get one with probability (1 - f)^d,"
                f" which makes {_digits(1 - (1 - f) ** d)}",
            )
        )
    return claims


def engine(r: Results) -> list[Claim]:
    """What the engine does."""
    claims = []
    for to, kind in KINDS.items():
        for f in ENGINE_LOSSES:
            cell = of_engine(f, to)
            copies = fmean(r.of("again_copies_share", cell)) / fmean(r.of("again_share", cell))
            recoveries = fmean(r.of("recoveries_per_round", cell))
            claims.append(
                judge(
                    f"{kind}, the engine, sent again / missed",
                    _at(f, to),
                    "1 (only what is lost)",
                    _divided(r.of("again_share", cell), r.of("needed_share", cell)),
                    near(1, 0.0),
                    note=f"each is sent again {copies:.3g} times, in {recoveries:.2g} recoveries"
                    f" among {LENGTH} messages; what only its sender missed is not sent again",
                    reason="messages that nobody missed are sent again, or not all that were",
                )
            )
        cell = of_engine(ENGINE_LOSSES[-1], to)
        claims.append(
            judge(
                f"{kind}, the engine, go-back-n would send / sends",
                _at(ENGINE_LOSSES[-1], to),
                "> 1",
                _divided(r.of("goback_share", cell), r.of("again_share", cell)),
                above(1),
                reason="go-back-n would send no more again on the same losses",
            )
        )
    return claims


# Figure 9


def over_destinations(r: Results) -> list[Claim]:
    """The curves, by d/n."""
    return [
        _curve(r, SYMBOLS[scheme], scheme, FIGURE_9_LOSS, to)
        for scheme in SCHEMES
        for to in r.shares
    ]


def growth(r: Results) -> list[Claim]:
    """How they grow with d/n."""
    between = f"f = {FIGURE_9_LOSS:g}, d/n from {FITTED[0]:g} to {FITTED[1]:g}"
    selective = _exponent(r, "missed_share", thinned=True)
    whole = _exponent(r, "goback_share", thinned=True)
    far = r.of("linked_share", drawn(FIGURE_9_LOSS, min(r.shares)))
    all_ = r.of("goback_share", drawn(FIGURE_9_LOSS, min(r.shares)))
    return [
        judge(
            "R_S, exponent of d/n",
            between,
            "almost 1",
            selective,
            near(1, NEARLY),
            reason=f"d/n is in F, and d in its exponent: R_S is about L f n (d/n)^2;"
            f" the formula gives {_by_formula('selective'):.3g}",
        ),
        judge(
            "R_S, exponent of d/n, each destination loses f",
            between,
            "almost 1",
            _exponent(r, "missed_share", thinned=False),
            near(1, NEARLY),
            reason="more is lost together than apart",
        ),
        Claim(
            "R_G, exponent of d/n",
            between,
            "c",
            fmean(whole),
            (min(whole), max(whole)),
            Outcome.UNDERIVABLE,
            reason=f"the paper does not say what c is; the formula gives"
            f" {_by_formula('go-back-n'):.3g} here, less than R_S has, and less the more is lost,"
            " since no more than all can be sent again",
        ),
        judge(
            "R_G, what is linked / all behind the first loss",
            f"f = {FIGURE_9_LOSS:g}, d/n = {min(r.shares):g}",
            "(1)",
            _divided(far, all_),
            near(1, NEARLY),
            reason="by the text a member removes only what follows a loss or a removal in its own"
            " log; with few destinations most of the round is for others, and (2) counts all of it",
        ),
    ]


def _exponent(r: Results, measure: str, *, thinned: bool) -> Values:
    low, high = (r.of(measure, drawn(FIGURE_9_LOSS, to, thinned=thinned)) for to in FITTED)
    return [log(ratio) / log(FITTED[1] / FITTED[0]) for ratio in _divided(high, low)]


def _by_formula(scheme: str) -> float:
    low, high = (formula(scheme, FIGURE_9_LOSS, to) for to in FITTED)
    return log(high / low) / log(FITTED[1] / FITTED[0])


# Figure 10


def recovery(r: Results) -> list[Claim]:
    """The curves, f by f."""
    return [
        judge(
            f"{kind}, C/D",
            _at(f, to),
            _digits(formulas(f, to).cost),
            r.of("recovery_share", drawn(f, to)),
            near(formulas(f, to).cost),
            reason="F_0 leaves out at which of d L places the one loss is, so that nearly every"
            " single loss counts as several; and R_G, with which F_1 is multiplied, is an"
            " expectation that takes in the rounds without a loss",
        )
        for to, kind in KINDS.items()
        for f in LOSSES
    ]


def below_a_fifth(r: Results) -> list[Claim]:
    """Recovery takes less than a fifth of the normal processing time if f is small."""
    claims = []
    for to, kind in KINDS.items():
        cost = formulas(BELOW_LOSS, to).cost
        simulated = 100 * fmean(r.of("recovery_share", drawn(BELOW_LOSS, to)))
        said = f"{_rule(to)}; with single losses counted as such it is {simulated:.3g} %"
        claims.append(
            judge(
                f"{kind}, C/D by formula",
                f"f up to {BELOW_LOSS:g}, n = {NODES}, L = {LENGTH}, d/n = {to:g}",
                "below 20 %",
                [100 * cost],
                below(100 * BELOW),
                unit="%",
                note=said,
                reason=said,
            )
        )
    for to, kind in KINDS.items():
        lengths = {n: longest(n, to * n, BELOW_LOSS, BELOW) for n in (3, 5, 7, 10, 20, 50)}
        told = ", ".join(f"{length} with n = {n}" for n, length in lengths.items())
        claims.append(
            Claim(
                f"{kind}, largest L with C/D below 20 %",
                f"f up to {BELOW_LOSS:g}, n = {NODES}, d/n = {to:g}",
                "any",
                float(lengths[NODES]),
                None,
                Outcome.DOES_NOT,
                reason=told,
            )
        )
    return claims


def _rule(to: float) -> str:
    product = LENGTH * to * to * NODES
    return f"it holds if L d^2/n is below {LIMIT:g}, and here that is {product:g}"


# How they are put together


def _curve(r: Results, claim: str, scheme: str, f: float, to: float) -> Claim:
    """A point of a curve: by formula, and simulated as the formula has it."""
    expected = formula(scheme, f, to)
    return judge(
        claim,
        _at(f, to),
        _digits(expected),
        r.of(SCHEMES[scheme], drawn(f, to)),
        near(expected),
        reason="the formula does not say what comes of losses that are drawn as it has them",
    )


def _at(f: float, to: float) -> str:
    return f"f = {f:g}, n = {NODES}, L = {LENGTH}, d/n = {to:g}"


def _digits(value: float) -> str:
    return f"{value:.5f}"


def _divided(over: Values, under: Values) -> Values:
    return [a / b for a, b in zip(over, under, strict=True)]
