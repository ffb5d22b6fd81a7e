"""The one exception of the pipeline, and how to get to it from what Spark throws."""

import re


class PipelineError(Exception):
    """Its message is one sentence for the user, and says what to do next."""


_SENTENCES = (
    (r"No space left on device", "the disk is full; free some space or set SPARK_LOCAL_DIRS"),
    (r"OutOfMemoryError", "Spark ran out of memory; give it more with ROUNDELAY_SPARK_MEMORY=4g"),
    (
        r"ModuleNotFoundError: No module named '(pyarrow|numpy|pandas)",
        "the executors' Python lacks a package; install Roundelay with its extra spark there",
    ),
    (
        r"Python in worker has different version|PYTHON_VERSION_MISMATCH",
        "the executors run another version of Python; set PYSPARK_PYTHON to the same one there",
    ),
    (
        r"All masters are unresponsive|application has been killed|stopped SparkContext",
        "the Spark master went away; see that it runs, and start the command again",
    ),
    (
        r"PATH_NOT_FOUND|does not exist|FileNotFoundException|FileNotFoundError",
        "the executors do not see the files; use a directory that every machine has",
    ),
)


def plain(error: BaseException) -> PipelineError:
    """What Spark threw, as one sentence."""
    text = str(error)
    if ours := re.search(r"\bPipelineError: ([^\n]+)", text):
        return PipelineError(ours[1])  # It was raised where Spark called us.
    for pattern, sentence in _SENTENCES:
        if re.search(pattern, text):
            return PipelineError(sentence)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if re.match(r"(Caused by: )?[\w.]+(Error|Exception)\b", line)]
    first = (causes or lines or [type(error).__name__])[-1]
    return PipelineError(
        f"Spark failed ({first[:200]}); try again with --master local[1], and report it if it stays"
    )
