"""Logs of jobs, replayed."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import fedgenie
import pytest
from fedgenie._replay import replay

LOG = """client,round,sent_s,download_s,compute_s,upload_s,total_s,outcome
0,1,0.5,,,,2.25,arrived
1,1,0.5,,,,3.5,arrived
2,2,4.25,,,,1.125,arrived
0,2,4.25,,,,2.75,arrived
1,3,7.5,,,,4.0,arrived
2,3,7.5,,,,0.5,arrived
"""


def replayed(path: Path, **given: Any) -> fedgenie.Result:
    """A replay, where this build has the population for it."""
    try:
        return replay(path, progress=None, **given)
    except fedgenie.ScenarioError as error:
        if "recorded" in str(error) and "unknown" in str(error):
            pytest.skip(f"this build replays no logs: {error}")
        raise


def test_the_choices_of_a_log_take_its_times(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(LOG.encode()))
    result = replayed(path, policies=["random"])
    rounds = result.rounds
    closed = [
        float(closed)
        for policy, closed in zip(rounds["policy"], rounds["closed_s"], strict=True)
        if policy == "recorded"
    ]
    # A round lasts as long as its slowest job: 3.5, 2.75 and 4 s.
    assert closed == pytest.approx([3.5, 6.25, 10.25], abs=1e-9)
    told = {run["arm"]: run for run in result.summary["runs"]}
    assert "random" in told


@pytest.mark.parametrize(
    ("text", "given", "reason"),
    [
        ("client,round\n", {}, "line 1: there is no column 'total_s'"),
        (LOG.splitlines()[0] + "\n", {}, "the log has no jobs"),
        (LOG.replace("0.5,arrived", "0.5,dropped"), {}, "1 jobs were lost and none was late.*give timeout_s"),
        (LOG, {"policies": "random"}, "expected a list of names"),
    ],
)
def test_what_cannot_be_replayed_is_refused(tmp_path: Path, text: str, given: dict[str, Any], reason: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises((ValueError, TypeError), match=reason):
        replay(path, **given)
