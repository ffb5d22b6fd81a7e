"""A claim as a line: the values with which it comes out, and ours."""

from roundelay.experiments.claims import Claim, Outcome
from roundelay.report.html import element

WIDTH = 300.0
MARGIN = 0.15
"""The share of the range that is left free on either side."""


def gauge(claim: Claim) -> str:
    """A small picture of a claim that was judged by its value; the text beside it says the same."""
    if claim.accepted is None or claim.ours is None:
        return ""
    low, high = claim.accepted.low, claim.accepted.high
    known: list[float] = [
        claim.ours,
        *(claim.spread or ()),
        *(end for end in (low, high) if end is not None),
    ]
    free = MARGIN * (max(known) - min(known)) or 0.5 * abs(claim.ours) or 1.0
    left, right = min(known) - free, max(known) + free

    def x(value: float) -> float:
        return WIDTH * (value - left) / (right - left)

    start, end = x(left if low is None else low), x(right if high is None else high)
    band = {"x": f"{start:.1f}", "width": f"{max(end - start, 2.0):.1f}", "y": 3, "height": 12}
    least, most = claim.spread or (claim.ours, claim.ours)
    kind = "good" if claim.verdict is Outcome.COMES_OUT else "bad"
    return element(
        "svg",
        element("line", x1=0, x2=f"{WIDTH:g}", y1=9, y2=9, class_="track"),
        element("rect", **band, class_="band"),
        element("line", x1=f"{x(least):.1f}", x2=f"{x(most):.1f}", y1=9, y2=9, class_="spread"),
        element("circle", cx=f"{x(claim.ours):.1f}", cy=9, r=5, class_="value"),
        viewBox=f"0 0 {WIDTH:g} 18",
        preserveAspectRatio="xMinYMid",
        class_=f"gauge {kind}",
        aria_hidden="true",
    )
