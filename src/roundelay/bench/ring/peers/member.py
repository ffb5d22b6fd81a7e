"""The process of one node of a peer in a run: what is the same for all peers."""

import resource
import struct
import time
from collections.abc import Sequence
from typing import Any, Protocol

from roundelay.bench.ring.jobs import Job
from roundelay.bench.ring.talk import Orders, say
from roundelay.bench.ring.workload import END, Ledger, expected, outgoing

FORMING_S = 30.0
"""How many seconds the nodes have to find each other; then the run fails."""
TURN_MESSAGES = 500
"""How many messages are sent between two calls of `deliveries`."""
WAIT_S = 0.05
"""How many seconds to wait between two questions whether something has happened."""
BRIEF_S = 0.001
"""How many seconds to wait for deliveries while the queue is full or latencies are measured. Not
every event wakes a peer up, so a longer wait would show in the figures."""

_TIME = struct.Struct(">d")


class Peer(Protocol):
    """One node of a system that orders messages."""

    def formed(self) -> bool:
        """Whether messages can be sent now, and all nodes would get them."""
        ...

    def send(self, payload: bytes) -> bool:
        """Submit a message; False if there is no room for it now."""
        ...

    def deliveries(self, wait_s: float) -> Sequence[tuple[str, bytes]]:
        """What was delivered since the last call, as pairs of sender and message. Waits up to
        `wait_s` seconds if there is nothing."""
        ...


class Member:
    """Does the job of one node."""

    def __init__(self, job: Job, peer: Peer) -> None:
        self._job = job
        self._peer = peer
        self._orders = Orders()
        self._ledger = Ledger(job.senders, expected(job.senders, job.cell, job.verify))
        self._sent = 0
        self._early: list[tuple[str, bytes]] = []
        """Messages that were delivered before this node began: other nodes began earlier."""

    def run(self) -> None:
        """Talk with the leader, and do the job between."""
        limit = time.monotonic() + FORMING_S
        while not self._peer.formed():
            if time.monotonic() > limit:
                raise TimeoutError("the nodes did not find each other")
            self._peer.deliveries(WAIT_S)
        say(ready=True)
        start: float = self._attend("start")
        while (wait := start - time.monotonic()) > 0:
            self._early += self._peer.deliveries(min(wait, WAIT_S))
        result = self._load(start) if self._job.task == "load" else self._pace(start)
        say(
            result={
                **result,
                "digest": self._ledger.digest,
                "counts": self._ledger.counts(),
                "sent": self._sent,
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )
        self._attend("leave")

    def _attend(self, word: str) -> Any:
        """Wait until the leader says `word`. The peer is driven meanwhile: other nodes may need
        it."""
        while (told := self._orders.poll(word)) is None:
            self._early += self._peer.deliveries(WAIT_S)
        return told

    def _load(self, start: float) -> dict[str, Any]:
        job, ledger = self._job, self._ledger
        before = time.process_time()
        messages = outgoing(job.node, job.cell, job.verify)
        payload = next(messages)
        sending = job.node in job.senders
        since = already = 0.0
        while not ledger.complete:
            now = time.monotonic()
            if not since and now >= start + job.warm_s:
                since, already = now, ledger.count
            room = False
            if sending and now >= start + job.seconds:
                sending = not self._send(END)
            elif sending:
                for _ in range(TURN_MESSAGES):
                    room = self._send(payload)
                    if not room:
                        break
                    payload = next(messages)
            for sender, message in self._deliveries(0.0 if room else BRIEF_S):
                ledger.add(sender, ledger.next(sender), (message,))
        return {
            "msgs_per_s": (ledger.count - already) / (time.monotonic() - since),
            "cpu_s": time.process_time() - before,
        }

    def _pace(self, start: float) -> dict[str, Any]:
        """Each message begins with the time of its submit."""
        job, ledger = self._job, self._ledger
        filler = bytes(max(0, job.cell.size - _TIME.size))
        due = round(job.seconds * job.rate) if job.node in job.senders else -1
        latencies: list[float] = []
        ended = 0
        while ended < len(job.senders):
            now = time.monotonic()
            if self._sent <= due and now >= start + self._sent / job.rate:
                self._send(END if self._sent == due else _TIME.pack(now) + filler)
            delivered = self._deliveries(BRIEF_S)
            now = time.monotonic()
            for sender, message in delivered:
                ledger.order(sender, ledger.next(sender))
                if message == END:
                    ended += 1
                elif (sent := _TIME.unpack_from(message)[0]) >= start + job.warm_s:
                    latencies.append(now - sent)
        return {"latencies_s": latencies}

    def _deliveries(self, wait_s: float) -> Sequence[tuple[str, bytes]]:
        if self._early:
            early, self._early = self._early, []
            return early
        return self._peer.deliveries(wait_s)

    def _send(self, payload: bytes) -> bool:
        sent = self._peer.send(payload)
        self._sent += sent
        return sent
