"""Three sealed nodes at full speed while somebody without their key attacks them.

Theory of operation
===================

Every node is a process (`member`), as in `bench ring`, and verifies each message that it delivers.
All that it sends is also written to a file (`capture`), as somebody on the path would record it; of
a long run the beginning and a part of the rest, so that the file stays small.

The intruder is a process of its own (`attack`). It has the addresses of the nodes, the captures of
this session and of an earlier one of the same group and key, and nothing else: no key. It floods
the nodes, repeats what it captured, and sends forged datagrams, all with a fixed rate until a fixed
time.

`run` alternates sessions without and with the intruder, and takes the ratio of their rates within
each round. If asked, a third session of each round has the same flood go to sockets whose reader
reads and drops: what that costs is the share of the machine and its kernel, not of the nodes.
"""
