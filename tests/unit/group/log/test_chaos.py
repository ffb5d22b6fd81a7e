"""Random stories: whatever happens, what was committed stays, once, in one order, and reads see it.

At the end all faults stop, and then everything that a living node appended is committed.
"""

import random
from typing import Any

import pytest
from tests.unit.group.log.cluster import Cluster, Member

from roundelay.core.effects import Appended, Committed, Kind, Synced
from roundelay.core.log import NAMED
from roundelay.group.log.config import LogConfig
from roundelay.group.packer import GroupConfig


class Story:
    """One random story and what must hold in it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        size = self.random.choice((3, 3, 4, 5))
        engine = self.random.choice(("totem", "totem", "pinwheel", "dtp", "cm", "fc"))
        group = GroupConfig(packet_bytes=self.random.choice((200, 1200)))
        config = LogConfig(
            checkpoint_bytes=self.random.choice((500, 5_000)),
            live_window_bytes=self.random.choice((1_500, 50_000)),
            fetch_window_bytes=4_000,
            unsynced_bytes=self.random.choice((3_000, 1_000_000)),
            undo_records=self.random.choice((3, 1_000)),
            feed_packets=self.random.choice((1, 2, 8)),
        )
        self.cluster = Cluster("abcde"[:size], engine, config=config, group=group, start=False)
        self.names = self.cluster.founders
        self.final: dict[int, str] = {}
        """What anybody ever knew to be committed."""
        self.confirmed: dict[str, int] = {}
        self.reads: dict[tuple[str, int], int] = {}
        self.appended: list[tuple[str, Member]] = []
        self.count = 0
        self.client = 0
        """The number that the client reached."""
        self.lost = False
        """A disk was lost: more of them would be more than a group bears."""
        for name in self.names:
            self.watch(self.cluster.start(name))

    def watch(self, member: Member) -> None:
        run = member.do

        def do(effects: list[Any]) -> None:
            run(effects)
            for effect in effects:
                self.judge(member, effect)

        member.do = do  # type: ignore[method-assign]

    def judge(self, member: Member, effect: Any) -> None:
        assert not member.forks, member.forks
        if not member.alive:
            return
        if isinstance(effect, Committed):
            for index, text in enumerate(member.seen[: effect.length]):
                assert self.final.setdefault(index, text) == text, f"entry {index} changed"
        elif isinstance(effect, Appended) and effect.index is None:
            assert effect.session >= NAMED, "where an own message is in the log was forgotten"
        elif isinstance(effect, Appended) and effect.index is not None:
            for i in range(effect.count):
                text = self.text_of(member, effect.number + i, effect.session)
                assert self.final.setdefault(effect.index + i, text) == text
                self.confirmed[text] = effect.index + i
        elif isinstance(effect, Synced):
            least = self.reads.pop((member.name + str(member.session), effect.request))
            assert effect.length is not None
            assert effect.length >= least, "a read missed what was committed before it"
            assert member.committed >= effect.length

    def text_of(self, member: Member, number: int, session: int | None = None) -> str:
        session = member.session if session is None else session
        return f"client:{number}" if session >= NAMED else f"{session}:{number}"

    def step(self) -> None:
        cluster, rnd = self.cluster, self.random
        alive = [m for m in cluster.members.values() if m.alive]
        dead = [n for n, m in cluster.members.items() if not m.alive]
        action = rnd.random()
        if action < 0.5 and alive:
            member = rnd.choice(alive)
            for _ in range(rnd.choice((1, 1, 3, 20))):
                number = member.log.sending._next[member.session]
                pad = " " * rnd.choice((0, 0, 0, 50, 700))
                member.append(self.text_of(member, number) + pad)
                self.appended.append((self.text_of(member, number), member))
        elif action < 0.56 and alive:
            self.retry(rnd.choice(alive))
        elif action < 0.62 and alive:
            member = rnd.choice(alive)
            self.count += 1
            self.reads[member.name + str(member.session), self.count] = len(self.final)
            member.read(self.count)
        elif action < 0.7:
            names = list(self.names)
            rnd.shuffle(names)
            at = rnd.randrange(1, len(names))
            cluster.split("".join(names[:at]), "".join(names[at:]))
        elif action < 0.8:
            cluster.heal()
        elif action < 0.87 and alive:
            cluster.kill(rnd.choice(alive).name, power=rnd.random() < 0.5)
        elif action < 0.89:
            cluster.kill(*[m.name for m in alive], power=rnd.random() < 0.7)
        elif action < 0.97 and dead:
            lost = not self.lost and rnd.random() < 0.3
            self.lost = self.lost or lost
            self.watch(cluster.start(rnd.choice(dead), lost=lost))
        elif alive and rnd.random() < 0.5:
            member = rnd.choice(alive)
            member.full = not member.full
        elif alive:
            member = rnd.choice(alive)
            member.syncs = not member.syncs
            if member.syncs:
                cluster.later(0, member.sync)
        cluster.run(rnd.choice((0.0, 0.0005, 0.002, 0.02, 0.2, 0.5)))

    def retry(self, member: Member) -> None:
        """A client goes on through another node, and cannot know which of its messages came."""
        session = member.open_session("client")
        first = max(0, self.client - self.random.randrange(3))
        for number in range(first, self.client + 1):
            member.append(f"client:{number}", session, number)
        self.client += 1

    def run(self, steps: int) -> None:
        cluster, rnd = self.cluster, self.random
        loss = rnd.choice((0.0, 0.0, 0.02, 0.1))
        cluster.loses = lambda sender, to, m: rnd.random() < loss
        cluster.run(rnd.choice((0.0, 0.2, 1.0)))
        for _ in range(steps):
            self.step()
        self.end()

    def end(self) -> None:
        cluster = self.cluster
        cluster.loses = lambda sender, to, m: False
        cluster.heal()
        for name, member in list(cluster.members.items()):
            if not member.alive:
                self.watch(cluster.start(name))
            member = cluster[name]
            member.full = False
            if not member.syncs:
                member.syncs = True
                cluster.later(0, member.sync)
        cluster.run(12)
        members = [cluster[name] for name in self.names]
        assert [m.status.state for m in members] == ["open"] * len(members), [
            (m.status, m.stack.membership.phase) for m in members
        ]
        logs = [m.texts for m in members]
        assert [m.status.condition for m in members] == ["able"] * len(members)
        for member, log in zip(members, logs, strict=True):
            assert log == logs[0], (member.name, log[-3:], logs[0][-3:])
            assert member.committed == len(log) == member.status.length
            assert member.log.sending.messages == 0, member.status
        assert len(set(logs[0])) == len(logs[0]), "an entry has two indexes"
        texts = logs[0]
        clients = [text for text in texts if text.startswith("client")]
        assert clients == sorted(clients, key=lambda text: int(text[7:]))
        for index, text in self.final.items():
            assert texts[index] == text
        for text, member in self.appended:
            if member.alive:
                assert text in texts
        for m in members:
            assert Kind.OPEN in [row.kind for row in m.rows]


@pytest.mark.parametrize("seed", range(60))
def test_nothing_committed_is_ever_lost(seed: int):
    Story(seed).run(40)


@pytest.mark.parametrize("seed", [59, 145, 1093, 2088, 3040, 3112, 4220])
def test_stories_that_found_something(seed: int):
    """A log cut back to nothing; an offer that is told again after a cut; a donor among several
    that have nothing which was never asked."""
    Story(seed).run(60)
