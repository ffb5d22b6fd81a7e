"""Traces of any size on Spark: the only package that imports pyspark.

    ingest      files of many runs into one typed table
    proofs      what can be shown of a run of any size without sorting its rows
    judge       the verdicts of the local checker on every run of a table
    measure     latencies, load and recovery of every run of a table
    stream      the ordered log of a group as a source and a sink
    sweep       many cells of an experiment, run on executors
    examine     ingest, judge and measure a few traces at once
    properties  how each property is decided: on which slice, by which proof
    session     Spark sessions; `java` finds a Java for them, `signals` ends them with the process

Functions take a session that `session.open_session` made. What a user did wrong, or what their
machine lacks, is a `PipelineError`: one sentence that says what to do next.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    """Make `format("roundelay")` known to a session: it reads the log of a group from journals, in
    batches or as a stream, and appends the rows of a streaming query to it."""
    from roundelay.pipeline.stream.format import register

    register(spark)
