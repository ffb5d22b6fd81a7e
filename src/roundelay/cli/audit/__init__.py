"""`roundelay audit`: many runs of an engine, and how many of them break a promise."""

COMMANDS = {
    "fc": "every run of a small group that an assumption allows",
    "st": "random runs with losses, under the rules of the paper and under the safe rules",
}
