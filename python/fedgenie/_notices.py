"""Warnings, as Python's."""

from __future__ import annotations

import sys
import warnings

__all__ = ["FedGenieWarning", "warn"]


class FedGenieWarning(UserWarning):
    """A warning of FedGenie, which changes no result."""


def warn(text: str) -> None:
    """Warns about the line of the user's program that called the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "fedgenie":
        frame, level = frame.f_back, level + 1
    warnings.warn(text, FedGenieWarning, stacklevel=level)
