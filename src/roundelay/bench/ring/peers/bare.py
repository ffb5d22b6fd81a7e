"""The lower bound of latency: one datagram to every node, and nothing else.

It is run as `python -m roundelay.bench.ring.peers.bare JOB`. No order is made, so no system that
orders messages is faster on the same event loop. It works with one sender at a slow rate only:
several senders would have no common order, and nothing is sent again.
"""

import asyncio
import socket
import struct
import sys
import time
from collections.abc import Iterator

from roundelay.bench.ring.jobs import Job
from roundelay.bench.ring.talk import Orders, say
from roundelay.bench.ring.workload import END, Ledger
from roundelay.transport.address import parse_address, resolve
from roundelay.transport.udp import UdpSocket

READY_S = 0.5
"""How many seconds to wait until the last process has its socket: what is sent before is lost."""

_TIME = struct.Struct(">d")


class Member:
    """One node; the sender delivers its own messages when it sends them."""

    def __init__(self, job: Job) -> None:
        (self._sender,) = job.senders
        self._job = job
        self._orders = Orders()
        self._socket = UdpSocket(parse_address(job.addresses[job.node]))
        others = [address for node, address in job.addresses.items() if node != job.node]
        self._others = [resolve(parse_address(a), socket.AF_INET)[1] for a in others]
        self._ledger = Ledger(job.senders)
        self._latencies: list[float] = []
        self._counted_from = 0.0
        self._ended = asyncio.Event()

    async def run(self) -> None:
        job = self._job
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._read)
        await asyncio.sleep(READY_S)
        say(ready=True)
        start: float = await asyncio.to_thread(self._orders.wait, "start")
        self._counted_from = start + job.warm_s
        if job.node == self._sender:
            await self._send(start)
        await self._ended.wait()
        count = self._ledger.count
        say(
            result={
                "latencies_s": self._latencies,
                "digest": self._ledger.digest,
                "counts": self._ledger.counts(),
                "sent": count if job.node == self._sender else 0,
                "peak_mb": 0.0,
            }
        )
        await asyncio.to_thread(self._orders.wait, "leave")

    async def _send(self, start: float) -> None:
        job = self._job
        filler = bytes(max(0, job.cell.size - _TIME.size))
        for i in range(round(job.seconds * job.rate)):
            await asyncio.sleep(start + i / job.rate - time.monotonic())
            self._broadcast(_TIME.pack(time.monotonic()) + filler)
        self._broadcast(END)

    def _broadcast(self, payload: bytes) -> None:
        self._socket.send(payload, self._others)
        self._deliver(payload)

    def _read(self) -> None:
        for payload in self._waiting():
            self._deliver(payload)

    def _waiting(self) -> Iterator[bytes]:
        while True:
            try:
                yield from self._socket.receive()
            except BlockingIOError:
                return

    def _deliver(self, payload: bytes) -> None:
        now = time.monotonic()
        self._ledger.order(self._sender, self._ledger.next(self._sender))
        if payload == END:
            self._ended.set()
        elif (sent := _TIME.unpack_from(payload)[0]) >= self._counted_from:
            self._latencies.append(now - sent)


async def main(job: Job) -> None:
    await Member(job).run()


if __name__ == "__main__":
    try:
        asyncio.run(main(Job.from_json(sys.argv[1])))
    except Exception as e:
        say(failure=f"{type(e).__name__}: {e}")
        raise
