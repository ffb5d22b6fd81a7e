"""A Spark session: quiet and quick on one machine, unchanged on a cluster.

    local[N], local[*]            threads of this process
    local-cluster[N,CORES,MB]     executors of their own, on this machine
    spark://HOST:PORT             a standalone cluster
    sc://HOST:PORT                a Spark Connect server

Executors get our package from us: it is pure Python, and travels as a zip file.
"""

import os
import re
import socket
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import roundelay
from roundelay.pipeline.errors import PipelineError, plain
from roundelay.pipeline.java import provide_java
from roundelay.pipeline.scratch import scratch
from roundelay.pipeline.signals import orderly_end, same_interrupts
from roundelay.trace.extras import install

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK_TO_START = " -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Options for a Java that compiles quickly and not well. It would then reserve only 48 MB for
compiled code, which many queries fill: it is given as much as usual."""
DEFAULT_MASTER = "local[*]"

MEMORY_VARIABLE = "ROUNDELAY_SPARK_MEMORY"
"""Environment variable: memory of the driver, as 4g."""

_REMOTE = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_LOCAL_REMOTE")
"""Environment variables that a Connect session leaves: they would make the next one remote too."""

REACH_S = 5.0
"""How long a master may take to answer, in seconds. With less, a busy one is given up; with more, a
user waits longer to hear of a wrong address."""

ENDING_S = 30.0
"""How long Java may take to end after it was told to, in seconds, before it is killed. A Java that
is killed cannot stop its executors: these end when they notice that it is gone."""

_LOG4J = """rootLogger.level = off
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %p %c: %m%n
logger.shell.name = org.apache.spark.api.python.PythonGatewayServer
logger.shell.level = off
"""


@contextmanager
def open_session(
    master: str = DEFAULT_MASTER, *, memory: str = "", short: bool = False
) -> "Iterator[SparkSession]":
    """A session for one command, stopped at its end; what Spark throws becomes a PipelineError.

    A process that is told to end (SIGTERM, SIGINT) ends the session first, whatever Spark is doing.
    """
    with orderly_end():
        spark = start(master, memory=memory, short=short)
        at_once = False
        try:
            yield spark
        except _spark_errors() as e:
            raise plain(e) from None
        except BaseException as e:
            at_once = not isinstance(e, Exception)
            raise
        finally:
            stop(spark, at_once=at_once)


def start(master: str = DEFAULT_MASTER, *, memory: str = "", short: bool = False) -> "SparkSession":
    """A session at `master`, whose executors have our package.

    `memory` is the driver's, as 4g. A `short` job is over before Java has made its code fast, so
    Java does not try.
    """
    kind = _kind(master)
    if kind in ("spark", "sc"):
        _reach(master)
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise PipelineError(
            f"this command needs Spark; install it with: {install('spark')}"
        ) from None
    try:
        spark = _connect(master) if kind == "sc" else _classic(master, kind, memory, short)
        if kind != "local":
            _ship(spark)
        return spark
    except BaseException as e:
        _end_java()
        if isinstance(e, PipelineError) or not isinstance(e, Exception):
            raise
        # Whatever a cluster says no with: the user gets a sentence.
        raise PipelineError(
            f"no Spark session at {master} ({_first_line(e)}); see that the master runs and has "
            "free executors"
        ) from None


def ship(spark: "SparkSession") -> None:
    """Give the executors of a session that somebody else has started our package, unless they have
    it: threads of this process do."""
    if hasattr(spark, "_jsparkSession") and _kind(str(spark.sparkContext.master)) == "local":
        return
    try:
        said = spark.range(0, 1, 1, 1).mapInArrow(_hello, "version string").first()
    except Exception:  # Whatever went wrong over there: `_ship` tells.
        said = None
    if said is None or said[0] != roundelay.__version__:
        _ship(spark)


def stop(spark: "SparkSession", *, at_once: bool = False) -> None:
    """End a session and the Java process behind it, so that the next one starts afresh.

    Spark waits for the job that this thread has begun, if it is asked to stop. With `at_once` it is
    not asked, where it has a Java process that can be ended instead.
    """
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None or not at_once:
        with suppress(Exception):  # A cluster that died needs no stopping.
            spark.stop()
        if gateway is not None:
            with suppress(Exception):
                gateway.shutdown()
    _end_java()


def _end_java() -> None:
    """End the Java process of this process's session, if there is one, and forget the session.

    Java ends when its input does: it then stops its executors, on this machine or on a cluster. So
    it does if this process is killed.
    """
    for name in _REMOTE:
        os.environ.pop(name, None)
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    if context is not None:
        vars(context).pop("_jsc", None)  # Or it would ask Java to stop.
        context.stop()  # Ends a server of Python's that would complain of the end of Java.
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for name in ("_instantiatedSession", "_activeSession"):
        setattr(SparkSession, name, None)
    SparkContext._gateway = SparkContext._jvm = None


def parallelism(spark: "SparkSession") -> int:
    """How many tasks run at a time, as far as it is known."""
    if hasattr(spark, "_jsparkSession"):
        return max(1, spark.sparkContext.defaultParallelism)
    return CONNECT_PARALLELISM


CONNECT_PARALLELISM = 8
"""Tasks that a Connect server is assumed to run at a time, since it does not tell. With too many,
tasks are small; with too few, cores of the server are idle."""


def _kind(master: str) -> str:
    if re.fullmatch(r"local(\[(\*|[1-9][0-9]*)(,[0-9]+)?\])?", master):
        return "local"
    if re.fullmatch(r"local-cluster\[[1-9][0-9]*,[1-9][0-9]*,[1-9][0-9]*\]", master):
        return "local-cluster"
    scheme = urlsplit(master).scheme
    if scheme in ("spark", "sc") and urlsplit(master).hostname:
        return scheme
    if master in ("yarn",) or scheme == "k8s":
        return "cluster"
    raise PipelineError(
        f"{master!r} is no Spark master; write local[*], local-cluster[2,1,1024], "
        "spark://HOST:7077 or sc://HOST:15002"
    )


def _reach(master: str) -> None:
    """Spark itself would try for a minute, and then say so on a page."""
    for place in urlsplit(master).netloc.split(","):
        host, _, port = place.partition(":")
        number = (
            int(port) if port.isdigit() else {"spark": 7077}.get(urlsplit(master).scheme, 15002)
        )
        with suppress(OSError), socket.create_connection((host, number), REACH_S):
            return
    raise PipelineError(f"nothing answers at {master}; see that the master runs and is reachable")


def _classic(master: str, kind: str, memory: str, short: bool) -> "SparkSession":
    from pyspark.sql import SparkSession

    here = kind in ("local", "local-cluster")
    provide_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_CONF_DIR", str(_quiet_logs()))
    builder = (
        SparkSession.builder.appName("roundelay")
        .master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.catalogImplementation", "in-memory")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", str(ARROW_ROWS))
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.driver.memory", memory or os.environ.get(MEMORY_VARIABLE, "1g"))
    )
    if here:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        threads = _threads(master)
        options = "-XX:+UseSerialGC" + QUICK_TO_START * short
        builder = (
            builder.config("spark.driver.host", "127.0.0.1")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", str(2 * threads))
            .config("spark.driver.extraJavaOptions", options)
            .config("spark.executor.extraJavaOptions", options)
        )
    with same_interrupts(), _own_stderr():
        return builder.getOrCreate()


@contextmanager
def _own_stderr() -> Iterator[None]:
    """Java is started with an error output of its own: what its Python workers say when they are
    stopped is no news for a user."""
    with tempfile.TemporaryFile(prefix="roundelay-java-") as log:
        kept = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


ARROW_ROWS = 65_536
"""Rows in one batch that goes from Spark to Python. Larger ones need more memory in every task."""


def _threads(master: str) -> int:
    numbers = re.findall(r"[0-9]+", master)
    if not numbers:
        return os.cpu_count() or 1
    return int(numbers[0]) * (int(numbers[1]) if master.startswith("local-cluster") else 1)


def _connect(master: str) -> "SparkSession":
    try:
        import pyspark.sql.connect.session  # noqa: F401
    except ImportError:
        raise PipelineError(
            "Spark Connect needs more packages; install them with: pip install 'pyspark[connect]'"
        ) from None
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.remote(master).appName("roundelay").getOrCreate()
    spark.range(1).count()
    return spark


def _ship(spark: "SparkSession") -> None:
    """Give the executors our package, and see that they can use it."""
    archive = _archive()
    if hasattr(spark, "addArtifacts") and not hasattr(spark, "_jsparkSession"):
        spark.addArtifacts(str(archive), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(archive))
    try:
        said = spark.range(0, 1, 1, 1).mapInArrow(_hello, "version string").first()
    except Exception as e:  # Whatever went wrong over there.
        raise PipelineError(
            f"the executors cannot run roundelay ({_first_line(e)}); give them Python "
            f"{sys.version_info[0]}.{sys.version_info[1]} with pyarrow and numpy"
        ) from None
    if said is None or said[0] != roundelay.__version__:
        raise PipelineError(
            f"the executors have roundelay {said and said[0]}, not {roundelay.__version__}; "
            "uninstall it there, it is sent along"
        )


def _hello(batches: "Iterator[object]") -> "Iterator[object]":
    """Runs on an executor: what is needed is there."""
    import numpy  # noqa: F401
    import pyarrow as pa

    import roundelay as there

    for _ in batches:
        yield pa.RecordBatch.from_pydict({"version": [there.__version__]})


def _archive() -> Path:
    """Our package as a zip file."""
    package = Path(roundelay.__file__).parent
    directory = scratch("ship")
    archive = directory / "roundelay.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(package.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                file.write(path, Path("roundelay") / path.relative_to(package))
    return archive


def _quiet_logs() -> Path:
    """A configuration directory that keeps Spark's log to itself: we say what went wrong."""
    directory = scratch("spark")
    (directory / "log4j2.properties").write_text(_LOG4J)
    return directory


def _spark_errors() -> tuple[type[Exception], ...]:
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    return (Py4JJavaError, Py4JError, PySparkException, ConnectionError)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if re.search(r"(Error|Exception)\b.*: ", line)] or lines
    return (told[-1] if told else type(error).__name__)[:160]
