"""What a type checker knows of machines.

`make check` reads this file with mypy: `assert_type` fails there if a type is another one, and a
comment that ignores an error fails if there is none. Running the tests shows that what mypy
believes is so.
"""

from typing import NamedTuple, assert_type

import pytest

from roundelay.structures import (
    BlockingWatcher,
    Change,
    Counter,
    Hold,
    Job,
    Leader,
    Leadership,
    Lock,
    Machine,
    Map,
    Placed,
    Queue,
    Rehearsal,
    Semaphore,
    Set,
    Stale,
    Watcher,
    read,
    task,
    write,
)
from roundelay.structures.maps import Slot


class Balance(NamedTuple):
    who: str
    amount: int


class Bank(Machine):
    balances: dict[str, int]

    def __init__(self) -> None:
        self.balances = {}

    @write
    def deposit(self, who: str, amount: int, *, note: str = "") -> Balance:
        self.balances[who] = self.balances.get(who, 0) + amount
        return Balance(who, self.balances[who])

    @write(version=2)
    def close(self, who: str) -> int | None:
        return self.balances.pop(who, None)

    @read
    def total(self, at_least: int = 0) -> int:
        return sum(amount for amount in self.balances.values() if amount >= at_least)

    @task
    async def double(self, who: str) -> int:
        balance = await self.deposit(who, 0)
        return (await self.deposit(who, balance.amount)).amount


async def bank_is_typed(bank: Bank) -> None:
    assert_type(await bank.deposit("ann", 10), Balance)
    assert_type(await bank.deposit("ann", amount=10, note="x"), Balance)
    assert_type(await bank.deposit.within(2.0)("ann", 10), Balance)
    assert_type(await bank.deposit.once("s", 1)("ann", 10), Balance)
    assert_type(await bank.close("ann"), int | None)
    assert_type(await bank.total(), int)
    assert_type(await bank.total.within(1.0)(at_least=5), int)
    assert_type(bank.total.stale(5), int)
    assert_type(await bank.deposit.placed("ann", 10), Placed[Balance])
    assert_type((await bank.total.placed()).reply, int)
    assert_type(bank.total.stale.placed(), Stale[int])
    assert_type(bank.total.stale.placed().primary, bool)
    assert_type(await bank.double("ann"), int)
    assert_type(bank.index, int)
    assert_type(bank.primary, bool)


def test_a_bank_is_typed():
    log = Rehearsal(Bank)
    assert_type(log, Rehearsal[Bank])
    bank = log.face()
    assert_type(bank, Bank)
    assert_type(bank.deposit.wait("ann", 10), Balance)
    assert_type(bank.close.wait("ann"), int | None)
    assert_type(bank.total.wait(), int)
    assert_type(bank.double.wait("ann"), int)
    log.run(bank_is_typed(bank))


def test_calls_that_do_not_fit_are_errors_for_both_checkers():
    bank = Rehearsal(Bank).face()
    with pytest.raises(TypeError):
        bank.deposit.wait("ann", "10")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        bank.deposit.wait("ann")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        bank.deposit.wait("ann", 10, "a note")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        bank.deposit.wait("ann", 10, rate=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        bank.total.stale(1, 2)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        bank.total.once("s", 1)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        bank.deposit.stale("ann", 10)  # type: ignore[attr-defined]


def test_values_of_another_type_are_errors_for_mypy():
    """For it alone: which type the values of a map have is not known when the program runs."""
    prices = Rehearsal(Map[int]).face()
    prices.set.wait("apple", "5")  # type: ignore[arg-type]
    prices.update.wait({"pear": "5"})  # type: ignore[dict-item]
    prices.compare_and_set.wait("apple", "5", 6)  # type: ignore[arg-type]
    Rehearsal(Queue[int]).face().put.wait("5")  # type: ignore[arg-type]
    Rehearsal(Set[int]).face().add.wait("5")  # type: ignore[arg-type]


async def structures_are_typed(prices: Map[int]) -> None:
    assert_type(await prices.get("apple"), int | None)
    assert_type(await prices.set("apple", 5), int)
    assert_type(await prices.items(), dict[str, int])
    assert_type(prices.get.stale("apple"), int | None)
    assert_type(await prices.slot("apple"), Slot[int] | None)
    assert_type(await prices.present(), list[Change[int]])
    watcher = prices.watch()
    assert_type(watcher, Watcher[Change[int]])
    await prices.set("apple", 6)
    change = await anext(watcher)
    assert_type(change, Change[int])
    assert_type(change.value, int | None)


def test_structures_are_typed():
    log = Rehearsal(Map[int])
    assert_type(log.face(), Map[int])
    assert_type(log.face().setdefault.wait("apple", 3), int)
    log.run(structures_are_typed(log.face()))
    assert_type(log.face().watch.wait("a"), BlockingWatcher[Change[int]])
    assert_type(Rehearsal(Leader).face().follow(), Watcher[Leadership | None])
    counter = Rehearsal(Counter).face()
    assert_type(counter.add.wait(), int)
    names = Rehearsal(Set[str]).face()
    assert_type(names.items.wait(), list[str])
    queue = Rehearsal(Queue[str], ("a", "b"))
    assert_type(queue.face().put.wait("x"), int)
    assert_type(queue.restart("b"), Queue[str])
    job = queue.face().take.wait()
    assert_type(job, Job[str])
    assert_type(job.value, str)
    lock = Rehearsal(Lock).face()
    hold = lock.acquire.wait()
    assert_type(hold, Hold)
    assert_type(hold.release.wait(), bool)
    assert_type(job.give_back.wait(), bool)
    assert_type(job.done.wait(), bool)
    assert_type(counter.add.placed.wait(2), Placed[int])
    assert_type(counter.value.placed.wait().reply, int)
    assert_type(lock.try_acquire.wait(), Hold | None)
    assert_type(Rehearsal(Semaphore).face().free.wait(), int)
    assert_type(Rehearsal(Semaphore.of(3)).face(), Semaphore)
    assert_type(Rehearsal(Leader).face().leader.wait(), Leadership | None)
