"""What happens in a run, worded as the output of scenario commands."""

from typing import Any

from roundelay.core.effects import Deliver, Receipt, Suspect
from roundelay.core.ids import NodeId, View
from roundelay.core.log import LogStatus
from roundelay.sim.host_log import LogRead, LogReceipt
from roundelay.sim.transmission import Transmission
from roundelay.wire.primitives import Reason

VERBS = (
    "sends",
    "delivers",
    "receipt",
    "installs",
    "suspects",
    "crashes",
    "restarts",
    "expire",
    "proves",
    "refuses",
    "log",
    "commits",
    "appended",
    "asks",
    "reads",
    "disk",
    "forks",
    "begins",
)
"""What can happen to a node, as the simulator reports it and the command `show` names it."""


def sentence(node: NodeId, verb: str, what: Any) -> str:
    match what:
        case None:
            return f"{node} {verb}"
        case (Transmission() as transmission, Reason() as reason):
            return f"{node} refuses {_title(transmission)}: {reason}"
        case Transmission():
            return f"{node} -> {what.to or '*'} {what.tag} {what}"
        case Deliver():
            key = "" if what.key is None else f" at {what.key[0]}.{what.key[1]}"
            said = "".join(f" {_short(payload)}" for payload in what.payloads)
            return f"{node} delivers {what.packet}{key}{said}"
        case Receipt():
            return f"{node} has a receipt for {what.span} at {what.index}"
        case View():
            return f"{node} installs {what}{' primary' if what.primary else ''}"
        case Suspect():
            return f"{node} suspects {' '.join(what.members) or 'the view'}: {what.reason}"
        case LogStatus():
            voters = f" of {','.join(what.voters)}" if what.voters else ""
            return f"{node} has a log that is {what.state}{voters}, {what.condition}"
        case LogReceipt():
            return f"{node} {_receipt(what)}"
        case LogRead():
            stale = f" at once, in a log that is {what.state}" if what.state else ""
            return f"{node} reads as of {what.length}{stale}"
        case int() if verb == "begins":
            return f"{node} begins a generation of the log, from index {what} on"
        case _:
            return f"{node} {verb} {what}"


def _receipt(receipt: LogReceipt) -> str:
    if receipt.forgotten:
        return "is told that its session was forgotten"
    if not receipt.count:
        return f"has opened a session, whose last number is {receipt.number}"
    numbers = f"{receipt.number}+{receipt.count}"
    where = "long ago" if receipt.index is None else f"at {receipt.index}"
    return f"is told that {numbers} of its session is committed {where}"


def _title(transmission: Transmission) -> str:
    """What was refused."""
    if not transmission.sender:
        return str(transmission)
    return f"{transmission.tag} of {transmission.sender}"


def brief(effect: Deliver) -> list[str]:
    """The messages of a delivery for the command `log`: a payload that is a short word, or else the
    name of the message."""
    span = effect.packet.span
    texts = [payload.decode(errors="replace") for payload in effect.payloads]
    return [
        text if 0 < len(text) <= 8 and text.isprintable() else str(span._replace(first=n, count=1))
        for n, text in enumerate(texts, span.first)
    ]


def _short(payload: bytes) -> str:
    """A payload in quotes, cut after 24 bytes."""
    said = payload.rstrip(b"\0")
    return repr(said if len(said) <= 24 else said[:21] + b"...")[1:]


def plain_text(value: Any) -> str:
    """A value on one line. Sets are sorted, so that equal values give equal lines."""
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(plain_text(item) for item in sorted(value)) + "}"
    if isinstance(value, dict):
        items = (f"{plain_text(k)}: {plain_text(v)}" for k, v in value.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return "[" + ", ".join(plain_text(item) for item in value) + "]"
    return str(value)
