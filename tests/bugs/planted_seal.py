"""Bugs of the seal, as somebody could have written them: each would let an attacker in, or let one
without the key do harm. What convicts them is in `test_seal_bugs`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from roundelay.core.contract import Boot
from roundelay.sealing import seal
from roundelay.sealing.ciphers import Cipher, Crypt, aead
from roundelay.sealing.lives import WINDOW, WINDOW_MASK, Life, Peer
from roundelay.sealing.proofs import CODEC, Answer, Challenge, encode_proof
from roundelay.sealing.seal import PROOF_INTERVAL_S, Seal
from roundelay.wire.frame import decode
from roundelay.wire.primitives import Reason, WireError

from .planted import Patch

SEAL_BUGS: dict[str, tuple[str, Callable[[], list[Patch]]]] = {}
"""By name: what is wrong, and the patches."""


def bug(about: str) -> Callable[[Callable[[], list[Patch]]], Callable[[], list[Patch]]]:
    """Register the patches below under the function's name."""

    def register(patches: Callable[[], list[Patch]]) -> Callable[[], list[Patch]]:
        SEAL_BUGS[patches.__name__] = (about, patches)
        return patches

    return register


@contextmanager
def planted(name: str) -> Iterator[None]:
    """The seal with this bug in it."""
    patches = [patch.object(*where) for where in SEAL_BUGS[name][1]()]
    for each in patches:
        each.start()
    try:
        yield
    finally:
        for each in reversed(patches):
            each.stop()


@bug("A boot is known by the name of its node, so a restarted node uses its nonces again.")
def nonce_reused_after_a_restart() -> list[Patch]:
    init = Seal.__init__

    def forgetful(self: Seal, node: Boot, peers: Any, keys: Any, random: Any, *rest: Any) -> None:
        boots = [node.node.encode().ljust(16)[:16]]
        init(self, node, peers, keys, lambda n: boots.pop() if boots else random(n), *rest)

    return [(Seal, "__init__", forgetful)]


@bug("The window admits one datagram more than it remembers, whether it came before or not.")
def window_off_by_one() -> list[Patch]:
    def admits(self: Life, counter: int, now: float) -> bool:
        if counter <= self._floor and (counter <= self._before or now >= self._expires_before):
            return False
        if counter > self.top:
            return True
        return counter >= self.top - WINDOW and self.seen[counter & WINDOW_MASK] != counter

    return [(Life, "admits", admits)]


@bug("An answer counts for whoever asked the same, not for the boot that it names.")
def challenge_not_bound_to_the_asker() -> list[Patch]:
    on_proof = Seal._on_proof

    def credulous(self: Seal, frame: bytes, *rest: Any) -> Reason | None:
        with suppress(WireError):
            found = decode(frame, CODEC, {}, sealed=True)
            if isinstance(found.message, Answer):
                frame = encode_proof(found.origin, replace(found.message, boot=self.boot))
        return on_proof(self, frame, *rest)

    return [(Seal, "_on_proof", credulous)]


@bug("An answer proves that its node is alive, and so the boot of it that was proven before.")
def challenge_not_bound_to_the_boot() -> list[Patch]:
    on_proof = Seal._on_proof

    def by_name(
        self: Seal, frame: bytes, peer: Peer, boot: bytes, life: Life | None, *rest: Any
    ) -> Reason | None:
        return on_proof(self, frame, peer, boot, life or peer.life, *rest)

    return [(Seal, "_on_proof", by_name)]


@bug("A boot that was proven once is alive for ever.")
def proof_without_end() -> list[Patch]:
    prove = Life.prove

    def for_ever(self: Life, counter: int, asked_at: float, now: float) -> None:
        prove(self, counter, asked_at, now)
        self.expires = float("inf")

    return [(Life, "prove", for_ever)]


@bug("A proof vouches for all that a boot ever sent.")
def proof_of_the_past() -> list[Patch]:
    prove = Life.prove

    def backwards(self: Life, counter: int, asked_at: float, now: float) -> None:
        prove(self, counter, asked_at, now)
        self._floor = 0

    return [(Life, "prove", backwards)]


