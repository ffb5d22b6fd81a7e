"""What Spark does for a job: the stages of each query, in words that fit a line.

Spark describes a query as a tree of operators, with an identifier for every column. Here a query is
a list of *stages*: what one task does to a part of the rows, between two exchanges of rows with
other tasks. A stage names the stages that its rows come from.

    1. Scan parquet, 7 columns > Filter > MapInArrow _facts
    2. rows of 1 by run > Sort > FlatMapGroupsInArrow _stitch

These are the plans that Spark begins with. While it runs a query it may still join in another way,
or leave out what turns out to be empty.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundelay.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


HEARD_MS = 60_000
"""How long Spark may take to hear of its last queries, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a job: who asked for it, and its stages, the first ones first."""

    asked_by: str
    stages: tuple[str, ...]

    def __str__(self) -> str:
        numbered = (f"{number}. {stage}" for number, stage in enumerate(self.stages, start=1))
        return "\n".join([self.asked_by, *numbered])


@contextmanager
def explained(spark: "SparkSession", file: Path | None) -> Iterator[None]:
    """Write what the session was asked meanwhile to a file; do nothing if there is none."""
    before = len(queries(spark)) if file is not None else 0
    yield
    if file is not None:
        asked = queries(spark)[before:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n\n".join(str(query) for query in asked) + "\n", encoding="utf-8")


def queries(spark: "SparkSession") -> list[Query]:
    """All queries of a session so far, in the order in which they began."""
    try:
        state: Any = spark._jsparkSession.sharedState()
    except AttributeError:
        raise PipelineError(
            "a Spark Connect server keeps its plans to itself; use another --master to see them"
        ) from None
    # Spark hears of its own queries through a queue, which may still hold the last of them.
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(HEARD_MS)
    found = state.statusStore().executionsList()
    executions = [found.apply(i) for i in range(found.size())]
    executions.sort(key=lambda one: int(one.executionId()))
    return [
        Query(_asked_by(str(one.description())), stages(str(one.physicalPlanDescription())))
        for one in executions
    ]


def call(spark: "SparkSession", name: str) -> None:
    """Name the queries that this thread asks from now on, in plans and on Spark's pages."""
    if hasattr(spark, "_jsparkSession"):  # A Connect server has no such names.
        spark.sparkContext.setJobDescription(name)


def _asked_by(description: str) -> str:
    """The name that `call` gave; else the call and the module that made it, such as
    `collect, proofs/certify.py`."""
    if "runId = " in description:
        return "a batch of a stream"
    call, _, place = description.partition(" at ")
    module = re.search(r"roundelay/pipeline/([\w/]+\.py)", place)
    return call if module is None else f"{call}, {module[1]}"


def stages(plan: str) -> tuple[str, ...]:
    """The stages of a plan that Spark has printed in its form `formatted`."""
    outline, _, details = plan.partition("\n\n\n")
    root = _tree(outline.splitlines()[1:], _details(details))
    writer = _Stages()
    last = writer.chain(root)
    return (*writer.done, " > ".join(last))


# Reading Spark's text.


@dataclass(slots=True)
class _Operator:
    name: str
    detail: str
    children: list["_Operator"] = field(default_factory=list)


_LINE = re.compile(
    r"^(?P<lead>[\s:|+-]*)(?P<adaptive>== )?(?:\* )?"
    r"(?P<name>[A-Z].*?) *(?:\((?P<number>\d+)\).*)?$"
)
_LEFT_OUT = {"AdaptiveSparkPlan", "InMemoryRelation", "ColumnarToRow", "Project"}
"""What wraps other operators or hands their rows on."""


def _tree(lines: Sequence[str], details: dict[int, str]) -> _Operator:
    """The operators of an outline, which is indented, without those that adaptive execution has put
    in place of the first ones: `Current Plan` while a query runs, `Final Plan` afterwards."""
    root = _Operator("", "")
    above: list[tuple[int, _Operator]] = [(-1, root)]
    skipped: int | None = None
    for line in lines:
        found = _LINE.match(line)
        if found is None:
            continue
        depth = len(found["lead"])
        if found["adaptive"] and (skipped is None or depth <= skipped):
            skipped = None if found["name"].startswith("Initial") else depth
            continue
        if skipped is not None and depth >= skipped:
            continue
        skipped = None
        while above[-1][0] >= depth:
            above.pop()
        if found["name"] in _LEFT_OUT:
            continue
        operator = _Operator(found["name"], details.get(int(found["number"] or 0), ""))
        above[-1][1].children.append(operator)
        above.append((depth, operator))
    return root.children[0]


def _details(text: str) -> dict[int, str]:
    """What Spark says of each operator, by the number that it has in the outline."""
    found = {}
    for block in text.split("\n\n"):
        head = re.match(r"\s*\((\d+)\) ", block)
        if head is not None:
            found[int(head[1])] = block
    return found


# Writing ours.


class _Stages:
    """Turns operators into stages; a part of the tree that occurs again is the same stage."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def chain(self, operator: _Operator) -> list[str]:
        """What a task does, in order, up to this operator."""
        if operator.name in ("Exchange", "BroadcastExchange", "InMemoryTableScan"):
            return [self._rows_of(operator)]
        if not operator.children:
            return [_said(operator)]
        first, *others = (self.chain(child) for child in operator.children)
        beside = " and ".join(" > ".join(other) for other in others)
        said = _said(operator) + (f" with ({beside})" if beside else "")
        return [*first, said]

    def _rows_of(self, exchange: _Operator) -> str:
        (child,) = exchange.children
        stage = " > ".join(self.chain(child))
        if stage not in self.done:
            self.done.append(stage)
        number = self.done.index(stage) + 1
        if exchange.name == "BroadcastExchange":
            return f"all rows of {number}"
        if exchange.name == "InMemoryTableScan":
            return f"kept rows of {number}"
        return f"rows of {number}{_by(exchange.detail)}"


def _by(detail: str) -> str:
    """How rows are dealt out: by some columns, into one part, or evenly."""
    columns = re.search(r"(?:hash|range)partitioning\((.*), \d+\)", detail)
    if columns is not None:
        return " by " + ", ".join(
            _plain(column) for column in re.findall(r"([\w.]+)#\d+", columns[1])
        )
    return ", in one part" if "SinglePartition" in detail else ""


def _said(operator: _Operator) -> str:
    name, detail = operator.name, operator.detail
    called = re.search(r"Arguments: .*?(\w+)\(", detail.replace("\n", " "))
    if name.startswith(("MapIn", "FlatMap", "ArrowEval", "BatchEval")) and called is not None:
        return f"{name} {called[1] if called[1] != 'List' else ''}".strip()
    if name.startswith("Scan parquet"):
        width = re.search(r"Output \[(\d+)\]", detail)
        return f"Scan parquet, {width[1]} columns" if width is not None else "Scan parquet"
    if name.endswith("Aggregate"):
        keys = re.search(r"Keys \[\d+\]: \[(.*)\]", detail)
        columns = re.findall(r"([\w.]+)#\d+", keys[1]) if keys is not None else []
        return f"{name} by {', '.join(map(_plain, columns))}" if columns else name
    return name


def _plain(column: str) -> str:
    return column.removeprefix("_")
