"""The recipes of docs/streaming.md do what they say."""

import json
import re
from pathlib import Path

import pytest
from tests.pipeline.stream_logs import Node, record
from tests.pipeline.test_stream_sink import node

pytest.importorskip("pyspark")

from roundelay.pipeline import register

__all__ = ["node"]  # The fixture.

TEXT = Path(__file__).parents[2].joinpath("docs", "streaming.md").read_text()
RECIPES = dict(re.findall(r"<!-- recipe: (\w+) -->\n```python\n(.*?)```", TEXT, re.DOTALL))
PAYLOADS = [{"who": "ann", "amount": 5}, {"who": "bob", "amount": -3}, {"who": "ann", "amount": 1}]


def play(spark, home: Path, name: str, **known: object) -> None:
    """Run a recipe with its relative paths below `home`."""
    code = re.sub(
        r'"((?:data|lake|named|alerts|people)[^" ]*)"',
        lambda m: json.dumps(",".join(str(home / path) for path in m[1].split(","))),
        RECIPES[name],
    )
    exec(compile(code, name, "exec"), {"spark": spark, **known})


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


def test_all_recipes_are_played():
    assert set(RECIPES) == {"table", "join", "alert"}
