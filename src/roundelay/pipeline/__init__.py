"""Traces of any size on Spark: the only package that imports pyspark.

    ingest    files of many runs into one typed table       `Table`, `ingest`
    check     the verdicts of the local checker, at size    `check`
    measure   latencies, load and recovery, with percentiles

Functions take a session that `session.open_session` made. What a user did wrong, or what their
machine lacks, is a `PipelineError`: one sentence that says what to do next.
"""
