"""Objects that only some nodes hold. A write goes to the replicas of its object alone, and all of
them apply the writes in the same order, also those to several objects together.

An object is held by the nodes in its name: `ab.stock` by a and b, `abc.price` by all three. A write
may come from any node, and one line may write several objects: ab.stock=5 bc.stock=2

The order is that of the engine st, and it holds among the members of a view: this example does not
tell a node that was away what it missed. A program that must not miss anything is built like
counter.py.

Run it in three terminals: python regions.py a, python regions.py b, python regions.py c
An empty line or Ctrl-D leaves.
"""

import json
import sys
import threading

from roundelay import Message, SendError, blocking


def apply(group: blocking.Group, me: str) -> None:
    """Write what comes, as far as it is for an object that this node holds."""
    objects: dict[str, str] = {}
    for event in group:
        if isinstance(event, Message):
            written = json.loads(event.payload)
            objects |= {name: value for name, value in written.items() if me in holders(name)}
            print(" ".join(f"{name}={objects[name]}" for name in sorted(objects)), flush=True)


def holders(name: str) -> str:
    """The nodes that hold an object."""
    return name.partition(".")[0]


def main(me: str, port: int = 5401) -> None:
    peers = {name: f"127.0.0.1:{port + i}" for i, name in enumerate("abc")}
    with blocking.join("regions", node=me, peers=peers, engine="st") as group:
        print("waiting for the others", flush=True)
        group.wait_for(peers)
        print("ready", flush=True)
        threading.Thread(target=apply, args=(group, me), daemon=True).start()
        for line in sys.stdin:
            if not line.strip():
                break
            writes = dict(write.partition("=")[::2] for write in line.split())
            to = sorted({node for name in writes for node in holders(name)})
            try:
                group.send(json.dumps(writes).encode(), to=to).wait()
            except SendError as e:
                print(e, flush=True)


if len(sys.argv) < 2:
    sys.exit(__doc__)
try:
    main(sys.argv[1], *map(int, sys.argv[2:]))
except KeyboardInterrupt:
    sys.exit(130)
