"""The examples of the documentation run as they stand."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
NAMES = ("docs/how-to/python.md", "docs/how-to/cluster.md", "docs/how-to/flower.md", "README.md")
PAGES = [ROOT / name for name in NAMES if (ROOT / name).is_file()]


def blocks(page: Path) -> list[str]:
    """Those that use the package."""
    found = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [block for block in found if page.stem != "README" or "fedgenie" in block]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.stem == "flower":
        pytest.importorskip("flwr", reason="flwr is not installed: the page was not tested")
    shutil.copytree(ROOT / "scenarios", tmp_path / "scenarios")
    monkeypatch.chdir(tmp_path)
    # Files that the page says to save.
    for name, text in re.findall(
        r"`(\S+)`:\n\n```toml\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = blocks(page)
    assert found
    names: dict[str, Any] = {"__name__": "page"}
    for number, block in enumerate(found, start=1):
        exec(compile(block, f"{page.name}, example {number}", "exec"), names)
