"""Addresses as people write them."""

import socket

import pytest

from roundelay.transport.address import (
    FREE_PORTS,
    Address,
    AddressError,
    free_addresses,
    is_literal,
    is_loopback,
    parse_address,
    resolve,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:5401", Address("127.0.0.1", 5401)),
        ("node-a.example:80", Address("node-a.example", 80)),
        ("[::1]:5401", Address("::1", 5401)),
    ],
)
def test_an_address_is_read_and_shown_alike(text, address):
    assert parse_address(text) == address
    assert str(address) == text


@pytest.mark.parametrize("text", ["", "a", ":1", "a:", "a:b", "a:70000", "a:-1", "::1:5401", "a:²"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(AddressError, match="host:port"):
        parse_address(text)


def test_numeric_addresses_resolve_to_themselves():
    assert resolve(Address("127.0.0.1", 5)) == (socket.AF_INET, ("127.0.0.1", 5))


def test_a_name_that_does_not_resolve_is_told():
    with pytest.raises(AddressError, match=r"'no-such-host\.invalid' does not resolve; correct"):
        resolve(Address("no-such-host.invalid", 1))


def test_loopback_is_known_as_such():
    assert is_loopback(("127.0.0.5", 1))
    assert not is_loopback(("10.0.0.1", 1))


def test_a_name_is_told_from_a_numeric_address():
    for literal in ("127.0.0.1:1", "[::1]:1", "[fe80::1%lo]:1"):
        assert is_literal(parse_address(literal))
    for name in ("localhost:1", "node-a.example:1", "1.2.3:1"):
        assert not is_literal(parse_address(name))


def test_free_addresses_differ_and_are_none_that_the_system_gives_away():
    found = free_addresses("abc")
    ports = [parse_address(text).port for text in found.values()]
    assert len(set(ports)) == 3
    assert all(port in FREE_PORTS for port in ports)


def test_a_taken_port_is_passed_over(monkeypatch):
    monkeypatch.setattr("roundelay.transport.address.FREE_PORTS", range(20_000, 20_016))
    found = free_addresses("abcdefghijklmnopqrst")  # More than there are: the system gives some.
    assert len(set(found.values())) == 20
