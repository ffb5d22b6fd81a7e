"""What the DTP family says on the wire, and what may be set."""

import pytest

from roundelay.group.engines import engine_config, engine_factory
from roundelay.membership.config import TIMERS
from roundelay.protocols.dtp import repetitions
from roundelay.protocols.dtp.messages import BATCH_MAX, Ack, DtpCodec, Req
from roundelay.protocols.dtp.policy import Config
from roundelay.wire.primitives import WireError

from .member import msg


@pytest.mark.parametrize(
    "message",
    [
        msg(2, 7, 3),
        Ack(1, (), 0, 2, 1),
        Ack(1, ((2, 7), (0, 1)), 9, 2, 4),
        Ack(1, ((2, 7),), 9),
        Req(4, ((1, 2), (0, 9)), (5, 6)),
    ],
)
def test_messages_survive_the_wire(message):
    codec = DtpCodec()
    tag, data = codec.encode(message)
    assert codec.decode(tag, b"xx" + data, 2) == message
    assert str(message)
    for end in range(len(data)):
        with pytest.raises(WireError):
            codec.decode(tag, data[:end], 0)
    with pytest.raises(WireError):
        codec.decode(tag, data + b"x", 0)


@pytest.mark.parametrize(
    "message",
    [msg(1, 0), Ack(1, ((0, 1), (0, 2)), 1, 2, 3), Ack(0, ((0, 0),), 1), Req(0, ((0, 0),), ())],
)
def test_numbers_that_nobody_gives_out_are_refused(message):
    codec = DtpCodec()
    with pytest.raises(WireError):
        codec.decode(*codec.encode(message), 0)
    with pytest.raises(WireError):
        codec.decode(9, b"", 0)


def test_timers_are_not_those_of_membership():
    names = set(repetitions.arming(Config()))
    assert len(names) == 5
    assert not names & TIMERS


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rules": "link"}, "there are no rules 'link'; choose one of safe, paper"),
        ({"resilience": "-1"}, "resilience=-1; it is a number of nodes"),
        ({"attempts": "0"}, "1 at least"),
        (
            {"batch_packets": str(BATCH_MAX + 1)},
            f"batch_packets={BATCH_MAX + 1}; it is 1 to {BATCH_MAX}",
        ),
        ({"window_packets": "0"}, "window_packets=0; it is 1 at least"),
        ({"window_packets": "5000"}, "at most buffer_packets, which is 4096"),
        ({"buffer_packets": "255"}, "batch_packets=256 is more than buffer_packets=255"),
    ],
)
def test_settings_that_make_no_sense_are_a_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        engine_factory("pinwheel", options)


@pytest.mark.parametrize(("name", "batch"), [("dtp", 1), ("cm", 1), ("pinwheel", 256)])
def test_an_acknowledgment_orders_one_packet_in_dtp_and_cm_unless_asked_for_more(name, batch):
    assert engine_config(name).batch_packets == batch
    assert engine_config(name, {"batch_packets": "2"}).batch_packets == 2
