"""`roundelay node`: runs one node of a group until a signal stops it."""

import argparse
import asyncio
import logging
import signal
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from roundelay.cli.errors import UserError
from roundelay.runtime.client import ClientError, control_path, own_directory
from roundelay.runtime.descriptors import exhausted, exhausted_error
from roundelay.runtime.errors import RoundelayError
from roundelay.runtime.group import Group
from roundelay.runtime.replicas.replicate import Replicas
from roundelay.runtime.replicas.tools import Tools
from roundelay.runtime.settings import Settings, settings
from roundelay.runtime.supervisor import Supervisor


def configure(parser: argparse.ArgumentParser) -> None:
    configure_settings(parser)
    parser.add_argument("--quiet", action="store_true", help="log warnings only")


def configure_settings(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that `told` reads."""
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="settings in TOML; flags win over it"
    )
    parser.add_argument("--group", metavar="NAME", help="the group's name")
    parser.add_argument("--node", metavar="NAME", help="this node's name")
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        metavar="NAME=HOST:PORT",
        help="a node of the group, this one included; once for each",
    )
    parser.add_argument("--bind", metavar="HOST:PORT", help="where to listen, if not as peers say")
    parser.add_argument("--multicast", metavar="HOST:PORT", help="use IP multicast at this address")
    parser.add_argument("--engine", metavar="NAME", help="ordering protocol (default: totem)")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="of the engine"
    )
    parser.add_argument(
        "--timeout",
        dest="timeout_s",
        type=float,
        metavar="SECONDS",
        help="until silence is failure",
    )
    parser.add_argument(
        "--datagram", dest="datagram_bytes", type=int, metavar="BYTES", help="the largest"
    )
    parser.add_argument("--key", metavar="FILE", help="the group's key: see `roundelay keygen`")
    parser.add_argument(
        "--cipher", choices=("aes", "chacha"), help="to seal with (default: what is fast here)"
    )
    parser.add_argument("--state", metavar="DIR", help="what must survive a crash is kept here")
    parser.add_argument("--journal", metavar="DIR", help="keep the replicated log here")
    parser.add_argument(
        "--fsync", metavar="POLICY", help="always (default), interval, interval:20ms or off"
    )
    parser.add_argument(
        "--tools",
        action="store_true",
        default=None,
        help="with --journal: keep the map and the locks of `roundelay kv` and `roundelay lock`; "
        "at all nodes of the group or at none",
    )
    parser.add_argument("--trace", metavar="DIR", help="write a trace")
    parser.add_argument(
        "--trace-every-row", action="store_true", default=None, help="so that kill -9 loses none"
    )
    parser.add_argument(
        "--trace-frames", action="store_true", default=None, help="rows of single frames too"
    )
    parser.add_argument(
        "--trace-roll",
        dest="trace_roll_s",
        type=float,
        metavar="SECONDS",
        help="begin another file of the trace so often, for `roundelay watch`",
    )
    parser.add_argument(
        "--check", action="store_true", default=None, help="check this node's own rows as it runs"
    )
    parser.add_argument("--record", metavar="DIR", help="keep every input, for `roundelay replay`")
    parser.add_argument("--control", metavar="PATH", help="the control socket")


def run(args: argparse.Namespace) -> int:
    given, tools = with_control(*told(args))
    logging.basicConfig(
        level=logging.WARNING if args.quiet else logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
    )
    try:
        asyncio.run(_serve(given, tools))
    except RoundelayError as e:
        raise UserError(str(e)) from None
    except OSError as e:
        if not exhausted(e):
            raise
        raise UserError(str(exhausted_error())) from None  # Not even for an event loop.
    return 0


async def _serve(told: Settings, tools: bool) -> None:
    """Run the node, and machines for shells if it has `tools`, until a signal comes or it fails."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    replicas = Replicas.of(told) if tools else None
    if replicas is not None:
        Tools(replicas)
    group = Group(told) if replicas is None else replicas.group
    supervisor = Supervisor()
    async with replicas or group:
        supervisor.ready(lambda: _standing(group))
        if told.key is not None:
            loop.add_signal_handler(signal.SIGHUP, _reload_key, group)
        group.ignore()  # `roundelay tail` asks for events; here nobody reads them.
        stopping = asyncio.create_task(stop.wait())
        failing = asyncio.create_task(group.wait_closed())
        await asyncio.wait((stopping, failing), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        supervisor.stopping()
        if failing.done():
            raise failing.result()
        failing.cancel()


def _standing(group: Group) -> str:
    """Who the node is with, for the service manager's line on it."""
    view = group.view
    if view is None:
        return "in no view yet"
    primary = "primary" if view.primary else "not primary"
    return f"view {view.id} of {', '.join(view.members)}, {primary}"


def _reload_key(group: Group) -> None:
    """Read the key file again; a node whose new file is bad goes on with the keys that it has."""
    try:
        group.reload_key()
    except RoundelayError as e:
        logging.getLogger("roundelay").error("the key was not changed: %s", e)


def told(args: argparse.Namespace) -> tuple[Settings, bool]:
    """The settings of the node by its file and its flags, and whether it has `--tools`."""
    values: dict[str, Any] = {} if args.file is None else _read(args.file)
    for name in (
        *("group", "node", "bind", "multicast", "engine", "timeout_s", "datagram_bytes"),
        *("key", "cipher"),
        *("journal", "fsync"),
        *("state", "trace", "trace_every_row", "trace_frames", "trace_roll_s"),
        *("check", "record", "control"),
    ):
        if getattr(args, name) is not None:
            values[name] = getattr(args, name)
    if args.peer:
        values["peers"] = pairs(args.peer, "--peer")
    if args.option:
        values["options"] = {**values.get("options", {}), **pairs(args.option, "--option")}
    tools = values.pop("tools", False) or bool(args.tools)
    if not isinstance(tools, bool):
        raise UserError(f"tools = {tools!r}: write true or false")
    if tools and values.get("journal") is None:
        raise UserError("--tools keeps a map and locks in the log; add --journal DIR")
    try:
        return settings(values), tools
    except RoundelayError as e:
        raise UserError(str(e)) from None


def with_control(told: Settings, tools: bool) -> tuple[Settings, bool]:
    """The same with a control socket in the usual place, if none is named and there can be one."""
    if told.control is not None:
        return told, tools
    try:
        own_directory(make=True)
    except ClientError as e:
        print(
            f"no control socket, so send, tail and status do not reach this node: {e}",
            file=sys.stderr,
        )
        return told, tools
    return replace(told, control=control_path(told.group, told.node)), tools


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise UserError(f"cannot read {path}: {e.strerror}; name a file of settings") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise UserError(f"{path} is not TOML ({e}); correct that line") from None


def pairs(texts: list[str], flag: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise UserError(f"{flag} {text}: write it as {flag} NAME=VALUE")
        if name in pairs:
            raise UserError(f"{flag} {text}: {name} was given {pairs[name]} before; give each once")
        pairs[name] = value
    return pairs
