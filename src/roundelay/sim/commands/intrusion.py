"""Scenario commands of an intruder, who has no key, and of the keys of a group."""

from typing import TYPE_CHECKING

from roundelay.core.contract import Boot
from roundelay.core.ids import NodeId
from roundelay.membership.messages import Join, Leave
from roundelay.sim import intruder
from roundelay.sim.arguments import exactly, none_left, split
from roundelay.sim.capture import HEADER_BYTES, Capture
from roundelay.sim.units import per_second
from roundelay.wire.endpoint import Endpoint

if TYPE_CHECKING:
    from roundelay.sim.runner import ScenarioRunner
    from roundelay.sim.sealed import Sealing

FORGED = ("leave", "join")
FORGED_NUMBERS = 1_000_000
"""How far ahead of its node's count the number of a forged frame is."""


def intrude(runner: "ScenarioRunner", arguments: list[str]) -> None:
    """Let an intruder act at random, or no longer."""
    words, options = split(arguments)
    world = runner.world
    if words == ["none"]:
        none_left(options)
        world.intruder = None
        return
    exactly(0, words, "options alone, like: intruder rate=100/s kinds=replay,flip")
    rate = per_second(options.pop("rate", "100/s"))
    kinds = options.pop("kinds", ",".join(intruder.KINDS)).split(",")
    seed = int(options.pop("seed", str(runner.seed)))
    only = options.pop("only", None)
    none_left(options)
    if unknown := [kind for kind in kinds if kind not in intruder.KINDS]:
        raise ValueError(
            f"an intruder does not know {unknown[0]!r}; choose of: {', '.join(intruder.KINDS)}"
        )
    acts = None if only is None else [int(number) for number in only.split(",") if number]
    world.intruder = intruder.Intruder(world, seed, rate, kinds, acts)


def replay(runner: "ScenarioRunner", arguments: list[str]) -> None:
    """Send again what was sent before, in its order, to those whom it was for."""
    words, options = split(arguments)
    (to,) = exactly(1, words, "a receiver, or all")
    world = runner.world
    receivers = world.nodes if to == "all" else (runner.node(to),)
    senders = runner.nodes(options.pop("from", ",".join(world.nodes)))
    tag = options.pop("type", None)
    life = options.pop("life", None)
    copies = int(options.pop("copies", "1"))
    none_left(options)
    made = [
        (receiver, captured.transmission.data)
        for captured in list(_capture(runner).all)
        for receiver in captured.receivers
        if receiver in receivers
        and captured.transmission.sender in senders
        and tag in (None, captured.transmission.tag)
        and life in (None, str(captured.transmission.incarnation))
        for _ in range(copies)
    ]
    if not made:
        raise ValueError("no such datagram was sent since somebody listens")
    intruder.send(world, "replay", made)


def forge(runner: "ScenarioRunner", arguments: list[str]) -> None:
    """Send a frame in the name of a node, without a seal or with one that is made up."""
    words, options = split(arguments)
    sealed = "sealed" in words[2:]
    name, what = exactly(2, [w for w in words if w != "sealed"], "a node, and leave or join")
    world = runner.world
    receivers = runner.nodes(
        options.pop("to", ",".join(other for other in world.nodes if other != name))
    )
    without = options.pop("without", None)
    none_left(options)
    if what not in FORGED:
        raise ValueError(f"a frame that is forged is one of: {', '.join(FORGED)}")
    data = _forged(runner, runner.node(name), what, () if without is None else (without,))
    if sealed:
        data = _in_a_seal(runner, name, data)
    intruder.send(world, f"forged {what} of {name}", [(to, data) for to in receivers])


def _forged(
    runner: "ScenarioRunner", name: NodeId, what: str, without: tuple[NodeId, ...]
) -> bytes:
    """A frame in the name of a node, of the view that the node is in, with a right checksum."""
    host = runner.world.hosts[name]
    membership = getattr(host.core, "membership", None)
    if membership is None:
        raise ValueError("a static group has no such frames; write: engine NAME views")
    view = membership.view
    message = Leave() if what == "leave" else Join(view.members, without, view.id.seq)
    boot = Boot(runner.world.group, name, host.incarnation)
    endpoint: Endpoint[object] = Endpoint(boot, host.core.codec)
    # No frame of the node has this number, so that nobody takes one for the other in the trace.
    endpoint.frame_number = host.endpoint.frame_number + FORGED_NUMBERS
    endpoint.lamport = host.endpoint.lamport
    return endpoint.encode(message, view.id)[1]


def _in_a_seal(runner: "ScenarioRunner", name: NodeId, frame: bytes) -> bytes:
    """The frame as the next sealed datagram of a node would look from outside."""
    last = [c for c in _capture(runner).all if c.transmission.sender == name][-1:]
    if not last:
        raise ValueError(f"{name} has sent nothing yet whose seal could be imitated")
    header = last[0].transmission.data[:HEADER_BYTES]
    counter = int.from_bytes(header[28:]) + 1
    return header[:28] + counter.to_bytes(8) + frame + bytes(16)


def _capture(runner: "ScenarioRunner") -> Capture:
    capture = runner.world.capture
    if capture is None:
        raise ValueError("nobody listens; write: listen")
    return capture


def listen(runner: "ScenarioRunner", arguments: list[str]) -> None:
    """Record all that is sent from now on. Where traffic is sealed, this is always done."""
    exactly(0, arguments, "nothing more")
    if runner.world.capture is None:
        runner.world.capture = Capture()


def change_key(runner: "ScenarioRunner", arguments: list[str]) -> None:
    sealing = _sealing(runner)
    match arguments:
        case ["rotate"]:
            sealing.rotate()
        case ["retire"]:
            sealing.retire()
        case ["reload", *names] if names:
            nodes = runner.world.nodes if names == ["all"] else [runner.node(n) for n in names]
            for node in nodes:
                host = runner.world.hosts[node]
                if host.alive and host.seal is not None:
                    host.seal.reload()
        case _:
            raise ValueError("write: key rotate, key reload a b, key reload all or key retire")


def print_seals(runner: "ScenarioRunner", arguments: list[str]) -> None:
    """Print which keys nodes use, and whom they believe."""
    _sealing(runner)
    for node in arguments or runner.world.nodes:
        host = runner.world.hosts[runner.node(node)]
        if not host.alive or host.seal is None:
            runner.print(f"{node}: down")
            continue
        status = host.seal.status()
        newest = status["accepts"].index(status["sends_with"]) == 0
        keys = f"{len(status['accepts'])} key{'s' * (len(status['accepts']) > 1)}"
        sends = f"sends with the {'newest' if newest else 'old one'}"
        proven = " ".join(status["proven"]) or "nobody"
        runner.print(f"{node}: {keys}, {sends}; proven: {proven}")


def _sealing(runner: "ScenarioRunner") -> "Sealing":
    sealing = runner.world.sealing
    if sealing is None:
        raise ValueError("this group has no key; write before nodes: seal")
    return sealing


COMMANDS = {
    "intruder": intrude,
    "replay": replay,
    "forge": forge,
    "listen": listen,
    "key": change_key,
    "seals": print_seals,
}
