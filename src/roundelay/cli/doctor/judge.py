"""What the facts mean for a node: findings, and what to do. It decides, and looks at nothing."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from roundelay.cli.doctor.facts import Disk, Facts, Package, Peer
from roundelay.runtime.descriptors import NEEDED
from roundelay.trace.extras import install
from roundelay.transport.udp import datagrams_that_fit

PYTHON_OLDEST = (3, 11)
FILES_FEW = 256
"""Below so many open files, a program with a node and clients of its own may run out of them."""
CLOCK_READ_NS_MAX = 1000.0
"""A node looks at the clock for every datagram; above this it shows in the CPU time."""
YEAR_MIN = 2025
"""A clock that tells an earlier year was never set."""
CLOCK_ERROR_MS_MAX = 1000.0
"""A larger error of the wall clock misleads who reads traces of several machines side by side."""
LOOKUP_S_SLOW = 1.0
"""A name that takes longer to resolve delays the search for a peer that has moved."""
SYNC_MS_SLOW = 20.0
"""A slower disk makes every append of the group wait for longer than a lost packet does."""
SEGMENTS_FREE_MIN = 4
"""A journal with room for fewer files will be full soon."""
FREE_BYTES_MIN = 256 * 1024 * 1024
"""A disk with less free space will be full soon."""
IP_HEADERS_BYTES = {False: 28, True: 48}
"""Bytes of the headers of IP and UDP: by version 4, and by version 6."""
GOOD_CLOCKS = ("tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page", "xen")
MEMORY = ("tmpfs", "ramfs")
FAR = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph", "glusterfs")
"""File systems on other machines: a sync waits for the network, and locks may not hold."""
MIB = 1024 * 1024


class Level(StrEnum):
    FINE = "fine"
    NOTE = "note"
    """Nothing is wrong, and something is not there that could be."""
    WARNING = "warning"
    """A node runs, but not as well as it could."""
    PROBLEM = "problem"
    """A node does not start, or does not keep what it promises."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    subject: str
    level: Level
    found: str
    advice: str = ""
    """What to do; empty if nothing has to be done."""


def judge(facts: Facts) -> list[Finding]:
    """Everything that is fine, and everything that is not, in a fixed order."""
    return [finding for part in _PARTS for finding in part(facts)]


def _fine(subject: str, found: str) -> Finding:
    return Finding(subject, Level.FINE, found)


def _note(subject: str, found: str, advice: str) -> Finding:
    return Finding(subject, Level.NOTE, found, advice)


def _warning(subject: str, found: str, advice: str) -> Finding:
    return Finding(subject, Level.WARNING, found, advice)


def _problem(subject: str, found: str, advice: str) -> Finding:
    return Finding(subject, Level.PROBLEM, found, advice)


def _software(facts: Facts) -> Iterator[Finding]:
    software = facts.software
    version = ".".join(map(str, software.python))
    found = f"Roundelay {software.roundelay}, {software.implementation} {version}"
    if software.python < PYTHON_OLDEST:
        yield _problem("versions", found, "install Python 3.11 or newer")
    elif software.implementation != "CPython":
        yield _warning("versions", found, "use CPython: nothing else was tested")
    else:
        yield _fine("versions", found)
    if software.linux:
        yield _fine("system", software.system)
    else:
        yield _warning(
            "system",
            f"{software.system}, without system calls for many datagrams at once",
            "expect less throughput than on Linux; nothing has to be done",
        )


def _packages(facts: Facts) -> Iterator[Finding]:
    extras: dict[str, list[Package]] = {}
    for package in facts.packages:
        extras.setdefault(package.extra, []).append(package)
    for extra, packages in extras.items():
        yield _extra(extra, packages, facts)


def _extra(extra: str, packages: list[Package], facts: Facts) -> Finding:
    subject = f"extra {extra}"
    there = ", ".join(f"{p.name} {p.version}" for p in packages if p.version is not None)
    missing = ", ".join(p.name for p in packages if p.version is None)
    if unfit := [p for p in packages if not p.fits]:
        said = "; ".join(f"{p.name} {p.version} is not {p.wanted}" for p in unfit)
        return _warning(subject, said, install(extra))
    if not missing:
        return _fine(subject, there)
    found = f"without {missing}" + (f"; {there}" if there else "")
    if extra == "sealed" and facts.needs.key:
        return _problem(subject, f"{found}; the setting key needs it", install(extra))
    if extra == "trace" and facts.needs.trace:
        advice = f"traces are written as JSON Lines, which take more room; {install(extra)}"
        return _warning(subject, found, advice)
    return _note(subject, found, f"if you need its commands: {install(extra)}")


def _java(facts: Facts) -> Iterator[Finding]:
    spark = any(p.name == "pyspark" and p.version is not None for p in facts.packages)
    if facts.java.path is not None:
        yield _fine("java", facts.java.path)
    elif spark:
        yield _warning("java", "Spark would find none", facts.java.why)
    else:
        yield _note("java", "none; only Spark needs it", f"with Spark: {install('spark')}")


