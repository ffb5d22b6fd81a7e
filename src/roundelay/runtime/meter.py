"""What a node counts about itself, for `status`."""

import time
from collections import Counter, deque
from typing import Any

BOUNDS_MS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Upper bounds of the histograms' buckets, in milliseconds; one more bucket has no bound."""

RATES_S = 0.9
"""Least seconds that rates are of, from the second question on. Less: they jump while a dashboard
asks four times a second; more: `status --watch` shows old ones."""

FLUSHES_MAX = 10_000
"""Flushes whose messages are not delivered yet that are remembered, to measure how long it takes.
If there are more, the oldest are forgotten and not measured; too large only costs memory."""


class Histogram:
    """Durations, counted in buckets."""

    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_MS) + 1)
        self.total_s = 0.0

    def add(self, duration_s: float) -> None:
        self.total_s += duration_s
        ms = duration_s * 1e3
        for i, bound in enumerate(BOUNDS_MS):
            if ms <= bound:
                self.counts[i] += 1
                return
        self.counts[-1] += 1

    @property
    def count(self) -> int:
        return sum(self.counts)

    def quantile_ms(self, share: float) -> float | None:
        """The upper bound of the bucket that this share of all durations ends in; None without
        any."""
        rank = share * self.count
        seen = 0
        for bound, count in zip(BOUNDS_MS, self.counts, strict=False):
            seen += count
            if seen and seen >= rank:
                return bound
        return BOUNDS_MS[-1] if self.count else None

    def as_dict(self) -> dict[str, Any]:
        mean = self.total_s / self.count * 1e3 if self.count else None
        return {
            "count": self.count,
            "mean_ms": None if mean is None else round(mean, 3),
            "p50_ms": self.quantile_ms(0.5),
            "p99_ms": self.quantile_ms(0.99),
            "bounds_ms": list(BOUNDS_MS),
            "counts": list(self.counts),
        }


class Meter:
    """Counters of one node since it started. The parts of the node add to them directly."""

    def __init__(self) -> None:
        self.frames_sent = 0
        self.frames: Counter[int] = Counter()
        """The same, by the tag of their message."""
        self.frames_received = 0
        self.packets_delivered = 0
        self.messages_delivered = 0
        self.bytes_delivered = 0
        self.packets_own = 0
        """Packets of this node that were delivered here."""
        self.packets_received = 0
        """Copies of packets that arrived, repeated ones included."""
        self.views = 0
        self.suspicions = 0
        self.pauses = 0
        """Pauses of this process: it was stopped, or its event loop was blocked, for long."""
        self.stalls = 0
        """Stalls of this node, in which it waited for its application to read."""
        self.latency = Histogram()
        """From `send` to the delivery here."""
        self.rotation = Histogram()
        """Between two visits of the token."""
        self._started = time.monotonic()
        self._token_at: float | None = None
        self._flushes: deque[tuple[int, float]] = deque(maxlen=FLUSHES_MAX)
        """Flushes with messages that are not delivered yet: the number of the first message, and
        the time of the flush in seconds."""
        self._rates = (self._started, 0, 0)
        self._told_rates: dict[str, float] | None = None

    def token(self, now: float) -> None:
        """The token has arrived here."""
        if self._token_at is not None:
            self.rotation.add(now - self._token_at)
        self._token_at = now

    @property
    def token_ns(self) -> int | None:
        """When the token came last, on the monotonic clock; None if it never did."""
        return None if self._token_at is None else round(self._token_at * 1e9)

    def flushed(self, number: int, now: float) -> None:
        """The core was told to send own messages from this number on."""
        self._flushes.append((number, now))

    def own_delivered(self, end: int, now: float) -> None:
        """Own messages below the number `end` were delivered here."""
        flushes = self._flushes
        while flushes and flushes[0][0] < end:
            self.latency.add(now - flushes.popleft()[1])

    @property
    def uptime_s(self) -> float:
        return time.monotonic() - self._started

    def rates(self) -> dict[str, float]:
        """Messages and bytes delivered per second since the last call; the same as then if that
        was a moment ago, as several may ask."""
        now = time.monotonic()
        then, messages, size = self._rates
        if self._told_rates is not None and now - then < RATES_S:
            return self._told_rates
        self._rates = (now, self.messages_delivered, self.bytes_delivered)
        elapsed = max(now - then, 1e-6)
        self._told_rates = {
            "messages_per_s": round((self.messages_delivered - messages) / elapsed, 1),
            "bytes_per_s": round((self.bytes_delivered - size) / elapsed, 1),
        }
        return self._told_rates

    def counters(self) -> dict[str, int]:
        return {
            "frames_sent": self.frames_sent,
            "frames_received": self.frames_received,
            "packets_own": self.packets_own,
            "packets_received": self.packets_received,
            "packets_delivered": self.packets_delivered,
            "messages_delivered": self.messages_delivered,
            "bytes_delivered": self.bytes_delivered,
            "views": self.views,
            "suspicions": self.suspicions,
            "pauses": self.pauses,
            "stalls": self.stalls,
        }
