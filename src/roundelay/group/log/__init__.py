"""The replicated log of a group whose nodes have journals. Pure.

`log.ReplicatedLog` is the layer between membership, which gives views, and delivery, which hands
packets to the application. Its parts, one idea each:

    state       what this node's log holds, and what of it is stored
    sessions    which numbers of which sender are in the log already
    arrival     log packets: a session and numbers in front of an ordinary body
    opening     how a primary view opens: offers, the adopted log, the mark, ready
    indexing    packets of an open view become entries
    commit      acknowledgments, and what is committed
    reads       probes: how far a linearizable read must wait
    sending     what was appended here, and is not known to be committed
    learner     fetches what this node lacks; donor serves those that do
"""
