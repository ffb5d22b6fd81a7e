"""Real nodes: drives the pure stack with asyncio over UDP, and gives applications a group to use.

`group` is what applications see; `node` runs one stack; `port` reads the socket for all the nodes
of a process that share it.
"""
