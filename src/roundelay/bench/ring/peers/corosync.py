"""Corosync, Totem in C: `python -m roundelay.bench.ring.peers.corosync JOB`.

A machine normally runs one corosync. To run several, each one has namespaces of its own: a host
name, directories for files and shared memory, and a network, which a bridge made by the first node
connects to the others. That needs root, on Linux. Its transport is the variant of the job: `knet`,
which is corosync's default, or `udpu`.

The client is the C program beside this file, compiled when a run begins. Where there is no
compiler or no header of corosync, its library is called from Python, message by message, which
leaves corosync less of the processor.
"""

import ctypes
import itertools
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from roundelay.bench.ring.jobs import Cell, Job
from roundelay.bench.ring.peers.member import FORMING_S, WAIT_S, Member
from roundelay.bench.ring.systems import LIBRARY
from roundelay.bench.ring.talk import say
from roundelay.bench.ring.workload import pool_of

STAGE = "ROUNDELAY_BENCH_STAGE"
"""The environment variable that says which namespaces the process has already."""
NETWORK = "10.77.0."

OK, TRY_AGAIN = 1, 6
AGREED = 2
DISPATCH_ALL = 2


class _Name(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint32), ("value", ctypes.c_char * 128)]


_NAME = _Name(5, b"bench")


class _Member(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("node", "process", "reason")]


class _Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("size", ctypes.c_size_t)]


_Deliver = ctypes.CFUNCTYPE(
    None,
    ctypes.c_uint64,
    ctypes.c_void_p,
    ctypes.c_uint32,
    ctypes.c_uint32,
    ctypes.c_void_p,
    ctypes.c_size_t,
)
_Change = ctypes.CFUNCTYPE(
    None,
    ctypes.c_uint64,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_size_t,
)


class _Callbacks(ctypes.Structure):
    _fields_ = [("deliver", _Deliver), ("change", _Change)]


class Group:
    """A closed process group of corosync; a `Peer`."""

    def __init__(self, names: Sequence[str]) -> None:
        """Join the group as soon as the daemon answers. Nodes are numbered from 1."""
        self._names = dict(enumerate(names, 1))
        self._delivered: list[tuple[str, bytes]] = []
        self._library = library = ctypes.CDLL(LIBRARY)
        self._handle = handle = ctypes.c_uint64()
        self._callbacks = _Callbacks(_Deliver(self._on_deliver), _Change(self._on_change))
        callbacks, fd = self._callbacks, ctypes.c_int()
        _insist(lambda: library.cpg_initialize(ctypes.byref(handle), ctypes.byref(callbacks)))
        _insist(lambda: library.cpg_join(handle, ctypes.byref(_NAME)))
        _insist(lambda: library.cpg_fd_get(handle, ctypes.byref(fd)))
        self._fd = fd.value

    def formed(self) -> bool:
        members, count = (_Member * 128)(), ctypes.c_int()
        _insist(
            lambda: self._library.cpg_membership_get(
                self._handle, ctypes.byref(_NAME), members, ctypes.byref(count)
            )
        )
        return count.value == len(self._names)

    def send(self, payload: bytes) -> bool:
        part = _Part(payload, len(payload))
        code = self._library.cpg_mcast_joined(self._handle, AGREED, ctypes.byref(part), 1)
        if code not in (OK, TRY_AGAIN):
            raise OSError(f"corosync refused a message with code {code}")
        return bool(code == OK)

    def deliveries(self, wait_s: float) -> list[tuple[str, bytes]]:
        if wait_s > 0:
            select.select([self._fd], [], [], wait_s)
        self._library.cpg_dispatch(self._handle, DISPATCH_ALL)
        delivered, self._delivered = self._delivered, []
        return delivered

    def _on_deliver(
        self, handle: int, group: int, node: int, process: int, message: int, size: int
    ) -> None:
        self._delivered.append((self._names[node], ctypes.string_at(message, size)))

    def _on_change(self, handle: int, group: int, members: int, count: int, *more: int) -> None:
        """Does nothing: `formed` asks for the members."""


def _insist(call: Callable[[], int]) -> None:
    """Call until it succeeds."""
    limit = time.monotonic() + FORMING_S
    while (code := call()) != OK:
        if time.monotonic() > limit:
            raise TimeoutError(f"corosync does not answer (code {code})")
        time.sleep(WAIT_S)


