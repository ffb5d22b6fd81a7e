"""The ordered log in Spark, while nodes, drivers and executors are killed: real processes; and what
the judge of it would say if something were wrong."""

import json

import pytest

pytest.importorskip("pyspark")

from roundelay.bench.recovery.judge import Entry, faults
from roundelay.cli import main


@pytest.mark.process
@pytest.mark.slow
def test_every_entry_and_every_row_once_although_all_that_takes_part_is_killed(capsys):
    assert main(["bench", "recovery", "--rows", "1500", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["faults"] == []
    assert (found["node_kills"], found["driver_kills"], found["executors_lost"]) == (2, 2, 1)
    assert found["appended_by_query"] == 1500
    assert found["appended_by_client"] >= 100
    assert found["entries"] == found["appended_by_query"] + found["appended_by_client"]
    assert found["files"] >= 8


def entries(count):
    return [Entry(n, "1.a", "a", 0, "5", n, b"entry %d" % n) for n in range(count)]


LOG = entries(10)
ROWS = [entry.payload for entry in LOG[::2]]
FILES = [LOG[5:], [], LOG[:5]]


def told(journals=None, files=FILES, rows=ROWS):
    return faults(journals or {"a": LOG, "b": LOG}, files, rows)


def test_what_is_right_is_right():
    assert told() == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"journals": {"a": LOG, "b": LOG[:-1]}}, "journals of a and b differ"),
        ({"files": [LOG[:5], LOG[6:]]}, "begins with entry 6 where 5 is due"),
        ({"files": [LOG[:5], LOG[4:]]}, "begins with entry 4 where 5 is due"),
        ({"files": [LOG[:5], LOG[5:8]]}, "end before entry 8, and the log before 10"),
        ({"files": [LOG[:5], LOG[9:4:-1]]}, "begins with entry 9"),
        ({"files": [[*LOG[:3], LOG[4], LOG[3]], LOG[5:]]}, "has other rows than"),
        ({"files": [[*LOG[:9], LOG[9]._replace(number=8)]]}, "has other rows than"),
        ({"rows": [*ROWS, b"lost"]}, "b'lost' is 0 times in the log"),
        (
            {
                "journals": {"a": [*LOG, LOG[0]._replace(at=10)]},
                "files": [[*LOG, LOG[0]._replace(at=10)]],
            },
            "b'entry 0' is 2 times in the log",
        ),
    ],
)
def test_what_is_wrong_is_told(wrong, words):
    said = told(**wrong)
    assert said
    assert words in "; ".join(said)
