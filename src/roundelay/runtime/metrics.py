"""A status document as metrics for Prometheus."""

from collections.abc import Callable
from typing import Any, TypeAlias

Metric: TypeAlias = Callable[[str, str, str, list[tuple[str, object]]], None]

_LOG_GAUGES = (
    ("first", "The first entry that the node holds"),
    ("length", "Entries that the node has"),
    ("stored", "Entries that are stored as the policy wants it"),
    ("committed", "Entries that are known to be committed"),
    ("lag", "Entries that are not known to be committed"),
    ("waiting", "Messages that were appended here and are not known to be committed"),
    ("unwritten_bytes", "Bytes that wait for the disk"),
    ("generation", "How often an operator gave up a lost majority"),
    ("applied", "Entries that the machine has applied"),
    ("snapshot", "The index of the newest snapshot"),
)
"""Those of what a node does not have, like a machine, are left out."""
_GAUGES = (
    ("uptime_s", "uptime_seconds", "Seconds since the node started"),
    ("receive_buffer_bytes", "receive_buffer_bytes", "Size of the socket's receive buffer"),
)


def prometheus(document: dict[str, Any]) -> str:
    """The status in Prometheus's text format."""
    labels = f'group="{_escaped(document["group"])}",node="{_escaped(document["node"])}"'
    lines: list[str] = []

    def metric(name: str, kind: str, about: str, samples: list[tuple[str, object]]) -> None:
        lines.append(f"# HELP roundelay_{name} {about}.")
        lines.append(f"# TYPE roundelay_{name} {kind}")
        lines.extend(f"roundelay_{name}{suffix} {value}" for suffix, value in samples)

    plain = f"{{{labels}}}"
    for key, name, about in _GAUGES:
        metric(name, "gauge", about, [(plain, document[key])])
    view = document["view"]
    if view is not None:
        metric("members", "gauge", "Members of the view", [(plain, len(view["members"]))])
        primary = int(view["primary"])
        metric("primary", "gauge", "Whether the view is the primary component", [(plain, primary)])
    seal = document["seal"]
    metric("sealed", "gauge", "Whether datagrams are sealed", [(plain, int(seal is not None))])
    if seal is not None:
        proven = len(seal["proven"])
        metric("proven_peers", "gauge", "Peers that have proven to be alive", [(plain, proven)])
        accepted = len(seal["accepts"])
        metric("accepted_keys", "gauge", "Keys that are accepted", [(plain, accepted)])
    for key, value in document["queues"].items():
        metric(key, "gauge", f"{_spoken(key)} that wait", [(plain, value)])
    for key, value in document["counters"].items():
        metric(f"{key}_total", "counter", f"{_spoken(key)} since the start", [(plain, value)])
    drops = [(f'{{{labels},reason="{r}"}}', count) for r, count in document["drops"].items()]
    metric("drops_total", "counter", "Datagrams dropped", list(drops))
    if document.get("log") is not None:
        _log(document["log"], metric, plain)
        _machines(document["log"].get("machines") or {}, metric, labels)
    if document.get("trace") is not None:
        waits, waited_s = document["trace"]["waits"], document["trace"]["waited_s"]
        metric("trace_waits_total", "counter", "Waits for the disk of the trace", [(plain, waits)])
        about = "Seconds of these waits"
        metric("trace_waited_seconds_total", "counter", about, [(plain, waited_s)])
    if document.get("check") is not None:
        found = document["check"]["violations"]
        metric("violations_total", "counter", "Breaches found in own rows", [(plain, found)])
    histograms = [
        ("latency", "From send to delivery, at the sender", document["latency"]),
        ("rotation", "Between two visits of the token", document["rotation"]),
    ]
    if document.get("log") is not None:
        histograms += [
            ("log_sync", "Syncs of the journal", document["log"]["sync"]),
            ("log_commit", "From append to commit, at the sender", document["log"]["commit"]),
        ]
    for key, about, histogram in histograms:
        metric(f"{key}_seconds", "histogram", about, _buckets(histogram, labels))
    return "\n".join(lines) + "\n"


def _log(log: dict[str, Any], metric: Metric, plain: str) -> None:
    """The replicated log: lengths, and whether it is open."""
    for key, about in _LOG_GAUGES:
        if log[key] is not None:
            metric(f"log_{key}", "gauge", about, [(plain, log[key])])
    opened, able = int(log["state"] == "open"), int(log["condition"] == "able")
    metric("log_open", "gauge", "Whether what is appended is committed", [(plain, opened)])
    metric("log_able", "gauge", "Whether the node votes and keeps up", [(plain, able)])


def _machines(machines: dict[str, Any], metric: Metric, labels: str) -> None:
    """Numbers that the replicated machines tell of themselves; of lists, how long they are."""
    samples: dict[str, list[tuple[str, object]]] = {}
    for name, machine in machines.items():
        of = f'{{{labels},machine="{_escaped(name)}",kind="{_escaped(machine["kind"])}"}}'
        for key, value in machine.items():
            number = len(value) if isinstance(value, list) else value
            known = key.replace(" ", "_")
            if isinstance(number, int) and known.isidentifier() and known.isascii():
                samples.setdefault(known, []).append((of, number))
    for key, found in samples.items():
        metric(f"machine_{key}", "gauge", f"{_spoken(key)} of a replicated machine", found)


def _buckets(histogram: dict[str, Any], labels: str) -> list[tuple[str, object]]:
    samples: list[tuple[str, object]] = []
    total = 0
    ends = [f"{bound / 1e3:g}" for bound in histogram["bounds_ms"]]
    for end, count in zip([*ends, "+Inf"], histogram["counts"], strict=True):
        total += count
        samples.append((f'_bucket{{{labels},le="{end}"}}', total))
    mean = histogram["mean_ms"] or 0.0
    samples.append((f"_sum{{{labels}}}", round(mean * total / 1e3, 6)))
    samples.append((f"_count{{{labels}}}", total))
    return samples


def _spoken(key: str) -> str:
    return key.replace("_", " ").capitalize()


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"')
