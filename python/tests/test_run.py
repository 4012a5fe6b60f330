"""Running scenarios."""

from __future__ import annotations

import filecmp
import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import fedgenie
import pytest
from conftest import SMALL, First


def test_a_scenario_is_a_path_a_text_or_a_dict(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    results = [fedgenie.run(scenario, seeds=1) for scenario in (path, str(path), SMALL, tomllib.loads(SMALL))]
    assert len({result.digest for result in results}) == 1


def test_settings_are_changed() -> None:
    changed = fedgenie.run(SMALL, set={"stop.rounds": 7, "policy.random.probability": 0.5, "title": 'A "title"'}, seeds=1)
    assert changed.title == 'A "title"'
    assert changed.summary["runs"][0]["rounds"] == 7
    without = fedgenie.run(SMALL, set={"regret": None}, seeds=1)
    assert "[regret]" not in without.scenario


def test_a_wrong_scenario_says_where() -> None:
    with pytest.raises(fedgenie.ScenarioError, match="clienst") as caught:
        fedgenie.run(SMALL.replace("clients", "clienst"))
    error = caught.value
    assert isinstance(error, ValueError)
    assert error.line == 7 and error.path == "scenario" and error.key == "population"
    assert "clients" in error.message
    with pytest.raises(FileNotFoundError, match="absent.toml"):
        fedgenie.run("absent.toml")
    with pytest.raises(fedgenie.ScenarioError):
        fedgenie.run("name = ")


def test_results_are_shown() -> None:
    result = fedgenie.run(SMALL, policies={"first": First})
    assert "random" in result.table() and "first" in str(result.table())
    assert repr(result.table()) == result.table()
    assert result.answers and all(isinstance(sentence, str) for sentence in result.answers)
    assert "<pre>" in result._repr_html_()
    assert "regret" in result.figure("regret").name
    assert result.figure("regret").svg.startswith("<svg")
    assert len(result.digest) == 32
    with pytest.raises(KeyError, match="expected one of"):
        result.figure("absent")


def test_files_are_written(tmp_path: Path) -> None:
    result = fedgenie.run(SMALL, seeds=2)
    page = result.report(tmp_path / "page.html")
    assert page.read_text().startswith("<!doctype html>")
    figure = result.figure("regret")
    assert figure.save(tmp_path / "a.svg").read_text() == figure.svg
    assert figure.save(tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(ValueError, match="svg or .pdf"):
        figure.save(tmp_path / "a.png")


def test_a_folder_is_loaded(tmp_path: Path) -> None:
    run = fedgenie.run(SMALL, policies={"first": First}, out=tmp_path / "out")
    loaded = fedgenie.load(tmp_path / "out")
    assert loaded.digest == run.digest and loaded.table() == run.table() and loaded.answers == run.answers
    with pytest.raises(fedgenie.UsageError, match="no folder"):
        fedgenie.load(tmp_path / "absent")
    with pytest.raises(fedgenie.UsageError, match="very experiment"):
        fedgenie.run(SMALL, policies={"first": First}, out=tmp_path / "out")
    again = fedgenie.run(SMALL, policies={"first": First}, out=tmp_path / "out", overwrite=True)
    assert again.digest == run.digest


def test_progress_is_told() -> None:
    told: list[Any] = []
    fedgenie.run(SMALL, progress=lambda *news: told.append(news), threads=1)
    assert told == [(1, 2, "random-s1"), (2, 2, "random-s2")]

    def stops(done: int, total: int, run: str) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        fedgenie.run(SMALL, progress=stops)


def test_wrong_arguments_are_refused() -> None:
    for wrong, expected in [
        ({"on_failure": "ignore"}, "on_failure"),
        ({"resume": True}, "out="),
        ({"progress": "loud"}, "progress"),
        ({"threads": 10**9}, "threads"),
    ]:
        with pytest.raises(ValueError, match=expected):
            fedgenie.run(SMALL, **wrong)
