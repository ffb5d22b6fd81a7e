"""What Spark knows as `format("roundelay")`, and how it gets to know it."""

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamWriter
from pyspark.sql.types import StructType

from roundelay.pipeline.session import ship
from roundelay.pipeline.stream.columns import TYPES
from roundelay.pipeline.stream.options import sink_options, source_options
from roundelay.pipeline.stream.payloads import column_type
from roundelay.pipeline.stream.sink import LogWriter
from roundelay.pipeline.stream.source import LogReader, LogStreamReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class RoundelayLog(DataSource):
    """The ordered log of a group: a source of rows, and a sink for them."""

    @classmethod
    def name(cls) -> str:
        return "roundelay"

    def schema(self) -> str:
        options = source_options(self.options)
        types = TYPES | {"payload": column_type(options.payload, options.payload_schema)}
        return ", ".join(f"`{name}` {type_}" for name, type_ in types.items())

    def reader(self, schema: StructType) -> LogReader:
        return LogReader(source_options(self.options), schema)

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: N802  # Spark's names.
        return LogStreamReader(source_options(self.options), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return LogWriter(sink_options(self.options), schema, overwrite)


def register(spark: "SparkSession") -> None:
    """Make `format("roundelay")` known to a session, and give its executors our package if they
    lack it."""
    ship(spark)
    registration: Any = spark.dataSource
    registration.register(RoundelayLog)
