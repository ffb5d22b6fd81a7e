"""Reads datagrams and drops them: `python -m roundelay.bench.intruder.drain RAID`.

The floor of what a flood costs: its reader does nothing with it. It waits and reads as a node does,
with an event loop and many datagrams in one call, and has a socket for each target of the raid.
"""

import asyncio
import sys
import time

from roundelay.bench.intruder.attack import Raid
from roundelay.bench.ring.talk import Orders, say
from roundelay.transport.address import parse_address
from roundelay.transport.udp import UdpSocket


class Drain:
    """The sockets, and how many datagrams they read."""

    def __init__(self, raid: Raid) -> None:
        self.read = 0
        self._sockets = [UdpSocket(parse_address(text)) for text in raid.targets]

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        for sock in self._sockets:
            loop.add_reader(sock.fileno(), self._read, sock)

    def _read(self, sock: UdpSocket) -> None:
        try:
            while True:
                self.read += len(sock.receive())
        except BlockingIOError:
            return


async def main(raid: Raid) -> None:
    orders = Orders()
    drain = Drain(raid)
    drain.start(asyncio.get_running_loop())
    before = time.process_time()
    say(ready=True)
    await asyncio.to_thread(orders.wait, "leave")
    say(result={"read": drain.read, "cpu_s": time.process_time() - before})


if __name__ == "__main__":
    asyncio.run(main(Raid.from_json(sys.argv[1])))
