"""`roundelay key`: tells a running node about its key."""

COMMANDS = {
    "reload": "let a running node read its key file again",
}
