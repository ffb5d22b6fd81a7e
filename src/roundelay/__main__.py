"""`python -m roundelay` is the `roundelay` command."""

import sys

from roundelay.cli import main

sys.exit(main())
