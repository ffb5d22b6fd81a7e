"""The online checker: a trace sink that reports a breach at the row that breaks a property.

Theory of operation
===================

Rows come in the order of the run. What later rows will be compared with is kept in a *window*: per
configuration the last so many spans of messages, each with who holds it, who delivered it, in
which view and under which key. So memory does not grow with the run.

What falls out of the window is not lost at once. Each sender keeps, as runs of equal fate, who
obtained and delivered its older messages: in a healthy run that is one record for all of them. A
row about such a message is still judged where that is enough (D1, D2, S1, S4, S6); where it is not,
the property is in doubt and its verdict `inconclusive`. Falling out alone is no reason for doubt:
as long as nobody comes back to a message, nothing is missed.

A row that covers several messages is handled whole. Only where two rows cut the same messages in
different ways are they split, and then no further than needed.

    findings    what was counted, broken and doubted      window       messages that are remembered
    views       where each process is; M1, M2, M4         wellformed   T1 to T4
    delivery    D1, D2, D3, D9, D11                       order        O1, O6
    primacy     M10
    keys        O3f, O3i, O4, K1                          acyclic      O5
    evidence    S1, S1d, S4, S6                           tokens       K3
    checker     hands each row to the others
"""

from roundelay.check.online.checker import COVERED, OnlineChecker
from roundelay.check.online.findings import ViolationError

__all__ = ["COVERED", "OnlineChecker", "ViolationError"]
