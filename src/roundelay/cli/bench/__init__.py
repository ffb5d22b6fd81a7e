"""`roundelay bench COMMAND`: each measurement is a module of this package.

A measurement runs Roundelay next to something comparable, on the same machine at the same time.
"""

COMMANDS = {
    "sim": "the simulator next to SimPy and to real time; its memory",
    "core": "engines next to each other, without a network",
    "ring": "real nodes on this machine, next to peers",
    "fuzz": "forged frames against an engine",
    "intruder": "sealed nodes next to somebody without their key who attacks them",
    "structures": "a replicated map and counter next to a peer's",
    "histories": "replicated machines through kills, pauses and partitions, judged",
    "soak": "real nodes under full load for minutes",
    "pipeline": "the check on Spark next to DuckDB",
    "stream": "the ordered log in Spark next to Parquet; appending to it",
    "watch": "traces of running nodes judged live: rows a second, and how far behind",
    "dashboard": "a node that is watched next to the same node that is not",
    "recovery": "the ordered log in Spark, while nodes, drivers and executors are killed",
    "sweep": "a sweep on Spark next to a pool of processes",
}
