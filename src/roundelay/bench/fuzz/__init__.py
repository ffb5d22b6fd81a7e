"""Forged frames against real stacks: no frame ends a node, takes long, or does lasting damage.

`mutations` changes one message field by field, `arena` is a simulated group whose own frames are
forged while they are on their way, `run` runs arena after arena and sums up what it saw. `guided`
lets coverage decide which inputs are varied further: an input is bytes, which make `choices`, and
the code that they reach is counted in a process of its own, `instrumented`.
"""
