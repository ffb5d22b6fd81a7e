"""`roundelay kv`: keys and values that the nodes of a group keep, for shells and timers.

The commands ask a node of this host that was started with `--tools`. Exit codes are those of
`kv.common`.
"""

COMMANDS = {
    "get": "print the value of a key",
    "set": "set a key",
    "delete": "delete a key",
    "list": "print keys and their values",
    "watch": "print changes as they come",
}
