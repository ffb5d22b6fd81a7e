"""The seal of one node: it seals what the node sends, and opens what arrives.

Theory of operation
===================

Whoever has the group's key is a member, and a datagram that does not open changes nothing. But an
attacker without the key can record datagrams and send them again, hours later too. A counter does
not help against that: a node that was restarted has forgotten what it saw, and knows nothing of the
boots of others that lived before it. So nothing is believed of a boot until it has proven to be
alive now:

    a                                b
    |---- any frame ---------------->|  unproven: dropped, and answered with
    |<--- CHALLENGE(c1) -------------|
    |---- ANSWER(c1, boot b, c2) --->|  a is proven at b
    |<--- ANSWER(c2, boot a) --------|  b is proven at a

An old ANSWER repeats an old challenge, or names an old boot, and proves nothing. A proof lasts
`PROOF_S` and is renewed while frames arrive. It vouches for what was sent after it: nothing older
than that ever has an effect. The proof of a new boot of a node ends the one of the boot before.

What an attacker can cost is bounded. Nothing is kept for a boot that is not proven. Challenges and
answers go to where the named peer is known to be, never to where a datagram came from, and few a
second. To open a datagram of an unknown boot takes longer than to send it, so only
`UNPROVEN_OPENINGS` are opened in `UNPROVEN_S`, and the rest is dropped. The boot of each peer that
has proven itself last does not share this limit, even when its proof has expired, so a flood keeps
new boots out while it lasts, and members in. Nor do replays of earlier boots keep a proof from
being renewed: what is sent because of them is limited apart from the rest.

A group changes its key while it runs. A node accepts the new key and the old one, and tells its
newest in every challenge and answer. It sends with the newest once no peer that it knows has only
the old one, or `SWITCH_S` after the change; and the old key is forgotten after `OLD_KEY_S`. So if
all nodes change their keys within `SWITCH_S`, none loses a datagram. The proof of a boot and its
counters are the same for both keys.
"""

import struct
from collections.abc import Callable, Iterable
from typing import Any

from roundelay.core.contract import Boot, Origin
from roundelay.core.ids import NodeId
from roundelay.sealing.ciphers import TAG_BYTES, Cipher, Crypt, InvalidTag, aead
from roundelay.sealing.keys import SEAL_VERSION, GroupKey, KeyRing
from roundelay.sealing.lives import WINDOW_MASK, Life, Peer
from roundelay.sealing.proofs import (
    BOOT_BYTES,
    CHALLENGE_BYTES,
    CODEC,
    NO_CHALLENGE,
    Answer,
    Challenge,
    Proof,
    encode_proof,
)
from roundelay.wire.frame import (
    MAGIC,
    ORIGIN_AT,
    PROOF_TAG,
    SEALED_MAGIC,
    TAG_AT,
    decode,
    encode_origin,
    origin_in,
)
from roundelay.wire.primitives import Reason, WireError

HEADER_BYTES = 36
OVERHEAD_BYTES = HEADER_BYTES + TAG_BYTES
"""How much larger a sealed datagram is than its frame."""
UNPROVEN_OPENINGS = 16
"""Datagrams of unproven boots that are opened within `UNPROVEN_S`. Too small: many nodes that start
at once wait for each other; too large: a flood takes the processor."""
UNPROVEN_S = 0.010
PROOF_INTERVAL_S = 0.040
"""Least time between two challenges to one peer, and between two answers to boots of it that are
not proven, in seconds: both together are 50 a second. Too small: a flood of old datagrams makes a
flood of these; too large: a lost one delays a new node."""
OLD_KEY_S = 60.0
"""For how long the old key is accepted after a change of keys, in seconds; twice `SWITCH_S`, for
nodes that change theirs later. Too small: they are not heard; too large: a stolen machine is shut
out later."""
SWITCH_S = 30.0
"""When a node sends with the new key at the latest, in seconds after the change, although peers
have not said that they have it."""
COPIED_BYTES = 4096
"""Datagrams up to this size are copied to be opened, larger ones are looked at in place."""

_KEY_AT, _BOOT_AT, _NONCE_AT, _COUNTER_AT = 4, 12, 24, 28
_NEVER = float("inf")
_COUNTER = struct.Struct(">Q")
_CIPHERS = {bytes((SEAL_VERSION, cipher)): cipher for cipher in Cipher}
"""By version and number, as they stand in a datagram."""

# To look up a member of an enumeration takes longer than to refuse a datagram.
_FOREIGN, _TRUNCATED, _VERSION, _KEY = (
    Reason.FOREIGN,
    Reason.TRUNCATED,
    Reason.VERSION,
    Reason.KEY,
)
_SEAL, _REPLAY, _UNPROVEN = Reason.SEAL, Reason.REPLAY, Reason.UNPROVEN

