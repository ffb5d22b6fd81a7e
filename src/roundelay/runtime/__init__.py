"""Real nodes: drives pure cores with asyncio over UDP, and gives applications a group to use.

`group` is what applications see; `node` drives one core, and its docstring names the modules of its
parts; `port` reads the socket for all the nodes of a process that share it.
"""
