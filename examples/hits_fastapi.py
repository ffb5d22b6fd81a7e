"""A counter in FastAPI, which survives kill -9 of every node.

Run it in three terminals: python hits_fastapi.py a, python hits_fastapi.py b, ... c
`curl -X POST localhost:8401/hits` counts, and `curl localhost:8401/hits` shows the number; b serves
port 8402, and c 8403. A node keeps its journal in hits-a (or b, or c), or where --journal DIR says.
"""

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI, HTTPException

import roundelay
from roundelay.structures import Counter

parser = argparse.ArgumentParser(epilog=__doc__, formatter_class=argparse.RawTextHelpFormatter)
parser.add_argument("node", choices="abc")
parser.add_argument("port", type=int, nargs="?", default=5401)
parser.add_argument("--http", type=int, metavar="PORT", help="of a; b and c have the next two")
parser.add_argument("--journal", type=Path)
args = parser.parse_args()
place = "abc".index(args.node)

replicated = roundelay.replicate(
    Counter,
    "hits",
    node=args.node,
    peers={name: f"127.0.0.1:{args.port + i}" for i, name in enumerate("abc")},
    journal=args.journal or Path(f"hits-{args.node}"),
)
hits = replicated.face


@asynccontextmanager
async def joined(app: FastAPI) -> AsyncIterator[None]:
    async with replicated:
        yield


app = FastAPI(lifespan=joined)


@app.post("/hits")
async def count() -> int:
    try:
        return await hits.add.within(5.0)()
    except roundelay.NotPrimaryError as e:
        raise HTTPException(503, str(e)) from None


@app.get("/hits")
async def show() -> dict[str, int | bool]:
    now = hits.value.stale.placed()
    return {"hits": now.reply, "fresh": now.primary}


uvicorn.run(app, port=(args.http or 8401) + place, log_level="warning")
