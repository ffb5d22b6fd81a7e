"""The log of a group as an application sees it: `group.log`."""

import asyncio
from collections.abc import Sequence

from roundelay.core.contract import QueueFullError as CoreFullError
from roundelay.core.ids import NodeId
from roundelay.runtime.errors import ConfigError, QueueFullError
from roundelay.runtime.events import Payload
from roundelay.runtime.log.driver import LogDriver
from roundelay.runtime.log.reading import BatchReader, EntryReader, From, LogReader
from roundelay.runtime.log.receipts import LogReceipt, SessionReceipt

SESSION_NAME_BYTES_MAX = 255
"""Longest name of a session, in bytes: it is an entry's worth in each log, once."""


class Log:
    """What was appended, in one order, for ever: entries 0, 1, 2 ... the same at all nodes.

    An entry is shown once it is committed: on the disks of a majority. It is used from the event
    loop of its group.
    """

    def __init__(self, driver: LogDriver) -> None:
        self._driver = driver
        self._appending = driver.appending

    @property
    def driver(self) -> LogDriver:
        """For what is built on the log; applications do not need it."""
        return self._driver

    # Appending

    async def append(self, payload: Payload, timeout_s: float | None = None) -> LogReceipt:
        """Append a message, once the queue has room for it.

        Returns when it is accepted: await the receipt for its index, which it has once it is
        committed. Without a time-out it waits while no view is open, and then is sent. With one,
        NotPrimaryError says that no view opened in time and nothing was sent, and the receipt
        raises UncertainError if the message was sent and is not known to be committed in time."""
        appending = self._appending
        deadline = _deadline(timeout_s)
        if deadline is not None:
            await appending.wait_until_open(deadline)
        while True:
            try:
                return appending.accept(payload, deadline)
            except QueueFullError:
                await appending.wait_for_room(deadline)

    def append_nowait(self, payload: Payload) -> LogReceipt:
        """As `append`, without waiting: NotPrimaryError if no view is open here, QueueFullError if
        there is no room. In both cases nothing was sent."""
        appending = self._appending
        if appending.short:
            # A short cut for the usual case, which may come by the million: a flush is due.
            try:
                number = appending.put(payload, appending.stamp_us)  # type: ignore[arg-type]
            except (CoreFullError, ValueError, TypeError):
                pass  # Below it is copied and accepted, or refused with a better message.
            else:
                if number >= appending.run_end:
                    return appending.receipt(number)
                appending.newest = number
                return LogReceipt((appending.run, number, None))
        return appending.accept_now(payload)

    async def session(self, name: str, timeout_s: float | None = None) -> "Session":
        """Open the session of this name, or open it again, here or at another node: what is
        appended in it with a number is in the log once, however often it is sent."""
        if not 1 <= len(name.encode()) <= SESSION_NAME_BYTES_MAX:
            raise ConfigError(
                f"the name of a session has 1 to {SESSION_NAME_BYTES_MAX} bytes, not "
                f"{len(name.encode())}"
            )
        session, last = await self._appending.open_session(name, _deadline(timeout_s))
        return Session(self._driver, name, session, last)

    # Reading

    def read(self, from_index: From = None) -> EntryReader:
        """Entries one by one, from this index on: first those that are there, then each as it is
        committed; until the group is left. "first" means the first one that this node holds, None
        those that are committed from now on. TruncatedError if an index was removed. `Lossy` comes
        where an operator gave up what a lost majority had."""
        return EntryReader(self._reader(from_index))

    def batches(self, from_index: From = None) -> BatchReader:
        """The same, as the entries travelled: much faster."""
        return BatchReader(self._reader(from_index))

    def _reader(self, from_index: From) -> LogReader:
        return LogReader(self._driver.feed, self._driver.looks, from_index)

    async def sync(self, timeout_s: float | None = None) -> int:
        """A length of the log that is at least as great as any that was committed anywhere before
        this call; all entries below it are committed here, and were applied if there is a machine.
        TimeoutError if no view that is open here answers in time."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._driver.sync()
        except TimeoutError:
            raise TimeoutError(self._driver.not_in_time(timeout_s)) from None

    async def caught_up(self, timeout_s: float | None = None) -> int:
        """Wait until this node has all that was committed before this call, and keeps up with what
        is committed; the length of the log then. TimeoutError after `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._driver.caught_up()
                return await self._driver.sync()
        except TimeoutError:
            raise TimeoutError(self._driver.not_in_time(timeout_s)) from None

    async def snapshot(self) -> int:
        """Store the state of the machine now; up to which index it goes, once it is stored.
        LogError if it cannot be, as the disk is full."""
        return await self._driver.snapshot()

    # What is known of it

    @property
    def id(self) -> str:
        """Names this log among all others; empty until the first view has opened."""
        return self._appending.log.id.hex()

    @property
    def generation(self) -> int:
        """How often an operator gave up a lost majority."""
        return self._appending.log.generation

    @property
    def first(self) -> int:
        """The first entry that this node holds."""
        return self._driver.feed.first

    @property
    def committed(self) -> int:
        """How many entries are known here to be committed."""
        return self._driver.feed.committed

    @property
    def primary(self) -> bool:
        """Whether a view is open here, so that what is appended is committed."""
        return self._appending.log.state == "open"

    @property
    def voters(self) -> tuple[NodeId, ...]:
        """Whose disks count in the present view; none if it is not primary."""
        return self._appending.log.voters

    @property
    def state(self) -> str:
        """`open`, `opening` or, while the view is not primary, `closed`."""
        return self._appending.log.state

    @property
    def condition(self) -> str:
        """Of this node: `able`, `not able` to vote, `filling` as it lacks entries, or `behind` as
        its disk does not keep up."""
        return self._appending.log.condition

    @property
    def why(self) -> str:
        """What the log waits for, in words; empty if for nothing."""
        return self._appending.log.why

    def __repr__(self) -> str:
        return f"<Log {self.state}, {self.committed} committed>"


class Session:
    """A named session: what is appended in it is numbered, and in the log once."""

    def __init__(self, driver: LogDriver, name: str, session: int, last: int) -> None:
        self.name = name
        """What `Log.session` was given."""
        self.id = session
        """The same for this name at all nodes and times."""
        self.last = last
        """The last number that was in the log when the session was opened; -1 if there was none."""
        self._driver = driver

    async def append(
        self, payload: Payload, number: int | None = None, timeout_s: float | None = None
    ) -> SessionReceipt:
        """Append a message under this number, by default the next one. A number above the last one
        is new; any other is one that the log has already, and the receipt tells its index."""
        appending = self._driver.appending
        deadline = _deadline(timeout_s)
        if deadline is not None:
            await appending.wait_until_open(deadline)
        while True:
            try:
                return appending.accept_in(self.id, payload, number, deadline)
            except QueueFullError:
                await appending.wait_for_room(deadline)

    async def append_all(
        self, payloads: Sequence[bytes], first: int, timeout_s: float | None = None
    ) -> int | None:
        """Append many messages under the numbers from `first` on, and return once
        all of them are committed: the index of the last one, or None if that had been committed
        before and so long ago that the log does not remember where. After UncertainError some of
        them, the first ones, may be in the log: repeat the call, here or at another node."""
        known = max(0, self.last + 1 - first)
        if known >= len(payloads):
            return None
        appending = self._driver.appending
        deadline = _deadline(timeout_s)
        if deadline is not None:
            await appending.wait_until_open(deadline)
        return await appending.append_all(self.id, payloads[known:], first + known, deadline)

    def __repr__(self) -> str:
        return f"<Session {self.name!r}>"


def _deadline(timeout_s: float | None) -> float | None:
    return None if timeout_s is None else asyncio.get_running_loop().time() + timeout_s
