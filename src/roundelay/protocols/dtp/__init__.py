"""DTP, CM and Pinwheel: the token goes where it is needed, and who has it orders.

Follows [DTP97], also for what it tells of [CM84] and [Pinwheel95]. Whoever has something to say
multicasts it; the node that has the token multicasts an acknowledgment, which gives the message the
next global number and hands the token on. The three protocols are one machine with three policies:
to whom the token goes, who is believed to have what, and how many messages an acknowledgment
orders.

    paper          here                     meaning
    LTM_i          ledger.me                this node, as a number: its place in the view
    S.Token        token.grip               HOLD, TRST (handed on, not confirmed), EMPT
    N[k]           ledger.expected[k]       the next message of k, without gaps
    R[k]           ledger.held[k]           k is known to hold everything up to this number
    BUF            ledger.msgs, .acks       what is not known to be stable
    S.ACK          engine.outstanding       own messages without a number
    T              config.silence_s         how long a holder with nothing to do keeps the token
    F              config.resilience        how many may fail and nothing delivered is lost

The modules: `policy` (what distinguishes the three), `messages`, `ledger` (who holds what),
`token`, `repetitions` (timers), `engine` (the rules), `ending` (how a view ends),
`promises` (what all three promise), and one module for each name. What the paper leaves open or
gets wrong is in `docs/dtp.md`, with what is done about it; `rules="paper"` brings the literal rules
back.
"""

ENGINES = ("cm", "dtp", "pinwheel")
"""The modules of this package that are engines."""
