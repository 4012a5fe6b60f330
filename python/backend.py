"""Builds the package by maturin, once Rust is there: without it maturin would try to download a toolchain."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from maturin import (
    build_editable,
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def wanted() -> str:
    """The oldest Rust that compiles FedGenie."""
    text = (Path(__file__).parent.parent / "Cargo.toml").read_text(encoding="utf-8")
    found = re.search(r'^rust-version = "([^"]+)"', text, re.MULTILINE)
    return found[1] if found else "1.95"


def check_rust() -> None:
    """Says what is missing."""
    how = "install it from https://rustup.rs, or install a wheel of FedGenie, which needs no Rust"
    if shutil.which("cargo") is None:
        raise SystemExit(
            f"FedGenie is compiled here, which needs Rust {wanted()} or later, and there is no cargo: {how}"
        )
    said = subprocess.run(["cargo", "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"\d+\.\d+", said)
    number = [int(part) for part in found[0].split(".")] if found else [0, 0]
    if number < [int(part) for part in wanted().split(".")]:
        there = said.strip() or "a cargo that does not run"
        raise SystemExit(f"FedGenie is compiled here, which needs Rust {wanted()} or later, and found {there}: {how}")


def get_requires_for_build_wheel(config_settings: object = None) -> list[str]:
    """Nothing beside maturin."""
    check_rust()
    return []


def get_requires_for_build_editable(config_settings: object = None) -> list[str]:
    """Nothing beside maturin."""
    check_rust()
    return []


os.environ.setdefault("MATURIN_NO_INSTALL_RUST", "1")
