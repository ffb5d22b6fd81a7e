"""`roundelay journal`: looks into the journal of a node, which may be running."""

COMMANDS = {
    "ls": "show segments, indexes, terms, and whether the node is able",
    "verify": "compare every checksum",
    "cat": "print committed entries",
    "export": "write committed entries to a file",
    "recover": "go on with what is left after a majority was lost for good",
}