def _processors(facts: Facts) -> Iterator[Finding]:
    processors = facts.processors
    count = f"{processors.count} processor{'s' if processors.count > 1 else ''}"
    if processors.quota is not None and processors.quota < 1:
        yield _warning(
            "processors",
            f"{count}, of whose time this control group gets {processors.quota:g}",
            "give it the time of one processor at least: a node that is stopped in between is "
            "taken for a failed one, and timeout_s must be longer than such a stop",
        )
    else:
        yield _fine("processors", count)


def _clock(facts: Facts) -> Iterator[Finding]:
    clock = facts.clock
    if clock.went_back:
        yield _problem(
            "monotonic clock",
            "it went back while it was read",
            "choose another clock source of the kernel, or move this virtual machine: every timer "
            "of a node depends on this clock",
        )
    elif clock.read_ns > CLOCK_READ_NS_MAX or (
        clock.source is not None and not clock.source.startswith(GOOD_CLOCKS)
    ):
        yield _warning(
            "monotonic clock",
            f"one look costs {clock.read_ns:.0f} ns; the kernel takes the time from {clock.source}",
            "see /sys/devices/system/clocksource/clocksource0/available_clocksource for a faster "
            "one, such as tsc",
        )
    else:
        source = f" from {clock.source}" if clock.source else ""
        yield _fine("monotonic clock", f"goes forward, {clock.read_ns:.0f} ns a look{source}")
    yield _wall_clock(facts)


def _wall_clock(facts: Facts) -> Finding:
    clock = facts.clock
    why = "the order of messages does not depend on it, but the times in logs and traces do"
    if facts.needs.by_wall_clock:
        why = "retain_s removes what is old by this clock"
    if clock.year < YEAR_MIN:
        return _problem("wall clock", f"it says {clock.year}", f"set it: {why}")
    if clock.synchronized is None:
        return _note("wall clock", "the kernel does not tell whether it is right", why)
    error = "" if clock.error_ms is None else f", wrong by {clock.error_ms:,.0f} ms at most"
    if not clock.synchronized:
        advice = f"run a time service, such as chrony or systemd-timesyncd: {why}"
        found = "nothing keeps it right, as far as the kernel knows"
        return (_warning if facts.needs.by_wall_clock else _note)("wall clock", found, advice)
    if clock.error_ms is not None and clock.error_ms > CLOCK_ERROR_MS_MAX:
        return _warning("wall clock", f"kept right{error}", f"look at the time service: {why}")
    return _fine("wall clock", f"kept right{error}")


def _files(facts: Facts) -> Iterator[Finding]:
    files = facts.files
    found = f"this process may have {files.limit:,} open, and has {files.open}"
    if files.limit < files.open + NEEDED:
        yield _problem("open files", found, "raise the limit: ulimit -n 1024")
    elif files.limit < FILES_FEW:
        yield _warning("open files", found, "raise the limit: ulimit -n 1024")
    else:
        yield _fine("open files", found)


def _buffers(facts: Facts) -> Iterator[Finding]:
    buffers = facts.buffers
    size = facts.needs.datagram_bytes
    for name, given, limit in (
        ("receive buffer", buffers.receive, "rmem_max"),
        ("send buffer", buffers.send, "wmem_max"),
    ):
        if given >= buffers.wanted:
            yield _fine(name, f"{given // 1024:,} KB")
            continue
        room = datagrams_that_fit(2 * given, size)
        yield _warning(
            name,
            f"{given // 1024:,} KB of {buffers.wanted // 1024:,} wanted, room for {room} datagrams "
            f"of {size} bytes",
            f"as root: sysctl -w net.core.{limit}={buffers.wanted}; to keep it, copy "
            "deploy/systemd/roundelay.sysctl.conf to /etc/sysctl.d/60-roundelay.conf; for a "
            "container, do it on its host",
        )


def _loopback(facts: Facts) -> Iterator[Finding]:
    loopback = facts.loopback
    if loopback.failure:
        yield _problem(
            "UDP",
            f"a datagram of {loopback.datagram_bytes:,} bytes to 127.0.0.1: {loopback.failure}",
            "look for a rule of a firewall or a sandbox that forbids it, and whether lo is up",
        )
    elif facts.software.linux and not loopback.batched:
        yield _warning(
            "UDP",
            "datagrams travel one by one: this kernel has no UDP_GRO",
            "take Linux 5.0 or newer, or expect less throughput",
        )
    else:
        yield _fine("UDP", f"a datagram of {loopback.datagram_bytes:,} bytes comes back")


