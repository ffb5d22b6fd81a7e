"""Forged frames against real stacks: no frame ends a node, takes long, or does lasting damage.

`mutations` changes one message field by field, `arena` is a simulated group whose own frames are
forged while they are on their way, `fuzz` runs arena after arena and sums up what it saw.
"""
