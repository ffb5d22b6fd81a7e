"""What a node tells the service manager that started it."""

import asyncio
import os
import socket

import pytest

from roundelay.runtime.supervisor import Supervisor


@pytest.fixture
def manager(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.setblocking(False)
        yield sock


def environment(manager: socket.socket, **more: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": manager.getsockname(), **more}


def heard(manager: socket.socket) -> list[str]:
    """What was said so far, one text for each message."""
    found = []
    while True:
        try:
            found.append(manager.recv(4096).decode())
        except BlockingIOError:
            return found


async def told(supervisor: Supervisor, *statuses: str, for_s: float) -> None:
    """Run a node for a while whose status is the first of these at its start, and then the last."""
    left = iter(statuses)
    supervisor.ready(lambda: next(left, statuses[-1]))
    await asyncio.sleep(for_s)
    supervisor.stopping()
    await asyncio.sleep(0)


def test_a_status_is_told_when_it_changes(manager):
    asyncio.run(told(Supervisor(environment(manager)), "alone", "with b", for_s=1.1))
    said = heard(manager)
    assert said == ["READY=1\nSTATUS=alone", "STATUS=with b", said[-1]]
    assert said[-1].startswith("STOPPING=1\n")


def test_the_watchdog_is_fed_several_times_within_its_interval(manager):
    watched = environment(manager, WATCHDOG_USEC="60000", WATCHDOG_PID=str(os.getpid()))
    asyncio.run(told(Supervisor(watched), "alone", for_s=0.3))
    assert heard(manager).count("WATCHDOG=1") >= 2


def test_a_watchdog_of_another_process_is_not_fed(manager):
    other = environment(manager, WATCHDOG_USEC="60000", WATCHDOG_PID=str(os.getpid() + 1))
    asyncio.run(told(Supervisor(other), "alone", for_s=0.2))
    assert "WATCHDOG=1" not in heard(manager)


@pytest.mark.parametrize("named", ["", "relative", "/nobody/listens/here"])
def test_a_node_without_a_manager_says_nothing_and_goes_on(named):
    asyncio.run(told(Supervisor({"NOTIFY_SOCKET": named}), "alone", for_s=0.0))
