"""The arguments of scenario commands: words, and options with units."""

from collections.abc import Callable, Mapping
from typing import Any

from roundelay.core.ids import NodeId
from roundelay.sim.costs import Costs
from roundelay.sim.network import Bus, Channel, Lan, Manual, Network, Switched, Wan
from roundelay.sim.transmission import Transmission
from roundelay.sim.units import duration_ns, per_second, rate_bps, share, size_bytes

Known = Mapping[str, tuple[str, Callable[[str], Any]]]
"""Options by name: the keyword each one sets, and how its text is read."""

RATES: Known = {
    "loss": ("loss", share),
    "duplicate": ("duplicate", share),
    "reorder": ("reorder", share),
    "spike": ("spike", share),
    "corrupt": ("corrupt", share),
    "reorder-by": ("reorder_ns", duration_ns),
    "spike-by": ("spike_ns", duration_ns),
}

LOAD: Known = {
    "messages": ("messages", int),
    "rate": ("rate_per_s", per_second),
    "size": ("size_bytes", size_bytes),
    "safe": ("safe", share),
    "subset": ("subset", share),
    "append": ("append", share),
}

_LATENCY: Known = {"latency": ("latency_ns", duration_ns), "jitter": ("jitter_ns", duration_ns)}
_WIRE: Known = {
    "rate": ("rate_bps", rate_bps),
    "overhead": ("overhead_bytes", size_bytes),
    "jitter": ("jitter_ns", duration_ns),
}
_PROPAGATION: Known = {"propagation": ("propagation_ns", duration_ns)}

_NETWORKS: dict[str, tuple[Callable[..., Network], Known]] = {
    "bus": (Bus, {**_WIRE, **_PROPAGATION}),
    "switched": (Switched, {**_WIRE, "latency": ("latency_ns", duration_ns)}),
    "lan": (Lan, _LATENCY),
    "wan": (Wan, _LATENCY),
    "channel": (
        Channel,
        {
            **_WIRE,
            **_PROPAGATION,
            "buffer": ("buffer_frames", int),
            "drain": ("drain_ns", duration_ns),
        },
    ),
    "manual": (Manual, {}),
}


def read_network(words: list[str], options: dict[str, str]) -> Network:
    """The network that a `network` command describes."""
    if len(words) != 1 or words[0] not in _NETWORKS:
        raise ValueError(f"choose a network: {', '.join(_NETWORKS)}")
    kind = words[0]
    make, known = _NETWORKS[kind]
    links = {name for name in options if kind == "wan" and ">" in name}
    read = settings({n: v for n, v in options.items() if n not in links}, known, kind)
    if links:
        read["links_ns"] = {link(name): duration_ns(options[name]) for name in sorted(links)}
    return make(**read)


def read_costs(options: Mapping[str, str]) -> Costs:
    """The costs of a `costs` command. An option in capitals is the cost of receiving a message of
    that type."""
    known: Known = {
        "send": ("send_ns", duration_ns),
        "receive": ("receive_ns", duration_ns),
        "byte": ("byte_ns", duration_ns),
    }
    tags = {name: duration_ns(text) for name, text in options.items() if name.isupper()}
    rest = {name: text for name, text in options.items() if not name.isupper()}
    return Costs(**settings(rest, known, "costs"), tag_ns=tags)


def loser(
    tag: str,
    senders: tuple[NodeId, ...],
    receivers: tuple[NodeId, ...],
    times: int,
    fields: Mapping[str, str],
) -> Callable[[Transmission, NodeId], bool]:
    """A function that says whether a copy is lost: `times` copies of frames that match are, or all
    of them if `times` is 0."""
    left = times

    def lost(transmission: Transmission, receiver: NodeId) -> bool:
        nonlocal left
        matches = (
            (left > 0 or not times)
            and transmission.tag == tag
            and transmission.sender in senders
            and receiver in receivers
            and _has(transmission.frame.message, fields)
        )
        left -= matches
        return matches

    return lost


def _has(message: object, fields: Mapping[str, str]) -> bool:
    """Whether a message has these fields, with values whose text is as given."""
    return all(str(getattr(message, name, None)) == text for name, text in fields.items())


def split(arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    """Plain words, and `name=value` options."""
    words, options = [], {}
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if equals and name:
            options[name] = text
        else:
            words.append(argument)
    return words, options


def settings(options: Mapping[str, str], known: Known, what: str) -> dict[str, Any]:
    """Options as keyword arguments."""
    read = {}
    for option, text in options.items():
        if option not in known:
            raise ValueError(f"{what} has no option {option!r}; it has: {', '.join(known)}")
        name, reader = known[option]
        read[name] = reader(text)
    return read


def link(text: str) -> tuple[str, str]:
    """`a>b` as a pair."""
    sender, arrow, receiver = text.partition(">")
    if not arrow:
        raise ValueError(f"{text!r} is not a link; write one like a>b")
    return sender, receiver


def exactly(count: int, words: list[str], what: str) -> list[str]:
    """The words if there are `count` of them; else ValueError, which asks for `what`."""
    if len(words) != count:
        raise ValueError(f"write {what}")
    return words


def none_left(options: Mapping[str, str]) -> None:
    if options:
        raise ValueError(f"there is no option {', '.join(options)} here")
