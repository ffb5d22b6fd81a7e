"""Sealed traffic of a node: datagrams are opened before they are received, and sealed after they
are encoded. A node without a key has no such part, and its datagrams go straight to `receiving`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roundelay.runtime.errors import ConfigError
from roundelay.runtime.node_log import NodeLog
from roundelay.runtime.peer_addresses import PeerAddresses
from roundelay.runtime.port import Port
from roundelay.runtime.receiving import Receiving
from roundelay.wire.endpoint import Endpoint
from roundelay.wire.primitives import Reason

if TYPE_CHECKING:  # Only nodes with a key need the package `cryptography`.
    from roundelay.sealing.keys import KeyRing
    from roundelay.sealing.seal import Seal


@dataclass(frozen=True, slots=True)
class SealSetup:
    """What a node with a key is made with."""

    seal: "Seal"
    read_keys: "Callable[[], KeyRing]"
    """Reads the key file again; a StartError or ConfigError if it cannot be used."""


class Sealing:
    """Opens what reaches one node, and sends what its seal has to say."""

    def __init__(
        self,
        setup: SealSetup,
        receiving: Receiving,
        endpoint: Endpoint[Any],
        port: Port,
        peer_addresses: PeerAddresses,
        node_log: NodeLog,
        clock: Callable[[], float],
    ) -> None:
        self.seal = setup.seal
        self._read_keys = setup.read_keys
        self._open = setup.seal.open
        self._receiving = receiving
        self._endpoint = endpoint
        self._port = port
        self._addresses = peer_addresses
        self._node_log = node_log
        self._clock = clock

    def receive(self, data: bytes, *, stale: bool = False) -> None:
        """Receive one datagram; a `stale` one may have waited while the process was stopped."""
        frame = self._open(data, self._clock())
        if self.seal.outbox:
            self._send_proofs()
        if type(frame) is bytes:
            self._receiving.receive(frame, stale=stale)
        elif frame is not None:
            assert isinstance(frame, Reason)
            self._on_drop(frame, data)

    def receive_many(self, datagrams: Sequence[bytes]) -> None:
        """The same as `receive` for each; but those that can be opened are received together."""
        now, open_one = self._clock(), self._open
        frames: list[bytes] = []
        refused: dict[
            Reason, list[bytes]
        ] = {}  # A flood comes in bursts: they are counted at once.
        for data in datagrams:
            frame = open_one(data, now)
            if type(frame) is bytes:
                frames.append(frame)
            elif type(frame) is Reason:
                refused.setdefault(frame, []).append(data)
        for reason, dropped in refused.items():
            self._on_drop(reason, dropped[0], len(dropped))
        if self.seal.outbox:
            self._send_proofs()
        if frames:
            self._receiving.receive_many(frames)

    def _send_proofs(self) -> None:
        """Send challenges and answers: to where a peer is known to be, never to where a datagram
        came from. One that was found elsewhere is also asked where it should be: it may have been
        restarted there, or never have been elsewhere."""
        proofs, self.seal.outbox[:] = list(self.seal.outbox), []
        for peer, data in proofs:
            self._port.socket.send(data, tuple(self._addresses.places(peer)))

    def _on_drop(self, reason: Reason, data: bytes, count: int = 1) -> None:
        """A datagram was refused, or several for one reason. They have no rows in a trace: whoever
        floods this node must not fill its disk."""
        self._endpoint.refuse(reason, count)
        self._port.refused += count
        said = _SAID.get(reason)
        if said is not None:
            said(self._node_log, self._port.source, data)

    def reload(self) -> dict[str, Any]:
        """Read the key file again and use what it holds, or raise a StartError or ConfigError; then
        nothing has changed."""
        now = self._clock()
        changed = self.seal.change_keys(self._read_keys(), now)
        if changed:
            self._node_log.keys_changed(len(self.seal.key_ids))
        return {"changed": changed, **self.seal.status(now)}

    def status(self) -> dict[str, Any]:
        return self.seal.status(self._clock())


def no_key() -> ConfigError:
    return ConfigError(
        "this node has no key, so there is none to read again; start it with the setting key"
    )


_Say = Callable[[NodeLog, Any, bytes], None]
_SAID: dict[Reason, _Say] = {
    Reason.PLAIN: lambda node_log, source, data: node_log.plain_peer(source),
    Reason.KEY: lambda node_log, source, data: node_log.other_key(source),
    Reason.STRANGER: lambda node_log, source, data: node_log.sealed_stranger(source),
    Reason.OWN_NAME: lambda node_log, source, data: node_log.own_name(source),
    Reason.VERSION: lambda node_log, source, data: node_log.seal_version(data[2], data[3], source),
}
