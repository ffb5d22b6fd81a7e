"""Runs an example with other peers than it says, such as those of a relay:

python relayed.py '{"a": "127.0.0.1:5401", ...}' counter.py a
"""

import json
import runpy
import sys
from pathlib import Path
from typing import Any

import roundelay

peers = json.loads(sys.argv[1])
sys.argv = sys.argv[2:]
sys.path.insert(0, str(Path(sys.argv[0]).parent))
join = roundelay.join


def join_relayed(group: str, **given: Any) -> roundelay.Group:
    return join(group, **{**given, "peers": peers})


roundelay.join = join_relayed
runpy.run_path(sys.argv[0], run_name="__main__")
