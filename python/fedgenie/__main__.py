"""`python -m fedgenie` is the command."""

from __future__ import annotations

import sys

from fedgenie._command import main

if __name__ == "__main__":
    sys.exit(main())
