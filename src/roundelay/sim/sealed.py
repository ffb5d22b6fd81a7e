"""Sealed traffic in the simulator: hosts drive the layer `roundelay.sealing` as nodes do.

Keys and random bytes come from the seed, the time is virtual time. What differs from nodes: there
is one key file for all hosts, and a trace has a row for every datagram that is refused. Challenges
and answers travel like frames, but have no rows.

Only worlds with sealed traffic import this module: it needs the package `cryptography`.
"""

from random import Random
from typing import TYPE_CHECKING, Any

from roundelay.core.contract import Boot
from roundelay.core.ids import NodeId
from roundelay.sealing.ciphers import KEY_BYTES, Cipher, aead
from roundelay.sealing.keys import GroupKey, KeyRing, rotated
from roundelay.sealing.proofs import CODEC, Challenge
from roundelay.sealing.seal import HEADER_BYTES, Seal
from roundelay.sim.transmission import Transmission
from roundelay.wire.endpoint import Endpoint
from roundelay.wire.frame import PROOF_TAG, Frame, decode
from roundelay.wire.primitives import Reason

if TYPE_CHECKING:
    from roundelay.sim.world import World

CIPHERS = {"aes": Cipher.AES, "chacha": Cipher.CHACHA}

_NONCE = slice(24, HEADER_BYTES)
_BOOT = slice(12, 28)
_KEY_ID = slice(4, 12)


class Sealing:
    """The keys of a world, and what else its hosts need to seal."""

    def __init__(self, seed: int, cipher: Cipher = Cipher.AES) -> None:
        self._seed = seed
        self._cipher = cipher
        self._made: list[GroupKey] = []
        """Every key there was."""
        self.keys: KeyRing = (self._new_key(),)
        """What the key file holds: hosts that boot read it, others when they are told."""

    def _new_key(self) -> GroupKey:
        random = Random(f"roundelay/{self._seed}/key/{len(self._made)}")
        self._made.append(GroupKey(random.randbytes(KEY_BYTES)))
        return self._made[-1]

    def rotate(self) -> None:
        """Write a new key into the file; the one before it becomes the old one."""
        random = Random(f"roundelay/{self._seed}/key/{len(self._made)}")
        self.keys = rotated(self.keys, random.randbytes(KEY_BYTES))
        self._made.append(self.keys[0])

    def retire(self) -> None:
        """Take the old key out of the file."""
        self.keys = self.keys[:1]

    def host_seal(self, world: "World", boot: Boot, endpoint: Endpoint[Any]) -> "HostSeal":
        random = Random(f"roundelay/{self._seed}/seal/{boot.node}/{boot.incarnation}")
        seal = Seal(
            boot,
            world.nodes,
            self.keys,
            random.randbytes,
            _seconds(world),
            self._cipher,
            reflect=world.network.reflects,
        )
        return HostSeal(world, boot, endpoint, seal, self)

    def proof_in(self, data: bytes, group: str) -> Frame[Any]:
        """The challenge or answer in a datagram, for people to see."""
        for key in self._made:
            if key.id(group) == data[_KEY_ID]:
                cipher = Cipher(data[3])
                decrypt = aead(cipher, key.boot_key(group, cipher, data[_BOOT]))[1]
                header = data[:HEADER_BYTES]
                frame = decrypt(data[_NONCE], data[HEADER_BYTES:], header)
                return decode(frame, CODEC, {}, sealed=True)
        raise AssertionError("a proof under a key that was never made")


class ProofSent(Transmission):
    """A challenge or an answer on the wire."""

    __slots__ = ("_group", "_sealing")

    traced = False

    def __init__(self, sealing: Sealing, boot: Boot, number: int, to: NodeId, data: bytes) -> None:
        self.sender = boot.node
        self.incarnation = boot.incarnation
        self.number = number
        self.to = to
        self._data = data
        self._tag = CODEC.tags[PROOF_TAG]
        self._group = boot.group
        self._sealing = sealing
        self._frame = None

    @property
    def frame(self) -> Frame[Any]:
        if self._frame is None:
            self._frame = self._sealing.proof_in(self.data, self._group)
        return self._frame

    def __str__(self) -> str:
        return "challenge" if isinstance(self.frame.message, Challenge) else "answer"


class HostSeal:
    """The seal of one boot of a host."""

    def __init__(
        self,
        world: "World",
        boot: Boot,
        endpoint: Endpoint[Any],
        seal: Seal,
        sealing: Sealing,
    ) -> None:
        self._seal = seal
        self._world = world
        self._boot = boot
        self._endpoint = endpoint
        self._sealing = sealing
        self._proofs = 0
        """Challenges and answers sent so far."""

    def seal(self, frame: bytes) -> bytes:
        """The datagram for a frame."""
        if self._world.network.reflects:
            self._seal.tick(_seconds(self._world))
        return self._seal.seal(frame)

    def open(self, data: bytes) -> Frame[Any] | Reason | None:
        """The frame in a datagram; or why it is refused; or None for a challenge or an answer."""
        world, seal = self._world, self._seal
        opened = seal.open(data, _seconds(world))
        if seal.outbox:
            self._send_proofs()
        if opened is None:
            return None
        if isinstance(opened, Reason):
            return self._endpoint.refuse(opened)
        world.observe(self._boot.node, "opens", data)
        return self._endpoint.receive(opened)

    def _send_proofs(self) -> None:
        proofs, self._seal.outbox[:] = list(self._seal.outbox), []
        for to, data in proofs:
            self._proofs += 1
            proof = ProofSent(self._sealing, self._boot, self._proofs, to, data)
            self._world.observe(self._boot.node, "proves", proof)
            self._world.depart(proof)

    def reload(self) -> bool:
        """Use what the key file holds now; returns whether that is something new."""
        return self._seal.change_keys(self._sealing.keys, _seconds(self._world))

    def status(self) -> dict[str, Any]:
        return self._seal.status(_seconds(self._world))


def _seconds(world: "World") -> float:
    return world.loop.now / 1e9
