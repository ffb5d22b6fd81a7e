"""Who slows a group down: the likeliest cause, in a sentence, and what to look at."""

from collections.abc import Iterator, Mapping
from typing import Any

REPEATS_PER_S = 20.0
"""Packets that come more than once in a second, above which a loss is blamed. Less: a single
lost packet is told of; more: small losses go unnoticed."""
WAITING_PACKETS = 50
"""Packets that wait to be read, above which a node counts as a slow reader."""


def hindrance(nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, str] | None:
    """The node that slows its group down most, if one does."""
    return next(_found(nodes), None)


def _found(nodes: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    for node in nodes.values():
        if node["state"] == "silent":
            yield _said(
                node,
                "does not answer: its process is stopped, or its event loop is held up. The others "
                "give it up after timeout_s and go on",
                "timeout_s",
            )
    up = [node for node in nodes.values() if node["state"] == "up" and "numbers" in node]
    for node in sorted(up, key=lambda one: -one["numbers"]["packets_to_read"]):
        if node["numbers"]["packets_to_read"] > WAITING_PACKETS:
            yield _said(
                node,
                f"has {node['numbers']['packets_to_read']:,} packets that its application did not "
                "read yet; the whole group waits for the slowest reader",
                "backlog_bytes",
            )
    for node in up:
        full = node["drops"].get("buffer_full", {}).get("lately", 0)
        if full:
            yield _said(
                node,
                f"lost {full:,} datagrams lately, as its receive buffer was full",
                "net.core.rmem_max",
            )
    for node in up:
        if node["phase"] != "operational":
            why = f" ({node['gather']})" if node.get("gather") else ""
            yield _said(
                node,
                f"is looking for the next view{why}; nothing is delivered until it has one",
                "timeout_s",
            )
    held = max(up, key=lambda one: one["pauses_lately"], default=None)
    if held is not None and held["pauses_lately"]:
        yield _said(
            held,
            f"did nothing for a moment {held['pauses_lately']} times lately: its machine is "
            "overloaded, or its application holds up the event loop, and the token waits there",
            "timeout_s, the load of the machine",
        )
    worst = max(up, key=lambda one: one["numbers"].get("repeats_per_s", 0.0), default=None)
    if worst is not None and worst["numbers"].get("repeats_per_s", 0.0) > REPEATS_PER_S:
        yield _said(
            worst,
            f"gets {worst['numbers']['repeats_per_s']:.0f} packets/s again that it had: some "
            "member of its view loses packets, and asks for them",
            "datagram_bytes, net.core.rmem_max, the network",
        )
    for node in up:
        if node["log"] is not None and node["log"]["state"] != "open":
            yield _said(
                node,
                f"has a log that is {node['log']['state']}: {node['log']['why']}",
                "the disk of the journal",
            )


def _said(node: Mapping[str, Any], sentence: str, look_at: str) -> dict[str, str]:
    return {"node": node["name"], "sentence": sentence, "look_at": look_at}
