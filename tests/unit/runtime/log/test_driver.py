"""What a node with a journal says of its disk."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from roundelay.runtime.log.driver import SLOW_BYTES, LogDriver
from roundelay.runtime.node_log import NodeLog


@pytest.mark.parametrize(
    ("full", "condition", "waiting_bytes", "told"),
    [
        (False, "able", SLOW_BYTES, ""),
        (False, "behind", SLOW_BYTES - 1, ""),  # It only fetches what it lacks.
        (False, "behind", SLOW_BYTES, "last sync took 2500 ms"),
        (True, "able", SLOW_BYTES, ""),  # There was nothing to store since.
        (True, "behind", SLOW_BYTES, "disk is full"),
    ],
)
def test_a_disk_that_does_not_keep_up_is_told(full, condition, waiting_bytes, told):
    node_log = NodeLog("g", "a", 0.4)
    driver = SimpleNamespace(
        writer=SimpleNamespace(waiting_bytes=waiting_bytes),
        status=SimpleNamespace(condition=condition),
        _last_sync_s=2.5,
        _full=full,
        _node_log=node_log,
    )
    LogDriver.look_at_disk(cast("Any", driver))
    assert len(node_log.warnings()) == bool(told)
    assert told in "".join(node_log.warnings())
