"""`python -m fedgenie` is the command."""

from __future__ import annotations

import sys

from fedgenie._command import main

sys.exit(main())