def _listening(facts: Facts) -> Iterator[Finding]:
    for subject, listening in (("address", facts.listening), ("multicast", facts.multicast)):
        if listening is None:
            continue
        if not listening.failure:
            yield _fine(subject, f"{listening.address} is free")
        elif listening.runs:
            yield _fine(subject, f"{listening.address} is used by this node, which runs")
        else:
            yield _problem(subject, f"{listening.address} cannot be used", listening.failure)


def _peers(facts: Facts) -> Iterator[Finding]:
    local = [peer.name for peer in facts.peers if peer.loopback]
    mixed = 0 < len(local) < len([peer for peer in facts.peers if peer.numeric is not None])
    for peer in facts.peers:
        yield _peer(peer, facts.needs.datagram_bytes, mixed)


def _peer(peer: Peer, datagram_bytes: int, mixed: bool) -> Finding:
    subject = f"peer {peer.name}"
    if peer.numeric is None:
        found = f"{peer.address} does not resolve"
        advice = "correct the name in peers, or add it to the name service or to /etc/hosts"
        if peer.own:
            return _problem(subject, found, advice)
        return _warning(subject, found, f"{advice}; a node asks again every few seconds")
    way = f"{peer.address} is {peer.numeric}"
    if peer.failure:
        return _problem(subject, f"{way}: {peer.failure}", "give this machine a route to it")
    if mixed and peer.loopback:
        return _problem(
            subject,
            f"{way}, which only this machine reaches, while other peers are elsewhere",
            "take the name of this host out of the line of 127.0.0.1 or 127.0.1.1 in /etc/hosts, "
            "or write the address that the others reach",
        )
    if peer.lookup_s > LOOKUP_S_SLOW:
        return _warning(
            subject,
            f"{way}; looking that up took {peer.lookup_s:.1f} s",
            "look at the name servers in /etc/resolv.conf, or write numeric addresses",
        )
    headers = IP_HEADERS_BYTES[":" in peer.numeric]
    if peer.mtu is not None and datagram_bytes + headers > peer.mtu and not peer.loopback:
        return _warning(
            subject,
            f"{way}, by packets of {peer.mtu} bytes, less than datagrams of {datagram_bytes} need",
            f"set datagram_bytes to {peer.mtu - headers} or less: of a datagram in pieces, one "
            "lost piece loses all",
        )
    return _fine(subject, way)


def _disks(facts: Facts) -> Iterator[Finding]:
    for disk in facts.disks:
        yield _disk(disk, facts)


def _disk(disk: Disk, facts: Facts) -> Finding:
    subject = disk.purpose
    if disk.failure:
        return _problem(
            subject, disk.failure, f"make {disk.path} for the user of the node, or name another"
        )
    kind = disk.filesystem or "an unknown file system"
    free = f"{disk.free_bytes // MIB:,} MiB free"
    sync = ""
    if disk.sync_ms is not None and disk.sync_worst_ms is not None:
        sync = f", a sync takes {disk.sync_ms:.2f} ms, {disk.sync_worst_ms:.2f} ms at worst"
    found = f"{disk.path} on {kind}, {free}{sync}"
    kept = subject in ("journal", "state")
    if kept and kind in MEMORY:
        return _problem(
            subject,
            f"{found}; this is memory, which a restart of the machine empties",
            f"name a directory on a disk as {subject}",
        )
    if kept and kind in FAR:
        return _warning(
            subject,
            f"{found}; this is on another machine",
            f"name a directory on a disk of this machine as {subject}",
        )
    segments = facts.needs.segment_bytes if subject == "journal" else 0
    if disk.free_bytes < max(FREE_BYTES_MIN, SEGMENTS_FREE_MIN * segments):
        return _warning(
            subject,
            found,
            "make room: a node whose disk is full stops"
            + ("; retain_bytes bounds the journal" if segments else ""),
        )
    if facts.needs.fsync and subject == "journal" and (disk.sync_ms or 0) > SYNC_MS_SLOW:
        return _warning(
            subject,
            found,
            'use a faster disk, or fsync = "interval", with which a power cut of all nodes loses '
            "entries: every append waits for a sync",
        )
    return _fine(subject, found)


def _control(facts: Facts) -> Iterator[Finding]:
    control = facts.control
    if control.failure:
        yield _problem("control socket", control.path, control.failure)
    else:
        yield _fine("control socket", control.path)


def _key(facts: Facts) -> Iterator[Finding]:
    if facts.key is not None:
        found = str(facts.key.path)
        if facts.key.failure:
            yield _problem("key", found, facts.key.failure)
        else:
            yield _fine("key", f"{found} is a key file that only its owner reads")
    elif not facts.needs.key and facts.peers and not all(peer.loopback for peer in facts.peers):
        yield _note(
            "key",
            "none: whoever reaches the port of a node can read along and be a member",
            "make one with: roundelay keygen -o group.key",
        )


_PARTS: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    _software,
    _packages,
    _java,
    _processors,
    _clock,
    _files,
    _buffers,
    _loopback,
    _listening,
    _peers,
    _disks,
    _control,
    _key,
)
