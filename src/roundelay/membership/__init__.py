"""Views: how nodes find each other, agree on who they are, and leave an old view together.

Totem's membership and recovery, made the substrate of every engine. Pure.

Theory of operation
===================

Follows [Totem95] sections 6 and 7; numbers with § refer to it. A node is in one of four phases,
which the paper calls the state.

- *Operational*: a view is installed and its engine runs. A suspicion of the engine, a frame of a
  node that is not in the view, or a Join ends this.
- *Gather*: nodes tell each other in Joins whom they hear and whom they have given up, until all
  that are left propose the same members. Every Gather has a reason, which the trace tells.
- *Commit*: the smallest of the members sends a Commit token round the new ring twice: once to
  collect an entry of each member, once to show all entries to all members.
- *Recovery*: over the new ring the members exchange what they hold of their old views. Then each
  installs the new view: it ends the old view with what the exchange allows, installs the
  transitional view, ends that, and installs the new view.

The engine of the old view goes on during Gather. It is frozen when a Commit token is accepted,
because the summary that it gives for the token must stay true, and sealed when Recovery begins. If
an attempt to form a ring fails, the engine stays frozen or sealed until a later attempt succeeds.

The token of the forming ring retires when it comes to a node that has installed already: then all
members have installed. Until a node knows that its successor has installed, it goes on
retransmitting that token.

The modules:

    machine        Membership: takes every input, changes the phase, installs views
    state          what the parts share: view, ring numbers, stable storage, the list of effects
    gather         who is proposed for the next ring: proposal, failures
    outsiders      whom this node does not merge with for now, for four reasons:
                   expulsions, broken_links, rejections, terms
    forming        the ring being formed: Commit token, then recovery over a ring
    primary        which views are the primary component; storage keeps what that needs
    messages       what goes over the wire; codec turns it into bytes and back
    plausibility   whether what a peer claims can be true
    engine_guard   the engine, and what it may still do in its view

A *companion* is a node that comes from the same view as this node. An *outsider* is a node that is
not in this node's view. To *give up* a node is to put it into the fail set.
"""
