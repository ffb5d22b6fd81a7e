"""`python -m roundelay` is the `roundelay` command, and this is where both begin."""

import sys


def run() -> int:
    """The command; Ctrl-C while it is still being loaded ends it in one line too."""
    try:
        from roundelay.cli import main

        return main()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(run())
