"""`roundelay sim COMMAND`: each command is a module of this package."""

COMMANDS = {
    "run": "run a scenario and compare what happens",
    "list": "list the scenarios that come with Roundelay",
    "replay": "run a recording again, choice by choice",
    "swarm": "run many seeds, each a cluster of its own",
    "explore": "try every placement of a few faults in a small group",
    "shrink": "cut a failing run down to a small scenario",
}
