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


def test_tensorboard_reads_what_is_exported(tmp_path: Path) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    from test_run import command

    rounds = fedgenie.run(SMALL, set={"stop.rounds": 5}, out=tmp_path / "out").rounds
    command("export", "out", "--to", "tensorboard", "-o", "events", cwd=tmp_path)
    for seed in (1, 2):
        events = reader.EventAccumulator(str(tmp_path / "events" / f"random-s{seed}"))
        events.Reload()
        tags = events.Tags()["scalars"]
        assert "regret_mean" in tags and "down_bytes" in tags and "seed" not in tags
        for tag in tags:
            mine = rounds["seed"] == seed
            scalars = events.Scalars(tag)
            assert [scalar.step for scalar in scalars] == rounds["round"][mine].tolist()
            assert [scalar.wall_time for scalar in scalars] == rounds["closed_s"][mine].tolist()
            assert [scalar.value for scalar in scalars] == pytest.approx(rounds[tag][mine].tolist(), rel=1e-6)
    assert "is there already" in command("export", "out", "--to", "tensorboard", "-o", "events", cwd=tmp_path, code=2)
