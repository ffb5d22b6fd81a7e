"""`bench stream` measures each of its parts, with real Spark and real nodes."""

import json
from contextlib import nullcontext

import pytest

pytest.importorskip("pyspark")

from roundelay.bench import stream
from roundelay.cli import main


@pytest.mark.process
@pytest.mark.slow
def test_each_rate_is_measured_and_told(spark, monkeypatch, capsys):
    monkeypatch.setattr(stream, "open_session", lambda master, memory: nullcontext(spark))
    command = "bench stream --entries 50000 --stream-batch 25000 --sink-entries 4000 --rounds 1"
    assert main([*command.split(), "--fsync", "off", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    rates = {name: found.pop(name) for name in list(found) if name.endswith("_s")}
    assert sorted(rates) == ["sink_entries_per_s", "source_entries_per_s", "stream_entries_per_s"]
    assert all(rate > 100 for rate in rates.values())
    assert 0.01 < found.pop("parquet_ratio") < 100
    assert found == {
        "entries": 50000,
        "entry_bytes": 100,
        "packet_bytes": 60000,
        "rounds": 1,
        "stream_batch": 25000,
        "sink_entries": 4000,
        "sink_fsync": "off",
    }
