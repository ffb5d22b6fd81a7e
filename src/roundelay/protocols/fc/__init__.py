"""FC: a token that is made anew without waiting, and confirmation by what follows.

Follows [WangWu]. Members form a ring. Whoever has the token makes a *decision*, which gives a
number to some requests, and broadcasts it: that passes the token on. A decision is not final until
it is *confirmed*, each member by itself. If the token does not come, whoever notices makes it anew,
without asking for a new view.

What the paper calls a request is a packet of a member here; it is broadcast at once, and decisions
name it. Three sets of rules say how a token is made anew and when a decision is confirmed:

    safe    a majority is asked before a token is made, and holds what is confirmed
    paper   nobody is asked; Algorithm 1 of the paper confirms
    link    nobody is asked; decisions by k further members on top confirm

`messages` and `config` say what is said and what may be tuned. `requests` keeps packets, `chain`
the decisions. `member` is what all rules share; `safe` and `literal` are the rest, with the paper's
confirmation in `forward`. `ending` is the end of a view, and `fc` the engine.
"""

ENGINES = ("fc",)
