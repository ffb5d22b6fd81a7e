"""`roundelay audit`: many runs of an engine, and how many of them break a promise."""

COMMANDS = {
    "st": "random runs with losses, under the rules of the paper and under the safe rules",
}
