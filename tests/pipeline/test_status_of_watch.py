"""`roundelay status --watched`: live verdicts and measures on a terminal."""

import json
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark")

from roundelay.cli import main
from roundelay.pipeline.judge.verdict_table import VERDICT_COLUMNS, VERDICTS
from roundelay.pipeline.live import measures


def verdict(name: str, found: str, **more: Any) -> dict[str, Any]:
    return {"run": "live", "property": name, "verdict": found, "witness": [], **more}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """What `watch` wrote before the last batch and after it."""
    broken = {"reason": "b delivers it twice", "witness": ["1.0.7", "1.0.9"]}
    rows = [verdict("D1", "ok"), verdict("D2", "violated", **broken), verdict("O4", "ok")]
    pq.write_table(pa.Table.from_pylist(rows, VERDICT_COLUMNS), tmp_path / VERDICTS)
    counted = measures.Measures(one_clock=True).take(2.0) | {"run": "live", "behind_s": 1.25}
    earlier = counted | {"batch": 3, "time_s": time.time() - 9, "waiting": 5}
    last = {"batch": 4, "rows": 4000, "rows_per_s": 2000.0, "time_s": time.time(), "waiting": 20}
    latency = {f"latency_p{n}_ms": n / 10 for n in (50, 90, 99)}
    measures.write([earlier, earlier | last | latency], tmp_path / measures.MEASURES)
    return tmp_path


def test_verdicts_and_the_last_measures_are_shown(out: Path, capsys: Any) -> None:
    assert main(["status", "--watched", str(out)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "run        live",
        "verdicts   2 ok, 1 violated",
        "           VIOLATED: D2: b delivers it twice",
        "           its rows: 1.0.7 1.0.9",
        "judged     0 s ago, batch 4: 4,000 rows, 20 wait; 1.2 s behind",
        "rate       2,000 rows/s, 0 deliveries/s, 0 new views",
        "latency    median 5.00 ms, 90 % up to 9.00 ms, 99 % up to 9.90 ms",
    ]
    assert main(["status", "--watched", str(out), "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["verdicts"] == {"ok": 2, "violated": 1}
    assert [one["property"] for one in run["violated"]] == ["D2"]
    assert run["measures"]["batch"] == 4


def test_what_is_no_output_of_watch_is_told(out: Path, tmp_path: Path, capsys: Any) -> None:
    assert main(["status", "--watched", str(tmp_path / "none")]) == 2
    assert "there are no live verdicts in" in capsys.readouterr().err
    assert main(["status", "--watched", str(out), "--node", "a"]) == 2
    assert "leave out what names a node" in capsys.readouterr().err
    pq.write_table(pa.table({"run": ["x"], "measure": ["delivery"]}), out / measures.MEASURES)
    assert main(["status", "--watched", str(out)]) == 2
    assert "is a table that is over; show it with: roundelay report" in capsys.readouterr().err
