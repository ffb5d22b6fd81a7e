"""The laboratory: runs of the simulator, taken apart for people to look at.

    catalogue      the scenarios that come with Roundelay, and which of them break a promise
    walkthrough    a run of a scenario: its steps, the state of the nodes, frames and verdicts
    state          what a node of the simulator is doing, as names and values
    comparison     two engines under the same load
    worker         the process in which these run
    errors         what cannot be done, as a sentence

All but the worker is pure: the same scenario gives the same walkthrough.
"""
