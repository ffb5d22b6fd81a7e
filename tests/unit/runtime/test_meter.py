"""What a node counts, and how it is shown."""

import re
import time
from typing import Any

from roundelay.cli.status import text
from roundelay.runtime.meter import BOUNDS_MS, RATES_S, Histogram, Meter
from roundelay.runtime.metrics import prometheus


def document() -> dict[str, Any]:
    meter = Meter()
    meter.flushed(0, 1.0)
    meter.flushed(5, 1.5)
    meter.own_delivered(5, 1.004)
    meter.token(1.0)
    meter.token(1.02)
    return {
        "group": 'g"1',
        "node": "a",
        "incarnation": 2,
        "engine": "totem",
        "phase": "operational",
        "gather": "",
        "uptime_s": 12.5,
        "view": {
            "id": "8.a",
            "members": ["a", "b"],
            "primary": True,
            "why": "",
            "voters": ["a", "b"],
            "able": True,
            "transitional": False,
        },
        "peers": {"a": "", "b": "", "c": ""},
        "rates": meter.rates(),
        "queues": {"packets_to_send": 1, "packets_to_read": 2, "bytes_to_read": 3},
        "counters": meter.counters(),
        "drops": {"checksum": 4, "stranger": 0},
        "seal": None,
        "trace": {"waits": 2, "waited_s": 0.5, "ended": ""},
        "latency": meter.latency.as_dict(),
        "rotation": meter.rotation.as_dict(),
        "receive_buffer_bytes": 8,
    }


def test_quantiles_are_upper_ends_of_classes():
    histogram = Histogram()
    assert histogram.quantile_ms(0.5) is None
    for ms in (0.15, 0.15, 0.15, 7, 99_999):
        histogram.add(ms / 1e3)
    assert histogram.quantile_ms(0.5) == 0.2
    assert histogram.quantile_ms(0.8) == 10
    assert histogram.quantile_ms(1.0) == BOUNDS_MS[-1]


def test_latency_is_measured_from_a_flush_to_the_delivery_of_its_first_message():
    found = document()["latency"]
    assert (found["count"], found["mean_ms"]) == (1, 4.0)


def test_prometheus_can_read_every_line():
    lines = prometheus(document()).splitlines()
    sample = re.compile(r'roundelay_\w+\{(\w+="(\\.|[^"\\])*",?)+\} [0-9.e+-]+')
    for line in lines:
        assert line.startswith("# ") or sample.fullmatch(line), line
    assert 'roundelay_drops_total{group="g\\"1",node="a",reason="checksum"} 4' in lines
    assert 'roundelay_latency_seconds_bucket{group="g\\"1",node="a",le="0.005"} 1' in lines
    assert 'roundelay_latency_seconds_count{group="g\\"1",node="a"} 1' in lines
    assert 'roundelay_latency_seconds_sum{group="g\\"1",node="a"} 0.004' in lines
    assert 'roundelay_trace_waits_total{group="g\\"1",node="a"} 2' in lines
    assert 'roundelay_trace_waited_seconds_total{group="g\\"1",node="a"} 0.5' in lines
    names = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


def test_people_see_who_is_away_and_what_was_dropped():
    shown = text(document())
    assert "view       8.a: a, b, primary; away: c" in shown
    assert "drops      4 checksum\n" in shown
    assert "rotation   mean 20.00 ms" in shown


def test_people_see_why_a_node_gathers():
    shown = document()
    assert "phase      operational, 0 views" in text(shown)
    shown |= {"phase": "gather", "gather": "the token is lost"}
    assert "phase      gather (the token is lost), 0 views" in text(shown)


def test_people_see_whose_majorities_decide_or_why_none_does():
    shown = document()
    shown["view"]["voters"] = ["a", "b", "c"]
    assert "view       8.a: a, b, primary by a, b, c; away: c" in text(shown)
    shown["view"] |= {"primary": False, "why": "1 of 3 voters", "voters": []}
    assert "view       8.a: a, b, not primary (1 of 3 voters); away: c" in text(shown)


SEAL = {
    "cipher": "AES-256-GCM",
    "sends_with": "0a0b",
    "accepts": ["0c0d", "0a0b"],
    "proven": ["b", "c"],
}


def test_people_see_whether_datagrams_are_sealed_and_who_is_alive():
    shown = document()
    sealed = 'roundelay_sealed{group="g\\"1",node="a"} '
    assert "seal       none: whoever reaches the port can be a member; make a key" in text(shown)
    assert f"{sealed}0\n" in prometheus(shown)
    assert "proven" not in prometheus(shown)
    shown["seal"] = SEAL
    assert "seal       AES-256-GCM, key 0a0b, accepts 0c0d too; proven: b, c\n" in text(shown)
    for line in (f"{sealed}1", sealed.replace("sealed", "proven_peers") + "2"):
        assert f"{line}\n" in prometheus(shown)
    shown["seal"] = SEAL | {"accepts": ["0a0b"], "proven": []}
    assert "seal       AES-256-GCM, key 0a0b; proven: none\n" in text(shown)


def test_rates_are_of_a_second_or_so_whoever_asks_in_between(monkeypatch):
    clock = [10.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    meter = Meter()
    clock[0] += 2.0
    meter.messages_delivered = 100
    assert meter.rates()["messages_per_s"] == 50
    clock[0] += RATES_S / 2
    meter.messages_delivered = 1000
    assert meter.rates()["messages_per_s"] == 50
    clock[0] += 2.0 - RATES_S / 2
    assert meter.rates()["messages_per_s"] == 450
