"""A chat in the terminal. All members read the same lines in the same order, also when several type
at the same time.

This is agreed delivery, and it holds among the members of a view. A node that is cut off goes on
chatting with the nodes that it can reach, and never gets what the others said meanwhile. The line
"-- here" names the nodes that read what is typed. A program that must not miss anything is built
like counter.py.

Run it in up to three terminals: python chat.py a, python chat.py b, python chat.py c
An empty line or Ctrl-D leaves.
"""

import sys
import threading

from roundelay import Message, View, blocking


def listen(group: blocking.Group, me: str) -> None:
    """Print views and messages until the group is left."""
    for event in group:
        match event:
            case View() if not event.transitional:
                print(f"-- here: {', '.join(event.members)}", flush=True)
            case Message():
                who = "you" if event.sender == me else event.sender
                print(f"{who}: {event.payload.decode()}", flush=True)


def main(me: str, port: int = 5401) -> None:
    peers = {name: f"127.0.0.1:{port + i}" for i, name in enumerate("abc")}
    with blocking.join("chat", node=me, peers=peers) as group:
        listener = threading.Thread(target=listen, args=(group, me), daemon=True)
        listener.start()
        for line in sys.stdin:
            if not line.strip():
                break
            group.send(line.strip().encode())
        group.leave()
        listener.join()


if len(sys.argv) < 2:
    sys.exit(__doc__)
try:
    main(sys.argv[1], *map(int, sys.argv[2:]))
except KeyboardInterrupt:
    sys.exit(130)
