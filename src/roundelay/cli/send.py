"""`roundelay send`: sends messages to the group of a running node, or appends them to its log."""

import argparse
import base64
import json
import sys
from collections.abc import Iterable

from roundelay.cli import connection
from roundelay.cli.errors import UserError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "text", nargs="*", metavar="TEXT", help="a message each; without any, the lines of stdin"
    )
    parser.add_argument(
        "--to",
        action="append",
        metavar="NODE",
        help="for these nodes alone (b or b,c); not every engine can do that",
    )
    parser.add_argument("--safe", action="store_true", help="delivered only once everybody has it")
    parser.add_argument(
        "--log", action="store_true", help="append to the replicated log; shows the index"
    )
    parser.add_argument(
        "--session",
        metavar="NAME",
        help="with --log: what was appended in this session before is not appended again",
    )
    parser.add_argument(
        "--first",
        type=int,
        metavar="N",
        help="with --session: the number of the first message, which counts on from there",
    )
    parser.add_argument(
        "--timeout",
        dest="timeout_s",
        type=float,
        metavar="SECONDS",
        help="with --log: how long to wait for a majority (default: for ever)",
    )
    connection.configure(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    if args.log:
        return _append(args)
    for flag in ("session", "first", "timeout_s"):
        if getattr(args, flag) is not None:
            raise UserError(f"--{flag.removesuffix('_s')} says how to append; add --log")
    sent = []
    to = None if args.to is None else [name for names in args.to for name in names.split(",")]
    payloads = _payloads(args.text)
    with connection.connected(args) as client:
        for payload in payloads:
            encoded = base64.b64encode(payload).decode("ascii")
            asked = client.ask(do="send", payload=encoded, safe=args.safe, to=to)
            number = asked["number"]
            position = client.answer()["position"]
            sent.append({"number": number, "position": position})
            if not args.json:
                print(connection.printable(str(position)), flush=True)
    if args.json:
        print(json.dumps({"sent": sent}))
    return 0


def _append(args: argparse.Namespace) -> int:
    if args.to is not None or args.safe:
        raise UserError("--to and --safe are not for the log, which is for all and safer than safe")
    if args.first is not None and args.session is None:
        raise UserError("--first numbers the messages of a session; add --session NAME")
    appended = []
    number = args.first
    with connection.connected(args) as client:
        for payload in _payloads(args.text):
            asked = client.ask(
                patient=True,
                do="append",
                payload=base64.b64encode(payload).decode("ascii"),
                session=args.session,
                number=number,
                timeout_s=args.timeout_s,
            )
            index = client.answer(patient=True)["index"]
            number = None if number is None else number + 1
            appended.append({"number": asked["number"], "index": index})
            if not args.json:
                print("appended before" if index is None else index, flush=True)
    if args.json:
        print(json.dumps({"appended": appended}))
    return 0


def _payloads(texts: list[str]) -> Iterable[bytes]:
    if not texts:
        return (line.rstrip(b"\n") for line in sys.stdin.buffer)
    try:
        return [text.encode() for text in texts]
    except UnicodeEncodeError:
        raise UserError("a TEXT is not UTF-8; send other bytes as lines of the input") from None
