"""J, H, L8 and L9: what a replicated log promises, and the objects on it.

Each module has properties of one kind, and says what they rest on:

    history     what each node's log holds, row by row, and what is committed
    agreement   J1 to J4 and J11: one log, without holes, final, each message once
    openings    J6, J7 and J9: which views open, and what they must hold
    evidence    J5, J8, J10 and J12: what a claim rests on
    objects     H1 to H4: operations on replicated objects, judged by `histories`
    liveness    L8 and L9: what is owed at a quiet end
"""
