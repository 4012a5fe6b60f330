"""Results in other tools."""

from __future__ import annotations

import sys
from pathlib import Path

import fedgenie
import pytest
from conftest import SMALL


def test_wandb_gets_every_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_SILENT", "true")
    ids = fedgenie.run(SMALL, set={"stop.rounds": 3}).to_wandb("fedgenie-test", dir=str(tmp_path))
    assert len(set(ids)) == 2
    assert len(list(tmp_path.glob("wandb/offline-run-*/run-*.wandb"))) == 2


def test_without_wandb_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match=r"pip install 'fedgenie\[wandb\]'"):
        fedgenie.run(SMALL, set={"stop.rounds": 2}).to_wandb("fedgenie-test")
