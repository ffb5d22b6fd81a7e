"""The status document of a node."""

import asyncio
from types import SimpleNamespace
from typing import Any

from roundelay.runtime.group import join
from roundelay.transport.address import free_addresses


def test_the_reason_of_gather_is_told_only_while_the_node_gathers() -> None:
    async def story() -> None:
        async with join("g", node="a", peers=free_addresses("ab")) as group:
            node: Any = group._node
            core = node.core
            found = []
            for phase in ("gather", "operational"):
                told = SimpleNamespace(phase=phase, gather="the token is lost", waiting_packets=3)
                node.core = SimpleNamespace(status=told)
                found.append(group.status())
            node.core = core
        assert [(one["phase"], one["gather"]) for one in found] == [
            ("gather", "the token is lost"),
            ("operational", ""),
        ]
        assert found[0]["queues"]["packets_to_send"] == 3

    asyncio.run(story())
