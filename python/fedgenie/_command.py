"""The command `fedgenie`."""

from __future__ import annotations

import signal
import sys

from fedgenie import _fedgenie


def main() -> int:
    """Carries out the command of this process."""
    # As for any command: FedGenie's own handlers follow, and a closed pipe ends the process.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    sys.argv[0] = "fedgenie"
    return _fedgenie.command(sys.argv)