def _start_daemon(job: Job) -> None:
    """Start the corosync of this node, in directories of its own."""
    socket.sethostname(job.node)  # Corosync finds its own node by the host name.
    for place in ("/run", "/dev/shm"):
        _do(f"mount -t tmpfs tmpfs {place}")
    Path("/run/lib/corosync").mkdir(parents=True)
    _do("mount --bind /run/lib /var/lib")
    config = Path("/run/corosync.conf")
    config.write_text(_config(job))
    daemon = subprocess.Popen(
        ["corosync", "-f", "-c", str(config)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert daemon.stdout is not None
    # Clients that connect before all nodes are there may be refused for good.
    whole = threading.Event()
    told = (f"members[{len(job.addresses)}]", "Completed service synchronization")
    threading.Thread(target=_follow, args=(daemon.stdout, told, whole), daemon=True).start()
    if not whole.wait(FORMING_S):
        raise TimeoutError("corosync did not find its others")


def _follow(log: Iterable[str], told: Sequence[str], seen: threading.Event) -> None:
    """Copy the daemon's log to standard error, and set `seen` once it has these texts, in order."""
    left = list(told)
    for line in log:
        sys.stderr.write(line)
        if left and left[0] in line:
            del left[0]
            if not left:
                seen.set()


COMPILER = "cc"
CLIENT = Path(__file__).with_name("cpg_client.c")
_PROBE = "#include <corosync/cpg.h>\nint main(void) { return cpg_initialize(0, 0); }\n"


def why_no_client_in_c() -> str | None:
    """What is missing for the client in C; None if it can be compiled."""
    if shutil.which(COMPILER) is None:
        return f"there is no {COMPILER}: apt install gcc"
    with tempfile.TemporaryDirectory(prefix="roundelay-bench-") as scratch:
        source = Path(scratch) / "probe.c"
        source.write_text(_PROBE)
        if _compile(source, source.with_suffix("")):
            return "corosync's header is not installed: apt install libcpg-dev"
    return None


def unusual(variant: str) -> dict[str, Any]:
    """The settings that are not corosync's defaults, and what the client is written in."""
    told = {name: value for name, value in _totem(variant).items() if value != DEFAULTS[name]}
    missing = why_no_client_in_c()
    return {**told, "client": "C" if missing is None else f"Python, since {missing}"}


def _compile(source: Path, program: Path) -> str:
    """Compile the source; what the compiler says if that fails, else an empty text."""
    words = [COMPILER, "-O2", "-o", str(program), str(source), "-lcpg"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def _run_client(job: Job) -> bool:
    """Let the client in C do the job; False if it cannot be compiled."""
    place = Path(job.directory)
    program, pools = place / f"client-{job.node}", place / f"pools-{job.node}"
    names = sorted(job.addresses)
    if why := _compile(CLIENT, program):
        sys.stderr.write(why)
        return False
    pools.write_bytes(pools_of(names, job.cell))
    words = (
        *(job.task, names.index(job.node) + 1, len(names)),
        "".join("01"[name in job.senders] for name in names),
        *(job.seconds, job.warm_s, job.rate, int(job.verify == "all"), pools),
    )
    subprocess.run([program, *map(str, words)], check=True)
    return True


def pools_of(names: Sequence[str], cell: Cell) -> bytes:
    """The messages of all nodes as the client reads them: how many each node has, and then each
    message with its length before it."""
    pools = [pool_of(name, cell) for name in names]
    messages = itertools.chain.from_iterable(pools)
    parts = (len(message).to_bytes(4) + message for message in messages)
    return len(pools[0]).to_bytes(4) + b"".join(parts)


DEFAULTS = {"version": "2", "transport": "knet", "crypto_cipher": "none", "crypto_hash": "none"}
"""Corosync's own, of what `_totem` sets."""


def _totem(transport: str) -> dict[str, str]:
    """The section of the configuration that decides how fast it is."""
    return {**DEFAULTS, "transport": transport}


def _config(job: Job) -> str:
    totem = "".join(f"{name}: {value}\n" for name, value in _totem(job.variant).items())
    nodes = "".join(
        f"node {{\nring0_addr: {NETWORK}{i}\nname: {name}\nnodeid: {i}\n}}\n"
        for i, name in enumerate(sorted(job.addresses), 1)
    )
    return (
        f"totem {{\ncluster_name: bench\n{totem}}}\n"
        f"nodelist {{\n{nodes}}}\n"
        "logging {\nto_stderr: yes\nto_syslog: no\n}\n"
    )


def _do(command: str) -> None:
    subprocess.run(command.split(), check=True, stdout=sys.stderr)


_APART = "unshare --net --mount --propagation private --uts --pid --fork --kill-child"
"""The command that makes the namespaces. Ending the process ends its corosync too."""
_STAY = "setpriv --pdeathsig KILL sleep infinity"
"""A process in the bridge's network namespace, which keeps it alive as long as its parent lives."""


def main(text: str) -> None:
    """Run this program again in each stage, with more namespaces of its own; then do the job."""
    job = Job.from_json(text)
    first = job.node == min(job.addresses)
    door = Path(job.directory) / "network"
    """A file with the id of a process in the bridge's network namespace."""
    stage = os.environ.get(STAGE)
    number = sorted(job.addresses).index(job.node) + 1
    ours, theirs = f"node{number}", f"port{number}"
    if stage is None:
        _go_on("hub", text, "unshare --net" if first else f"nsenter {_enter(door)}")
    if stage == "hub":
        if first:
            _do("ip link add hub type bridge")
            _do("ip link set hub up")
            keeper = subprocess.Popen(_STAY.split(), stdin=subprocess.DEVNULL, stdout=sys.stderr)
            door.with_suffix(".new").write_text(str(keeper.pid))
            door.with_suffix(".new").rename(door)
        _do(f"ip link add {theirs} type veth peer name {ours}")
        _do(f"ip link set {theirs} master hub up")
        _go_on("node", text, _APART)
    _do(f"nsenter {_enter(door)} ip link set {ours} netns {os.getpid()}")
    for device in ("lo", ours):
        _do(f"ip link set {device} up")
    _do(f"ip address add {NETWORK}{number}/24 dev {ours}")
    _start_daemon(job)
    if not _run_client(job):
        Member(job, Group(sorted(job.addresses))).run()


def _enter(door: Path) -> str:
    """The option of `nsenter` that leads to the bridge, once the first node has made it."""
    limit = time.monotonic() + FORMING_S
    while not door.exists():
        if time.monotonic() > limit:
            raise TimeoutError("the first node made no bridge")
        time.sleep(WAIT_S)
    return f"--net=/proc/{door.read_text()}/ns/net"


def _go_on(stage: str, text: str, command: str) -> NoReturn:
    os.environ[STAGE] = stage
    words = [*command.split(), sys.executable, "-m", "roundelay.bench.ring.peers.corosync", text]
    os.execvp(words[0], words)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except Exception as e:
        say(failure=f"{type(e).__name__}: {e}")
        raise
