"""ST: one order for packets to any subset of the group.

Follows [TachikawaTakizawa]. All members hear *transmissions* over one channel, in one order, but
may miss some. A packet has a number among all that its source sent, and every transmission tells
how many packets its source has sent to each member so far; so a member notices that it missed a
packet that is for it, and need not care about others. It delivers a packet when all whom it is for
have it and know that of each other.

    paper                    here                        meaning
    E_i                      a member, by its place
    TSEQ                     Transmission.number         number among all packets of a source
    PSEQ_j                   Transmission.counts[j]      packets for E_j before this one
    ACK_j                    Transmission.ack[j]         what is expected next from E_j
    TREQ_j, PREQ_j           expected[j], got[j]         the same two at a receiver
    AL, PAL                  acks, packs                 what each member is known to have told
    RRL, PRL                 accepted, agreed            heard; known to be with all destinations
    DT, RR                   a transmission with, without a packet

If a packet was missed, all stop, tell each other what they heard, and come to one order of it
(`lists`); then a new *epoch* begins. Under the rules of the paper that order can be wrong, so they
are to be shown and not used.

`medium` makes one channel out of any network. `member` is the engine, on top of what it knows
(`state`, `logs`) and does: `sending`, `hearing`, `delivery`, the end of an epoch (`recovering`,
`recovery`) and that of a view (`leaving`, `ending`). `literal` is the engine under the rules of the
paper, and `st` describes it all.
"""

ENGINES = ("st",)
