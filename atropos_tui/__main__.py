"""`python -m atropos_tui` is `atropos-tui`."""

from __future__ import annotations

import sys

from atropos_tui.cli import main

if __name__ == "__main__":
    sys.exit(main())
