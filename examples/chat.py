"""A chat in the terminal. Everybody reads the same conversation, whoever types at the same time.

That is agreed delivery, and it holds among those who are together. Who is cut off talks on with
those it can reach; what the others said meanwhile is not repeated to it. The line "-- here" says
who reads what is typed. A program that must not miss anything is made like counter.py.

Run it in up to three terminals: python chat.py a, python chat.py b, python chat.py c
An empty line or Ctrl-D leaves.
"""

import sys
import threading

from roundelay import Message, View, blocking


def listen(group: blocking.Group, me: str) -> None:
    """Print what is said until the group is left."""
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


try:
    main(sys.argv[1], *map(int, sys.argv[2:]))
except KeyboardInterrupt:
    sys.exit(130)
