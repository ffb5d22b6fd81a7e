"""Kills nodes with journals, again and again, and judges whether the log kept its promises.

Theory of operation
===================

Every node is a process of its own (`member`), with a journal in a directory that outlives it. The
process of the command, the leader, kills nodes with `kill -9` and starts them again (`run`), some
without their journal or with a damaged one (`damage`); the seed draws what happens in each round
(`rounds`). For a power cut of all nodes they first begin a life in which the disk gets only what is
synced (`HeldFiles`). Two kinds of appends go on all the time:

- Clients, which are parts of the leader and so survive every kill. Each has a named session, and
  some appends under way. If its node dies or is silent, it sends them again through another node,
  under their numbers, so that the same append may reach the log from several nodes.
- Every node appends messages of its own, and tells the leader which of them are committed.

The leader remembers every index that somebody was told (`judge.Receipts`). At the end all nodes
come back, catch up and leave, and the judge reads what their journals hold: what was confirmed is
there at its index, all journals agree, and nothing is there twice.
"""
