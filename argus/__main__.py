"""`python -m argus` is the command `argus`."""

from __future__ import annotations

import sys

from argus.cli.entry import main

if __name__ == "__main__":
    sys.exit(main())