Random = Callable[[int], bytes]
"""So many random bytes, which nobody can guess."""


class _Sealer:
    """Seals for this node with one key."""

    __slots__ = ("encrypt", "key_id", "prefix")

    def __init__(self, key: GroupKey, group: str, cipher: Cipher, boot: bytes) -> None:
        self.key_id = key.id(group)
        self.encrypt, _ = aead(cipher, key.boot_key(group, cipher, boot))
        self.prefix = SEALED_MAGIC + bytes((SEAL_VERSION, cipher)) + self.key_id + boot


class _Channel:
    """Opens what one boot of a peer sends with one key."""

    __slots__ = ("decrypt", "key_id", "life")

    def __init__(self, decrypt: Crypt, life: Life, key_id: bytes) -> None:
        self.decrypt = decrypt
        self.life = life
        self.key_id = key_id


class Seal:
    """Seals and opens the datagrams of one node, for one boot of it.

    `now` is the time in seconds, on any clock that never goes back.
    """

    def __init__(
        self,
        node: Boot,
        peers: Iterable[NodeId],
        keys: KeyRing,
        random: Random,
        now: float,
        cipher: Cipher = Cipher.AES,
        *,
        reflect: bool = False,
    ) -> None:
        """With `reflect` its own datagrams are opened too: see `Endpoint`. They become too old as
        those of others do; so the driver calls `tick` before it seals, or else the first one after
        a long silence is refused."""
        self.boot = random(BOOT_BYTES)
        self.cipher = cipher
        self.outbox: list[tuple[NodeId, bytes]] = []
        """Challenges and answers, and to whom: the driver sends them after every call and empties
        the list."""
        self._origin = Origin(node.group, node.node, node.incarnation, None)
        self._random = random
        self._peers = {name: Peer(name) for name in peers if name != node.node}
        self._lives: dict[bytes, Life] = {}
        """Boots that have proven themselves, at most one of each peer."""
        self._channels: dict[bytes, _Channel] = {}
        """How to open datagrams that begin with these bytes, up to the counter."""
        self._counter = 0
        self._openings_since = -_NEVER
        self._openings = 0
        self._keys: dict[bytes, GroupKey] = {}
        self._sealers: list[_Sealer] = []
        self._switch_at = _NEVER
        self._old_until = _NEVER
        self._change_at = _NEVER
        """When the first of these is due, or own datagrams have to be looked at."""
        self._own: Life | None = None
        if reflect:
            self._own = Life(Peer(node.node), self.boot, _start(self._origin))
            self._lives[self.boot] = self._own
            self._renew_own(self._own, now)
        self.key_ring: KeyRing = ()
        """The keys that are accepted, the newest first."""
        self._given: KeyRing = ()
        """The keys that it was told last; the old one may have been forgotten since."""
        self._sealer: _Sealer
        """Seals what is sent now."""
        self.change_keys(keys, now)

    # Sealing

    def tick(self, now: float) -> None:
        """Tell the time."""
        if now >= self._change_at:
            self._on_change(now)

    def seal(self, frame: bytes) -> bytes:
        """The datagram for a frame."""
        return self._seal(frame, self._sealer)

    def _seal(self, frame: bytes, sealer: _Sealer) -> bytes:
        self._counter = counter = self._counter + 1
        header = sealer.prefix + _COUNTER.pack(counter)
        return header + sealer.encrypt(header[_NONCE_AT:], frame, header)

    # Opening

    def open(self, data: bytes, now: float) -> bytes | Reason | None:
        """The frame in a datagram; or why it is dropped; or None for a challenge or an answer."""
        if now >= self._change_at:
            self._on_change(now)
        channel = self._channels.get(data[:_COUNTER_AT])
        if channel is None:
            return self._open_other(data, now)
        size = len(data)
        if size < OVERHEAD_BYTES:
            return _TRUNCATED
        life = channel.life
        (counter,) = _COUNTER.unpack_from(data, _COUNTER_AT)
        # The usual case is looked at here: a call for every datagram would cost too much.
        if counter <= life.top and not life.admits(counter, now):
            return _REPLAY
        sealed = data[HEADER_BYTES:] if size <= COPIED_BYTES else memoryview(data)[HEADER_BYTES:]
        try:
            frame = channel.decrypt(data[_NONCE_AT:HEADER_BYTES], sealed, data[:HEADER_BYTES])
        except InvalidTag:
            return _SEAL
        life.seen[counter & WINDOW_MASK] = counter
        if counter > life.top:
            life.top = counter
        if not frame.startswith(life.origin, ORIGIN_AT):
            return Reason.IMPOSTOR
        if frame[TAG_AT] == PROOF_TAG:
            return self._on_proof(frame, life.peer, life.boot, life, counter, channel.key_id, now)
        if now >= life.renew_at:
            self._renew(life.peer, channel.key_id, now)
            if now >= life.expires:
                return _UNPROVEN
        return frame

    def _open_other(self, data: bytes, now: float) -> bytes | Reason | None:
        """Open a datagram of an unknown boot, or of one that was not heard with this key before."""
        # A flood is refused as early as possible.
        if len(data) < OVERHEAD_BYTES or data[:2] != SEALED_MAGIC:
            return _foreign(data)
        cipher = _CIPHERS.get(data[2:_KEY_AT])
        if cipher is None:
            return _VERSION
        key_id, boot = data[_KEY_AT:_BOOT_AT], data[_BOOT_AT:_COUNTER_AT]
        key = self._keys.get(key_id)
        if key is None:
            return _KEY
        life = self._lives.get(boot)
        if life is None:
            if boot == self.boot:
                return Reason.OWN
            if not self._may_open(now):
                return _UNPROVEN
        decrypt = aead(cipher, key.boot_key(self._origin.group, cipher, boot))[1]
        if life is not None:
            # At most one for each cipher and key: nobody can fill the memory with them.
            self._channels[data[:_COUNTER_AT]] = _Channel(decrypt, life, key_id)
            return self.open(data, now)
        header = data[:HEADER_BYTES]
        try:
            frame = decrypt(header[_NONCE_AT:], data[HEADER_BYTES:], header)
            origin = origin_in(frame)
        except InvalidTag:
            return _SEAL
        except WireError as e:
            return e.reason
        if origin.group != self._origin.group:
            return Reason.GROUP
        if origin.node == self._origin.node:
            return Reason.OWN_NAME
        peer = self._peers.get(origin.node)
        if peer is None:
            return Reason.STRANGER
        if frame[TAG_AT] == PROOF_TAG:
            (counter,) = _COUNTER.unpack_from(header, _COUNTER_AT)
            return self._on_proof(frame, peer, boot, None, counter, key_id, now)
        self._challenge(peer, key_id, now)
        return _UNPROVEN

    def _may_open(self, now: float) -> bool:
        """Whether there is still time to open a datagram of an unknown boot."""
        if now - self._openings_since >= UNPROVEN_S:
            self._openings_since, self._openings = now, 0
        self._openings += 1
        return self._openings <= UNPROVEN_OPENINGS

    # Proofs

    def _on_proof(
        self,
        frame: bytes,
        peer: Peer,
        boot: bytes,
        life: Life | None,
        counter: int,
        key_id: bytes,
        now: float,
    ) -> Reason | None:
        """A challenge or an answer of this boot of a peer. Its life is None if it has never proven
        itself, or if another boot has done so since."""
        if life is not None and life is self._own:
            return Reason.OWN
        try:
            found = decode(frame, CODEC, {}, sealed=True)
        except WireError as e:
            return e.reason
        proof = found.message
        if isinstance(proof, Challenge):
            asked = proof.challenge
        else:
            asked = proof.back
            if proof.boot == self.boot and proof.challenge == peer.open_challenge(now):
                peer.challenge = None
                life = life or self._begin(peer, boot, found.origin)
                life.prove(counter, peer.asked_at, now)
        if life is not None and now < life.expires:
            life.newest = proof.newest
            self._choose_key(now)
            if asked != NO_CHALLENGE:
                self._answer(peer, asked, boot, key_id, now, ask=now >= life.renew_at)
            return None
        if asked == NO_CHALLENGE:
            self._challenge(peer, key_id, now)
        elif now >= peer.answer_from:
            # It may be an old one, so it is answered as seldom as challenges are sent. After a
            # fixed time the first to come would always be a replay, so chance has a part.
            peer.answer_from = now + PROOF_INTERVAL_S * (1 + self._random(1)[0] / 512)
            self._answer(peer, asked, boot, key_id, now, ask=True)
        return None if isinstance(proof, Challenge) else _UNPROVEN

    def _begin(self, peer: Peer, boot: bytes, origin: Origin) -> Life:
        """A boot of a peer has proven itself: what is left of the one before it is old."""
        if peer.life is not None:
            old = peer.life
            del self._lives[old.boot]
            self._channels = {
                start: channel
                for start, channel in self._channels.items()
                if channel.life is not old
            }
        peer.life = self._lives[boot] = life = Life(peer, boot, _start(origin))
        return life

    def _challenge(self, peer: Peer, key_id: bytes, now: float) -> None:
        """Ask a peer to prove that it is alive, because of an unknown boot."""
        if now - peer.challenged_at >= PROOF_INTERVAL_S:
            peer.challenged_at = now
            self._send(peer, Challenge(self._open_challenge(peer, now), self._newest_id), key_id)

    def _renew(self, peer: Peer, key_id: bytes, now: float) -> None:
        """Ask a peer for another proof of the boot that has proven itself last."""
        if now - peer.renewed_at >= PROOF_INTERVAL_S:
            peer.renewed_at = now
            self._send(peer, Challenge(self._open_challenge(peer, now), self._newest_id), key_id)

    def _renew_own(self, own: Life, now: float) -> None:
        """What this node has sent so far becomes too old as what others send does: as if it had
        answered itself, which takes one of its counters."""
        self._counter += 1
        own.prove(self._counter, now, now)

    def _answer(
        self, peer: Peer, challenge: bytes, boot: bytes, key_id: bytes, now: float, *, ask: bool
    ) -> None:
        """Answer a challenge of this boot of a peer, and `ask` for a proof of it."""
        back = self._open_challenge(peer, now) if ask else NO_CHALLENGE
        self._send(peer, Answer(challenge, boot, back, self._newest_id), key_id)

    def _open_challenge(self, peer: Peer, now: float) -> bytes:
        """The challenge that a peer may answer now; a new one if there is none."""
        challenge = peer.open_challenge(now)
        if challenge is None:
            challenge = peer.challenge = self._random(CHALLENGE_BYTES)
            peer.asked_at = now
        return challenge

    def _send(self, peer: Peer, proof: Proof, key_id: bytes) -> None:
        """With the key that the peer has just used: it may have no other."""
        sealer = next(s for s in self._sealers if s.key_id == key_id)
        self.outbox.append((peer.name, self._seal(encode_proof(self._origin, proof), sealer)))

    # Keys

    @property
    def _newest_id(self) -> bytes:
        return self._sealers[0].key_id

    @property
    def key_ids(self) -> tuple[bytes, ...]:
        """The ids of the keys that are accepted, the newest first."""
        return tuple(sealer.key_id for sealer in self._sealers)

    def change_keys(self, keys: KeyRing, now: float) -> bool:
        """Use these keys from now on; returns whether they are others than before. The old one of
        two is forgotten after a while."""
        if keys == self._given:
            return False
        self._given = keys
        group, boot = self._origin.group, self.boot
        self._hold(keys, [_Sealer(key, group, self.cipher, boot) for key in keys])
        changing = len(keys) > 1
        self._old_until = now + OLD_KEY_S if changing else _NEVER
        self._switch_at = now + SWITCH_S if changing else _NEVER
        for life in self._lives.values():
            if life is not self._own:
                life.renew_at = min(life.renew_at, now)  # So that all learn of the newest key.
        self._await_change(now)
        self._choose_key(now)
        return True

    def _hold(self, keys: KeyRing, sealers: list[_Sealer]) -> None:
        self.key_ring = keys
        self._sealers = sealers
        self._keys = {sealer.key_id: key for sealer, key in zip(sealers, keys, strict=True)}
        self._channels = {
            start: channel
            for start, channel in self._channels.items()
            if channel.key_id in self._keys
        }

    def _on_change(self, now: float) -> None:
        """A step of a change of keys is due, or own datagrams have become older."""
        if self._own is not None and now >= self._own.renew_at:
            self._renew_own(self._own, now)
        if now >= self._old_until:
            self._old_until = _NEVER
            self._hold(self.key_ring[:1], self._sealers[:1])
        self._await_change(now)
        self._choose_key(now)

    def _await_change(self, now: float) -> None:
        switch_at = self._switch_at if now < self._switch_at else _NEVER
        own_at = _NEVER if self._own is None else self._own.renew_at
        self._change_at = min(switch_at, self._old_until, own_at)

    def _choose_key(self, now: float) -> None:
        """Send with the newest key, unless a peer has said that it has only the old one."""
        old = self._sealers[-1]
        late = now < self._switch_at and any(
            life.newest == old.key_id for life in self._lives.values()
        )
        self._sealer = old if late else self._sealers[0]

    # Status

    def status(self, now: float) -> dict[str, Any]:
        """What `status` shows of the seal."""
        return {
            "cipher": self.cipher.title,
            "sends_with": self._sealer.key_id.hex(),
            "accepts": [key_id.hex() for key_id in self.key_ids],
            "proven": sorted(
                peer.name for peer in self._peers.values() if peer.life and now < peer.life.expires
            ),
        }


def _start(origin: Origin) -> bytes:
    """How the origins of all frames of one life of a node begin: with group, node and incarnation.
    Names have their lengths before them, so no other node's begins like this."""
    whole = encode_origin(Origin(origin.group, origin.node, origin.incarnation, None))
    return whole[:-1]  # Without the byte that says whether it is in a view.


def _foreign(data: bytes) -> Reason:
    """What a datagram is that is not sealed."""
    if data[:2] == MAGIC:
        return Reason.PLAIN
    return _TRUNCATED if data[:2] == SEALED_MAGIC else _FOREIGN
