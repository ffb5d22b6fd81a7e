"""How the core of a node is made: a replay makes the very same core from it again."""

from dataclasses import dataclass, replace
from typing import Any

from roundelay.core.contract import Boot, Core
from roundelay.core.ids import Terms
from roundelay.core.log import KeptLog
from roundelay.group.engines import engine_factory
from roundelay.group.log.config import LogConfig
from roundelay.group.packer import GroupConfig
from roundelay.group.stack import Stack
from roundelay.membership.messages import NO_TERMS
from roundelay.runtime.tuning import membership_config

FORMAT = 2
"""The format of records. It grows when older records cannot be read any more: since 2, incarnations
have 63 bits."""


@dataclass(frozen=True, slots=True)
class CoreSetup:
    """All that decides what a core does, apart from its inputs."""

    boot: Boot
    founders: tuple[str, ...]
    engine: str
    options: dict[str, str]
    timeout_s: float
    packet_bytes: int
    queue_bytes: int
    terms: Terms = NO_TERMS
    """The settings that the node tells its peers."""
    sealed: bool = False
    """Whether its frames travel under a seal, and so have no checksums."""
    journal: bool = False
    """Whether it keeps a log; what the journal holds is in `boot`, and in the record by itself."""
    catchup_bytes_per_s: int = LogConfig().catchup_bytes_per_s
    catchup_share: float = 0.0
    application: bool = False
    """Whether the log has a state machine."""

    def _log_config(self) -> LogConfig:
        return LogConfig(
            chunk_bytes=self.packet_bytes,
            catchup_bytes_per_s=self.catchup_bytes_per_s,
            yield_share_max=self.catchup_share,
            application=self.application,
        )

    def make_core(self) -> Core[Any]:
        """A fresh core; ValueError if the engine does not know an option."""
        return Stack(
            self.boot,
            self.founders,
            engine_factory(self.engine, self.options),
            membership_config(self.timeout_s),
            GroupConfig(packet_bytes=self.packet_bytes, queue_bytes=self.queue_bytes),
            self.terms,
            **({"log": self._log_config()} if self.journal else {}),
        )

    def with_journal(self, kept: KeptLog) -> "CoreSetup":
        """The same with what the journal holds."""
        return replace(self, boot=replace(self.boot, journal=kept))

    def to_json(self) -> dict[str, Any]:
        stored = self.boot.stored
        return {
            "record": FORMAT,
            "group": self.boot.group,
            "node": self.boot.node,
            "incarnation": self.boot.incarnation,
            "stored": None if stored is None else stored.hex(),
            "wall_us": self.boot.wall_us,
            "traced": self.boot.traced,
            "founders": self.founders,
            "engine": self.engine,
            "options": self.options,
            "timeout_s": self.timeout_s,
            "packet_bytes": self.packet_bytes,
            "queue_bytes": self.queue_bytes,
            "sealed": self.sealed,
            "journal": self.journal,
            "session": self.boot.session,
            "catchup_bytes_per_s": self.catchup_bytes_per_s,
            "catchup_share": self.catchup_share,
            "application": self.application,
            "terms": [self.terms.settings, self.terms.peers],
        }

    @classmethod
    def from_json(cls, header: dict[str, Any]) -> "CoreSetup":
        """KeyError, TypeError or ValueError if it is not one of ours."""
        if header["record"] != FORMAT:
            raise ValueError(f"format {header['record']}")
        stored = header["stored"]
        return cls(
            Boot(
                header["group"],
                header["node"],
                header["incarnation"],
                None if stored is None else bytes.fromhex(stored),
                header["wall_us"],
                header["traced"],
                session=header.get("session", 0),
            ),
            tuple(header["founders"]),
            header["engine"],
            header["options"],
            header["timeout_s"],
            header["packet_bytes"],
            header["queue_bytes"],
            Terms(*header.get("terms", ())),
            header.get("sealed", False),
            header.get("journal", False),
            header.get("catchup_bytes_per_s", LogConfig().catchup_bytes_per_s),
            header.get("catchup_share", 0.0),  # A record of before had none.
            header.get("application", False),
        )