@bug("The tag does not cover the header.")
def header_not_authenticated() -> list[Patch]:
    def bare(cipher: Cipher, key: bytes) -> tuple[Crypt, Crypt]:
        encrypt, decrypt = aead(cipher, key)
        return (
            lambda nonce, data, header: encrypt(nonce, data, b""),
            lambda nonce, data, header: decrypt(nonce, data, b""),
        )

    return [(seal, "aead", bare)]


@bug("The window believes a counter before the datagram is opened.")
def counter_believed_unopened() -> list[Patch]:
    opening = Seal.open

    def hasty(self: Seal, data: bytes, now: float) -> Any:
        channel = self._channels.get(data[:28])
        found = opening(self, data, now)
        if channel is not None and found is Reason.SEAL:
            channel.life.mark(int.from_bytes(data[28:36]))
        return found

    return [(Seal, "open", hasty)]


@bug("The old key is accepted for as long as the node runs.")
def old_key_alive_after_a_rotation() -> list[Patch]:
    def switch_only(self: Seal, now: float) -> None:
        self._change_at = float("inf")
        self._choose_key(now)

    return [(Seal, "_on_change", switch_only)]


@bug("A second reload of the same file brings the old key back.")
def old_key_comes_back() -> list[Patch]:
    change_keys = Seal.change_keys

    def again(self: Seal, keys: Any, now: float) -> bool:
        self._given = self.key_ring
        return change_keys(self, keys, now)

    return [(Seal, "change_keys", again)]


@bug("Whoever asks for a proof counts as proven.")
def unproven_boot_counts_as_a_member() -> list[Patch]:
    on_proof = Seal._on_proof

    def trusting(
        self: Seal,
        frame: bytes,
        peer: Peer,
        boot: bytes,
        life: Life | None,
        counter: int,
        key_id: bytes,
        now: float,
    ) -> Reason | None:
        found = decode(frame, CODEC, {}, sealed=True)
        if life is None and isinstance(found.message, Challenge):
            life = self._begin(peer, boot, found.origin)
            life.prove(counter, now, now)
        return on_proof(self, frame, peer, boot, life, counter, key_id, now)

    return [(Seal, "_on_proof", trusting)]


@bug("A frame of any node of the group is accepted from any boot that is proven.")
def name_not_bound() -> list[Patch]:
    begin = Seal._begin

    def anybody(self: Seal, peer: Peer, boot: bytes, origin: Any) -> Life:
        life = begin(self, peer, boot, origin)
        life.origin = b""
        return life

    return [(Seal, "_begin", anybody)]


@bug("Renewals share the limit of answers to unknown boots, which an attacker uses up.")
def renewals_starved() -> list[Patch]:
    renew = Seal._renew

    def one_limit(self: Seal, peer: Peer, key_id: bytes, now: float) -> None:
        if now >= peer.answer_from:
            renew(self, peer, key_id, now)

    return [(Seal, "_renew", one_limit)]


@bug("Who has just asked does not answer, so nodes that ask each other at once never answer.")
def askers_do_not_answer() -> list[Patch]:
    challenge = Seal._challenge

    def busy(self: Seal, peer: Peer, key_id: bytes, now: float) -> None:
        challenge(self, peer, key_id, now)
        peer.answer_from = max(peer.answer_from, peer.challenged_at + PROOF_INTERVAL_S)

    return [(Seal, "_challenge", busy)]


@bug("Every answer is a new proof, and soon none is left that vouches for what it overtook.")
def proofs_too_often() -> list[Patch]:
    prove = Life.prove

    def always(self: Life, counter: int, asked_at: float, now: float) -> None:
        self.renew_at = min(self.renew_at, now)
        prove(self, counter, asked_at, now)

    return [(Life, "prove", always)]


@bug("Everything that opens is answered.")
def challenges_without_limit() -> list[Patch]:
    challenge = Seal._challenge

    def talkative(self: Seal, peer: Peer, key_id: bytes, now: float) -> None:
        peer.challenged_at = float("-inf")
        challenge(self, peer, key_id, now)

    return [(Seal, "_challenge", talkative)]


@bug("Boots that were proven are remembered for ever.")
def lives_kept() -> list[Patch]:
    begin = Seal._begin

    def hoarding(self: Seal, peer: Peer, boot: bytes, origin: Any) -> Life:
        old = peer.life
        life = begin(self, peer, boot, origin)
        if old is not None:
            self._lives[old.boot] = old
        return life

    return [(Seal, "_begin", hoarding)]
