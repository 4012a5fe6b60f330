"""The examples of the documentation run as they stand."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    page for page in (ROOT / f"{name}.md" for name in ("docs/how-to/python", "docs/how-to/flower", "README")) if page.is_file()
]


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
    found = blocks(page)
    assert found
    names: dict[str, Any] = {"__name__": "page"}
    for number, block in enumerate(found, start=1):
        exec(compile(block, f"{page.name}, example {number}", "exec"), names)
