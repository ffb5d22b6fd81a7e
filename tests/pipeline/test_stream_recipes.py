"""The recipes of docs/streaming.md do what they say."""

import io
import json
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.live_traces import played, twice
from tests.pipeline.stream_logs import Node, record
from tests.pipeline.test_stream_sink import node

pytest.importorskip("pyspark")

from roundelay.cli import main
from roundelay.pipeline import register, session

__all__ = ["node"]  # The fixture.

TEXT = Path(__file__).parents[2].joinpath("docs", "streaming.md").read_text()
RECIPES = dict(re.findall(r"<!-- recipe: (\w+) -->\n```python\n(.*?)```", TEXT, re.DOTALL))
PAYLOADS = [{"who": "ann", "amount": 5}, {"who": "bob", "amount": -3}, {"who": "ann", "amount": 1}]


def play(spark, home: Path, name: str, **known: object) -> dict[str, Any]:
    """Run a recipe with its relative paths below `home`; what it has named."""
    code = re.sub(
        r'"((?:data|lake|named|alerts|people|watched)[^" ]*)"',
        lambda m: json.dumps(",".join(str(home / path) for path in m[1].split(","))),
        RECIPES[name],
    )
    names: dict[str, Any] = {"spark": spark, **known}
    exec(compile(code, name, "exec"), names)
    return names


@pytest.fixture
def home(spark, tmp_path):
    register(spark)
    for name in "ab":
        journal = Node(tmp_path / "data" / name)
        journal.add(record(0, [json.dumps(payload).encode() for payload in PAYLOADS]))
        journal.commit()
    return tmp_path


def test_the_log_as_a_table(spark, home):
    play(spark, home, "table")
    play(spark, home, "table")
    rows = spark.read.parquet(str(home / "lake" / "orders")).orderBy("index").collect()
    assert [json.loads(bytes(row.payload)) for row in rows] == PAYLOADS


def test_the_log_joined_with_a_table(spark, home):
    people = spark.createDataFrame([("ann", "Paris"), ("eve", "Rome")], "who string, city string")
    people.write.parquet(str(home / "people"))
    play(spark, home, "join")
    rows = spark.read.parquet(str(home / "named")).orderBy("index").collect()
    assert [(row["index"], row.city, row.amount) for row in rows] == [
        (0, "Paris", 5),
        (2, "Paris", 1),
    ]


def test_an_alert_is_appended_once(spark, home, node):
    group, control, _ = node
    before = group.log.sync()
    play(spark, home, "alert", control=str(control))
    play(spark, home, "alert", control=str(control))
    assert group.log.sync() == before + 1
    entry = next(iter(group.log.read(before)))
    assert entry.payload == b"alert: bob at index 1"


def test_a_violation_is_told_while_the_group_runs_and_in_a_table(
    spark, live, tmp_path, monkeypatch, capsys
):
    assert "\nroundelay watch traces -o watched --json | python alert.py\n" in TEXT
    monkeypatch.setattr(session, "open_session", lambda master: nullcontext(spark))
    manifest, clean = played()
    nodes = live(tmp_path / "traces", manifest)
    nodes.write(twice(clean))
    nodes.close()
    watched = ["watch", str(tmp_path / "traces"), "-o", str(tmp_path / "watched"), "--json"]
    assert main([*watched, "--once"]) == 1
    monkeypatch.setattr(sys, "stdin", io.StringIO(capsys.readouterr().out))
    alerts: list[str] = []
    play(spark, tmp_path, "violation", alert=alerts.append, json=json, sys=sys)
    (alert,) = alerts
    assert re.fullmatch(r"live breaks D2: b delivers .* \(rows 1\.\d+\.\d+ 1\.\d+\.\d+\)", alert)
    (row,) = play(spark, tmp_path, "verdicts")["broken"].collect()
    assert f"{row.run} breaks {row.property}: {row.reason} (rows {' '.join(row.witness)})" == alert


def test_all_recipes_are_played():
    assert set(RECIPES) == {"table", "join", "alert", "violation", "verdicts"}
