"""How fast do real nodes order messages? Processes on this machine, over UDP on loopback.

Theory of operation
===================

Every node is a process of its own (`member`), started and led by this one over its standard input
and output (`cluster`, `talk`). A `Job` says what it does: send and read at full speed, send at a
pace and take the time, stay idle, or stay in the group and tell of views. All clocks are the
machine's monotonic one, so times taken in different processes can be subtracted.

Nothing is believed of a run that was not verified. Each message has its sender's number in it; a
node checks that numbers follow on each other, per sender and without a gap, and keeps a running
hash over what it delivered, in order. The hashes of all nodes must be the same, and the counts must
be what the senders say that they sent (`workload`).

Peers run the same jobs: a peer is another module with the same part to play (`peers`). Runs of ours
and of peers alternate, round after round, so that a busy machine slows all alike; ratios are taken
within a round.
"""
