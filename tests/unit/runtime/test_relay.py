"""The relay as a process."""

import pytest

from roundelay.runtime.relay import RelayError, RelayProcess
from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process


def test_it_obeys_refuses_and_is_missed():
    relay = RelayProcess(free_addresses("ab"))
    try:
        assert relay.peers.keys() == {"a", "b"}
        assert relay.command("cut a>b")
        with pytest.raises(RelayError, match=r"error.*to 'melt'"):
            relay.command("melt")
        relay._process.kill()
        relay._process.wait()
        with pytest.raises(RelayError, match="the relay is gone; it cannot do 'heal'"):
            relay.command("heal")
    finally:
        relay.close()
