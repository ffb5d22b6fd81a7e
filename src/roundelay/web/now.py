"""How each group is now: what the page draws, from what its nodes told last."""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from roundelay.web.figures import dropped, durations, lately, rates
from roundelay.web.hindrances import hindrance
from roundelay.web.watching import Watched, Watching


def groups(watching: Watching) -> list[dict[str, Any]]:
    """Every group of which a node was heard, by name."""
    with watching.lock:
        found: dict[str, list[Watched]] = {}
        for watched in watching.nodes():
            if watched.status is not None or watched.trouble:
                found.setdefault(watched.group, []).append(watched)
        return [group(name, nodes) for name, nodes in sorted(found.items())]


def check(watched: Watched, recent: Mapping[str, Any]) -> None:
    """LookupError, TypeError or ValueError if the page could not show what a node told; call it
    under the lock."""
    assert watched.status is not None
    if not isinstance(watched.status["peers"], dict):
        raise TypeError("peers")
    shown = group(watched.group, [replace(watched, state="up")])
    json.dumps(shown, allow_nan=False)  # A browser knows no NaN.


def group(name: str, watched: Iterable[Watched]) -> dict[str, Any]:
    """One group; call it under the lock."""
    by_name: dict[str, Watched] = {}
    for one in sorted(watched, key=lambda w: (w.state == "up", w.since)):
        by_name[one.node] = one  # One that runs wins over one that is gone.
    told = [w for w in by_name.values() if w.status is not None]
    nodes = {w.node: node(w) for w in by_name.values()}
    peers = {str(peer) for w in told for peer in (w.status or {})["peers"]}
    for peer in peers - nodes.keys():
        nodes[peer] = {"name": peer, "state": "elsewhere", "warnings": []}
    newest = max(told, key=lambda w: (w.state == "up", w.since), default=None)
    status = None if newest is None else newest.status
    rings = _rings(nodes)
    return {
        "name": name,
        "engine": "" if status is None else status["engine"],
        "timeout_s": None if status is None else status["timeout_s"],
        "nodes": [nodes[one] for one in sorted(nodes)],
        "rings": rings,
        "token": _token(nodes, rings),
        "slow": hindrance(nodes),
    }


def node(watched: Watched) -> dict[str, Any]:
    """One node, as the page shows it."""
    status = watched.status
    document: dict[str, Any] = {
        "name": watched.node,
        "state": watched.state,
        "for_s": round(time.monotonic() - watched.since, 1),
        "warnings": [watched.trouble] if watched.trouble else [],
    }
    if status is None:
        return document
    told = list(watched.kept)
    view, queues, counters = status["view"], status["queues"], status["counters"]
    latency, rotation = durations(told, "latency"), durations(told, "rotation")
    numbers = {
        **rates(told),
        "p50_ms": latency["p50_ms"],
        "p99_ms": latency["p99_ms"],
        "rotation_ms": rotation["mean_ms"],
        "packets_to_send": queues["packets_to_send"],
        "packets_to_read": queues["packets_to_read"],
        "uptime_s": status["uptime_s"],
        **{name: counters[name] for name in ("views", "suspicions", "pauses")},
    }
    document |= {
        "phase": status["phase"],
        "gather": status["gather"],
        "incarnation": str(status["incarnation"]),
        "view": None
        if view is None
        else {key: view[key] for key in ("id", "members", "primary", "why", "voters")},
        "numbers": numbers,
        "drops": dropped(told),
        "pauses_lately": lately(told, "pauses"),
        "token_ns": status["token_ns"] and status["token_ns"] + watched.shift_ns,
        "sealed": status["seal"] is not None,
        "log": _log(status["log"]),
        "check": status["check"]
        and {k: status["check"][k] for k in ("rows", "violations", "first")},
    }
    document["warnings"] += status["warnings"]
    return document


def _log(log: Mapping[str, Any] | None) -> dict[str, Any] | None:
    names = ("state", "condition", "why", "length", "committed", "lag")
    return None if log is None else {name: log[name] for name in names}


def _rings(nodes: Mapping[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The views that running nodes are in, the primary one first, then the largest. A view that
    somebody left long ago is over for all that still name it, unless they run."""
    views: dict[str, dict[str, Any]] = {}
    for one in nodes.values():
        if one["state"] in ("up", "silent") and one.get("view"):
            ring = views.setdefault(one["view"]["id"], {**one["view"], "told_by": []})
            ring["told_by"].append(one["name"])
    told = [view for view in views.values() if _is_present(view, nodes)]
    return sorted(told, key=lambda v: (not v["primary"], -len(v["members"]), v["id"]))


def _is_present(view: Mapping[str, Any], nodes: Mapping[str, dict[str, Any]]) -> bool:
    """Whether a node that answers says that it is in the view; one that is stopped still names the
    view of before."""
    return any(nodes[name]["state"] == "up" for name in view["told_by"])


def _token(
    nodes: Mapping[str, dict[str, Any]], rings: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """For each ring, who had the token last, and whether it rests there: it does when nobody has
    anything to say."""
    found = []
    for ring in rings:
        here = [
            nodes[name]
            for name in ring["told_by"]
            if nodes[name]["state"] == "up" and nodes[name].get("token_ns") is not None
        ]
        if not here:
            continue
        last = max(here, key=lambda one: one["token_ns"])
        numbers = last["numbers"]
        busy = any(one["numbers"].get("messages_per_s") for one in here)
        found.append(
            {
                "view": ring["id"],
                "node": last["name"],
                "rests": not busy,
                "visits_per_s": numbers.get("visits_per_s", 0.0),
                "rotation_ms": numbers["rotation_ms"],
            }
        )
    return found
