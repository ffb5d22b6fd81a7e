"""The ordered log in Spark while nodes, drivers and executors are killed: is each entry in the
table once, and each row in the log once?

Theory of operation
===================

Three nodes with journals run as processes of their own, and a client appends to their log all the
time. A *driver*, a process of its own as well, has two streaming queries (`driver`): one appends
rows to the log, the other writes the log into a Parquet table. In every round (`run`)

1. a driver works with threads of its own; a node is killed; then the driver, with its Java;
2. the next driver takes over both checkpoints, with a standalone cluster; an executor is killed,
   another node, and then this driver.

At the end, one more driver reads and appends what is left. The leader then compares (`judge`) what
the journals of all nodes hold, what the table's files hold, and what was to be appended.
"""
