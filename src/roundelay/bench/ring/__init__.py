"""Measures how fast real nodes order messages: processes on this machine, over UDP on loopback.

Theory of operation
===================

Every node is a process of its own (`member`). The process of the command, the leader, starts it and
talks to it over its standard input and output (`cluster`, `talk`). A `Job` says what a node does:
send and read at full speed, send at a slow rate and measure latencies, stay idle, or stay in the
group and report views. All clocks are the machine's monotonic clock, so times of different
processes can be subtracted.

Every run is verified. Each message contains a number of its sender. A node checks that the numbers
of each sender follow each other without a gap, and keeps a hash over what it delivered, in order.
The hashes of all nodes must be the same, and the counts must be what the senders say that they sent
(`workload`).

A peer is another system that runs the same jobs (`peers`). Runs of Roundelay and of peers
alternate, round after round, so that a busy machine slows all of them down alike; ratios are taken
within a round.
"""
