"""docs/plans.md has the stages of each job as Spark plans them; --rewrite puts them there."""

import re
from pathlib import Path

import pytest
from tests.patience import LIMIT_S
from tests.pipeline.stream_logs import Node
from tests.pipeline.swarm_traces import clean

pytest.importorskip("pyspark")

from pyspark.sql import DataFrame

from roundelay.experiments.plan import parse
from roundelay.pipeline import register
from roundelay.pipeline.ingest.into_table import ingest
from roundelay.pipeline.ingest.table import Table
from roundelay.pipeline.judge.check import check
from roundelay.pipeline.live.follow import follow
from roundelay.pipeline.measure.measure import measure
from roundelay.pipeline.plans import explained, stages
from roundelay.pipeline.sweep.drive import drive
from roundelay.pipeline.sweep.store import open_store

PAGE = Path(__file__).parents[2] / "docs" / "plans.md"
PLAN = re.compile(r"(?<=<!-- plan: )([\w-]+)( -->\n```\n)(.*?)(?=```\n)", re.DOTALL)

pytestmark = pytest.mark.slow


def test_the_page_has_the_plans_that_spark_makes(spark, tmp_path, request):
    clean("totem", False, str(tmp_path / "traces"))
    jobs = Jobs(spark, tmp_path)
    page = PAGE.read_text()
    made = {found[1]: jobs.plans(found[1]) for found in PLAN.finditer(page)}
    if request.config.getoption("--rewrite"):
        PAGE.write_text(PLAN.sub(lambda found: found[1] + found[2] + made[found[1]], page))
    page = PAGE.read_text()
    hint = "pytest tests/pipeline/test_plans.py --rewrite, and read the difference"
    for found in PLAN.finditer(page):
        assert work(found[3]) == work(made[found[1]]), hint


def work(plans: str) -> list[list[str]]:
    """What the queries of a job do, whatever sides of a join Spark finds the smaller one."""
    doing = re.compile(
        r"Scan \w+(?:, \d+ columns)?|\w+InArrow \w+|\w+Aggregate by \w+(?:, \w+)*|Window|\w+Scan"
        r"|WriteTo\w+|\bRange\b"
    )
    found = [map(str.strip, doing.findall(query)) for query in plans.strip().split("\n\n")]
    return sorted(sorted(set(words)) for words in found)


class Jobs:
    """The jobs of the pipeline, each on as little as shows all of its queries."""

    def __init__(self, spark, home: Path) -> None:
        self.spark = spark
        self.home = home
        self.table = Table.load(home / "table")

    def plans(self, name: str) -> str:
        file = self.home / f"{name}.txt"
        with explained(self.spark, file):
            getattr(self, name.replace("-", "_"))()
        found = set(file.read_text().strip().split("\n\n"))  # A query of each kind,
        return "\n\n".join(sorted(found)) + "\n"  # since some run side by side, in any order.

    def ingest(self) -> None:
        self.table = ingest(self.spark, [self.home / "traces"], self.home / "table").table

    def check_small(self) -> None:
        check(self.spark, self.table)

    def check_large(self) -> None:
        check(self.spark, self.table, small_rows=0, whole_rows=0)

    def measure(self) -> None:
        measure(self.spark, self.table, self.home)

    def source(self) -> None:
        register(self.spark)
        log = self.spark.read.format("roundelay").load(self.journal)
        log.write.parquet(str(self.home / "log"))

    def stream(self) -> None:
        log = self.spark.readStream.format("roundelay").load(self.journal)
        self.stream_to("parquet", log, path=str(self.home / "streamed"))

    def sink(self) -> None:
        """No row is left over, so no node is asked."""
        log = self.spark.readStream.format("roundelay").load(self.journal)
        rows = log.where("index < 0").select("payload")
        self.stream_to("roundelay", rows, staging=str(self.home / "staging"))

    def stream_to(self, format: str, rows: DataFrame, **options: str) -> None:
        register(self.spark)
        writer = rows.writeStream.format(format).options(**options)
        writer = writer.option("checkpointLocation", str(self.home / f"{format}-checkpoint"))
        assert writer.trigger(availableNow=True).start().awaitTermination(int(LIMIT_S))

    @property
    def journal(self) -> str:
        """Of a node that has ended."""
        path = self.home / "journal"
        if not path.exists():
            node = Node(path)
            node.grow(100)
            node.close()
        return str(path)

    def sweep(self) -> None:
        plan = parse('seeds = 1\n[[grid]]\nprotocol = ["fifo"]\nmessages = [10]\n', "plan.toml")
        with open_store(self.home / "swept", plan) as store:
            drive(self.spark, store, store.pending(retry=False), lambda *_: None)

    def follow(self) -> None:
        follow(self.spark, [self.home / "traces"], self.home / "followed", once=True)


FORMATTED = """== Physical Plan ==
AdaptiveSparkPlan (9)
+- == Final Plan ==
   LocalTableScan (1)
+- == Initial Plan ==
   HashAggregate (8)
   +- BroadcastHashJoin Inner BuildLeft (7)
      :- BroadcastExchange (4)
      :  +- Project (3)
      :     +- Scan parquet  (2)
      +- Exchange (6)
         +- Scan parquet  (5)


(2) Scan parquet
Output [3]: [run#1, kind#2, lseq#3L]

(5) Scan parquet
Output [2]: [run#4, lseq#5L]

(6) Exchange
Input [2]: [run#4, lseq#5L]
Arguments: hashpartitioning(run#4, lseq#5L, 200), ENSURE_REQUIREMENTS, [plan_id=1]

(8) HashAggregate
Input [1]: [run#1]
Keys [1]: [run#1]
"""


@pytest.mark.parametrize("put_in_place", ["Final", "Current"])
def test_a_stage_is_what_happens_between_two_exchanges(put_in_place):
    assert stages(FORMATTED.replace("Final", put_in_place)) == (
        "Scan parquet, 3 columns",
        "Scan parquet, 2 columns",
        "all rows of 1 > BroadcastHashJoin Inner BuildLeft with (rows of 2 by run, lseq)"
        " > HashAggregate by run",
    )
