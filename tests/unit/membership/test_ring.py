"""The ring that members exchange items on: it keeps what everybody has, other than an engine's."""

from roundelay.membership.ring import Ring, RingConfig, Token
from roundelay.wire.primitives import U32_MAX


def test_forged_requests_do_not_keep_a_forged_count_alive() -> None:
    """Nobody may send again what is asked for, since so much seems to have been sent; and if the
    count were corrected only when nothing is asked for, the token would go round for ever."""
    ring: Ring[str] = Ring(0, 3, RingConfig())
    ring.store(1, "x")
    token = Token(0, 1, 1, requests=(1,), fcc=U32_MAX)
    for _ in range(6):
        assert ring.accepts(token)
        visit = ring.visit(token, 0, lambda: None)
        ring.forward(visit.token)
        rotated = visit.token
        token = Token(rotated.token_seq + 2, 1, 1, requests=rotated.requests, fcc=rotated.fcc)
    assert not token.requests
    assert token.fcc == 0
