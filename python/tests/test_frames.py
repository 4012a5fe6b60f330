"""Tables of results for data frames."""

from __future__ import annotations

import json
from pathlib import Path

import fedgenie
import numpy as np
import pytest
from conftest import AWAY, LEARNS, SMALL, First

pandas = pytest.importorskip("pandas")


def test_frames_have_the_columns_and_types_of_the_export(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    from test_run import command

    result = fedgenie.run(LEARNS, policies={"first": First}, out=tmp_path / "out", events=True)
    command("export", "out", "--to", "parquet", cwd=tmp_path)
    package = json.loads((tmp_path / "export" / "datapackage.json").read_text())
    words = {resource["name"]: resource["schema"]["fields"] for resource in package["resources"]}
    for name in ("runs", "rounds", "targets", "controls", "clients", "comparisons", "events"):
        frame, written = getattr(result, name), polars.read_parquet(tmp_path / "export" / f"{name}.parquet")
        assert frame.to_polars().equals(written), name
        assert frame.to_polars().schema == written.schema, name
        assert len(frame) == len(written)
        assert [field["name"] for field in words[name]] == frame.columns == list(frame)
        for field in words[name]:
            assert frame.described(field["name"])["meaning"] == field["description"]


def test_events_are_a_frame_where_they_were_recorded() -> None:
    result = fedgenie.run(SMALL, seeds=1, events=True)
    events = result.events
    assert list(events["number"]) == list(range(1, len(events) + 1))
    assert np.count_nonzero(events["event"] == "closed") == 30
    assert np.count_nonzero(events["outcome"] == "arrived") == 120
    assert events["clients"][0].count(" ") == 3
    jobs = result.jobs
    assert np.count_nonzero(jobs["outcome"] == "arrived") == len(jobs) == 120
    assert np.allclose(jobs["download_s"] + jobs["compute_s"] + jobs["upload_s"], jobs["total_s"])
    with pytest.raises(fedgenie.UsageError, match="events=True"):
        _ = fedgenie.run(SMALL, seeds=1).events
    with pytest.raises(fedgenie.UsageError, match="events=True"):
        _ = fedgenie.run(SMALL, seeds=1).jobs


def test_what_was_not_measured_is_null() -> None:
    rounds = fedgenie.run(LEARNS, set={"evaluate": {"every": 3}, "stop.rounds": 7}).rounds
    assert np.ma.is_masked(rounds["metric_test_loss"])
    frame = rounds.to_pandas()
    assert frame.metric_test_loss.dtype == "Float64" and frame["round"].dtype == "int64"
    assert list(frame["round"][frame.metric_test_loss.notna()]) == [3, 6, 7]
    assert not any(np.isnan(value) for value in frame.metric_test_loss.dropna())
    assert frame.reward.isna().all()


def test_every_way_has_the_same_values() -> None:
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    result = fedgenie.run(AWAY, set={"evaluate": {"every": 3}}, policies={"first": First})
    for frame in (result.rounds, result.runs):
        pd, pl, pa = frame.to_pandas(), frame.to_polars(), frame.to_arrow()
        assert pa.equals(pyarrow.table(frame)) and pl.equals(polars.from_arrow(pa))
        for name in frame:
            expected = pa.column(name).to_pylist()
            assert pl[name].to_list() == expected
            assert [None if cell is pandas.NA or cell != cell else cell for cell in pd[name].tolist()] == expected
            assert frame[name].tolist() == expected


def test_frames_from_memory_and_of_a_folder_are_the_same(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    memory = fedgenie.run(SMALL, events=True)
    kept = fedgenie.run(SMALL, events=True, out=tmp_path / "small")
    loaded = fedgenie.load(tmp_path / "small")
    for name in ("runs", "rounds", "targets", "controls", "clients", "comparisons", "events"):
        first, *others = (getattr(result, name).to_polars() for result in (memory, kept, loaded))
        assert all(first.equals(other) for other in others), name
    assert polars


def test_a_frame_is_shown_short() -> None:
    rounds = fedgenie.run(SMALL).rounds
    assert "60 rows" in repr(rounds) and "… 40 rows" in rounds._repr_html_()
    assert rounds._repr_html_().count("<tr>") == 1 + 20 + 1
    with pytest.raises(KeyError, match="expected one of folder, policy"):
        rounds["absent"]


def test_a_missing_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    rounds = fedgenie.run(SMALL, seeds=1).rounds
    for module, extra, method in [
        ("pandas", "pandas", "to_pandas"),
        ("polars", "polars", "to_polars"),
        ("pyarrow", "arrow", "to_arrow"),
    ]:
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=rf"pip install 'fedgenie\[{extra}\]'"):
            getattr(rounds, method)()


def test_pytorch_is_missed_only_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "fedgenie.torch", raising=False)
    without = importlib.import_module("fedgenie.torch")
    with pytest.raises(ImportError, match=r"torch is not installed: `pip install 'fedgenie\[torch\]'`"):
        without.Task(lambda: None, [], ([], []))
    monkeypatch.delitem(sys.modules, "fedgenie.torch")


@pytest.mark.parametrize("scenario", [SMALL, LEARNS, AWAY], ids=["small", "learns", "away"])
def test_rounds_in_memory_are_those_of_the_file(scenario: str, tmp_path: Path) -> None:
    result = fedgenie.run(scenario, out=tmp_path / "out")
    loaded = fedgenie.load(tmp_path / "out").rounds
    read = {name: loaded[name].tolist() for name in loaded}
    # Without its file a round can come from memory alone.
    for file in (tmp_path / "out").glob("runs/*/rounds.jsonl*"):
        file.unlink()
    kept = result.rounds
    assert {name: kept[name].tolist() for name in kept} == read and len(kept) > 5
