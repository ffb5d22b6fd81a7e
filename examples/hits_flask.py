"""A counter in Flask, whose threads have no event loop; it survives kill -9 of every node.

Run it in three terminals: python hits_flask.py a, python hits_flask.py b, python hits_flask.py c
`curl -X POST localhost:8401/hits` counts, and `curl localhost:8401/hits` shows the number; b serves
port 8402, and c 8403. A node keeps its journal in hits-a (or b, or c), or where --journal DIR says.
A server that forks needs a node in one process only: give each worker a name, or use one worker.
"""

import argparse
from pathlib import Path

from flask import Flask
from flask.typing import ResponseReturnValue

import roundelay
from roundelay.structures import Counter

parser = argparse.ArgumentParser(epilog=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("node", choices="abc")
parser.add_argument("port", type=int, nargs="?", default=5401)
parser.add_argument("--http", type=int, metavar="PORT", help="of a; b and c have the next two")
parser.add_argument("--journal", type=Path)
args = parser.parse_args()
place = "abc".index(args.node)
app = Flask(__name__)


@app.post("/hits")
def count() -> ResponseReturnValue:
    try:
        return str(hits.add.within(5.0).wait())
    except roundelay.NotPrimaryError as e:
        return str(e), 503


@app.get("/hits")
def show() -> ResponseReturnValue:
    now = hits.value.stale.placed()
    return {"hits": now.reply, "fresh": now.primary}


with roundelay.blocking.replicate(
    Counter,
    "hits",
    node=args.node,
    peers={name: f"127.0.0.1:{args.port + i}" for i, name in enumerate("abc")},
    journal=args.journal or Path(f"hits-{args.node}"),
) as hits:
    app.run(port=(args.http or 8401) + place)
