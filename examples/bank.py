"""Accounts, as a machine of our own, in a program without asyncio: threads of a web server, say.

Run it in three terminals: python bank.py a, python bank.py b, python bank.py c
Type `ann 10` to pay in, or `ann -3` to draw; an empty line or Ctrl-D leaves. A node keeps its
journal in bank-a (or b, or c), or where --journal DIR says.
"""

import argparse
import sys
from pathlib import Path

import roundelay


class Accounts(roundelay.Machine):
    balances: dict[str, int]

    def __init__(self) -> None:
        self.balances = {}

    @roundelay.write
    def pay(self, who: str, amount: int) -> int:
        balance = self.balances.get(who, 0) + amount
        if balance < 0:
            raise roundelay.Refused(f"{who} has only {balance - amount}")
        self.balances[who] = balance
        return balance

    @roundelay.read
    def total(self) -> int:
        return sum(self.balances.values())


def main(node: str, port: int, journal: Path) -> None:
    peers = {name: f"127.0.0.1:{port + i}" for i, name in enumerate("abc")}
    with roundelay.blocking.replicate(
        Accounts, "bank", node=node, peers=peers, journal=journal
    ) as bank:
        for line in sys.stdin:
            if not line.strip():
                break
            who, amount = line.split()
            try:
                balance = bank.pay.wait(who, int(amount))
            except roundelay.Refused as e:
                print(f"refused: {e}", flush=True)
            else:
                print(f"{who} has {balance}, all have {bank.total.wait()}", flush=True)


parser = argparse.ArgumentParser(epilog=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("node", choices="abc")
parser.add_argument("port", type=int, nargs="?", default=5401)
parser.add_argument("--journal", type=Path)
args = parser.parse_args()
try:
    main(args.node, args.port, args.journal or Path(f"bank-{args.node}"))
except KeyboardInterrupt:
    sys.exit(130)
