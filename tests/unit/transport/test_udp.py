"""Sockets that never block."""

import contextlib
import errno
import socket
import sys

import pytest

from roundelay.transport.address import Address, AddressError
from roundelay.transport.udp import MulticastListener, UdpSocket, datagrams_that_fit

ANY = Address("127.0.0.1", 0)


@pytest.fixture
def sockets():
    pair = UdpSocket(ANY), UdpSocket(ANY)
    yield pair
    for sock in pair:
        sock.close()


def test_a_datagram_goes_from_one_to_the_other(sockets):
    a, b = sockets
    a.send(b"hello", (b.address,))
    assert b.receive() == (b"hello",)
    with pytest.raises(BlockingIOError):
        b.receive()


def test_where_a_datagram_came_from_is_known(sockets):
    a, b = sockets
    for coalesced in (b._coalesced, False):
        b._coalesced, b.source = coalesced, None
        a.send(b"hello", (b.address,))
        b.receive()
        assert b.source == a.address


def received(sock):
    datagrams = []
    with contextlib.suppress(BlockingIOError):
        while True:
            datagrams += sock.receive()
    return datagrams


MANY = [bytes([i]) * size for i, size in enumerate([1300] * 100 + [7, 7, 1300, 900, 60_000, 1, 2])]
"""More than one run holds; smaller ones, that end a run; one that is a run of its own."""


def test_many_datagrams_arrive_one_by_one_and_in_order(sockets):
    a, b = sockets
    a.send_all(MANY, (b.address,))
    assert received(b) == MANY
    assert a.lost_sends == 0


def test_where_the_system_can_they_leave_and_arrive_with_one_call(sockets):
    """Else all of the other tests would pass with datagrams sent one by one."""
    a, b = sockets
    if not a.segmented:
        pytest.skip("this system knows no runs of datagrams")
    a.send_all(MANY[:10], (b.address,))
    assert list(b.receive()) == MANY[:10]
    assert a.segmented


@pytest.mark.parametrize("told", [errno.EINVAL, errno.EIO, errno.EMSGSIZE])
def test_where_the_system_cannot_segment_a_buffer_datagrams_go_one_by_one(
    sockets, told, monkeypatch
):
    a, b = sockets
    a.segmented = True
    monkeypatch.setattr(a, "_socket", Refusing(a._socket, told))
    a.send_all(MANY, (b.address,))
    assert received(b) == MANY
    assert not a.segmented
    assert a.lost_sends == 0


def test_a_run_that_finds_no_room_is_lost_as_datagrams_are(sockets, monkeypatch):
    a, b = sockets
    a.segmented = True
    monkeypatch.setattr(a, "_socket", Refusing(a._socket, errno.ENOBUFS))
    a.send_all([b"x"] * 5, (b.address, b.address))
    assert received(b) == []
    assert a.segmented
    assert a.lost_sends == 10


class Refusing:
    """A socket that does not take runs."""

    def __init__(self, sock, told):
        self._sock = sock
        self._told = told

    def sendmsg(self, *words):
        raise OSError(self._told, "no")

    def __getattr__(self, name):
        return getattr(self._sock, name)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells")
def test_what_arrives_when_the_buffer_is_full_is_counted(sockets):
    a, b = sockets
    b._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    for _ in range(50):
        a.send(b"x" * 1000, (b.address,))
    assert len(received(b)) + b.lost_receives == 50
    assert b.lost_receives
    assert not a.lost_receives


def test_what_cannot_be_sent_is_counted_and_nothing_else(sockets):
    a, b = sockets
    a.send(b"x" * 70_000, (b.address,))
    assert a.lost_sends == 1


def test_a_port_that_is_taken_is_told():
    first = UdpSocket(ANY)
    taken = Address("127.0.0.1", first.address[1])
    with pytest.raises(AddressError, match="is taken by another process; stop that one"):
        UdpSocket(taken)
    first.close()
    UdpSocket(taken).close()


def test_an_address_of_another_machine_is_told():
    with pytest.raises(AddressError, match="is not an address of this machine"):
        UdpSocket(Address("192.0.2.1", 0))


def test_multicast_reaches_every_listener():
    sender = UdpSocket(ANY)
    sender.send_multicast_from()
    group = Address("239.77.12.5", sender.address[1])
    listeners = [MulticastListener(group, sender.address, sender.family) for _ in range(2)]
    sender.send(b"to all", (listeners[0].address,))
    assert [listener.receive() for listener in listeners] == [(b"to all",), (b"to all",)]
    sender.close()
    for listener in listeners:
        listener.close()


def test_what_is_no_multicast_address_is_told(sockets):
    with pytest.raises(AddressError, match="cannot listen to multicast"):
        MulticastListener(Address("127.0.0.1", 9), sockets[0].address, sockets[0].family)


def test_large_datagrams_fill_a_receive_buffer_sooner():
    assert datagrams_that_fit(416 * 1024, 60_000) == 6
    assert datagrams_that_fit(416 * 1024, 1400) == 184
