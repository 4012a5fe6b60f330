"""Results of an experiment."""

from __future__ import annotations

import html
import json
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fedgenie import _fedgenie
from fedgenie._frames import Frame
from fedgenie.errors import UsageError

if TYPE_CHECKING:
    from fedgenie.errors import RunError

__all__ = ["Answers", "Figure", "Result", "TextTable"]


class TextTable(str):
    """The printed table: its text, which shows as it is."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self)}</pre>"


class Answers(tuple[str, ...]):
    """Which policy is best, in sentences."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "\n".join(self)

    def _repr_html_(self) -> str:
        return "".join(f"<p>{html.escape(sentence)}</p>" for sentence in self)


class Figure:
    """A figure of the report, which a notebook shows."""

    def __init__(self, results: _fedgenie.Results, name: str) -> None:
        self.name = name
        """Its name, which is that of its file."""
        self._results = results
        self.svg = results.figure(name, False).decode()
        """The picture."""

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<fedgenie.Figure {self.name}>"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes it as SVG, or as PDF if the name ends so."""
        path = Path(path)
        if path.suffix == ".pdf":
            path.write_bytes(self._results.figure(self.name, True))
        elif path.suffix == ".svg":
            path.write_text(self.svg, encoding="utf-8")
        else:
            message = f"found {path.name}; a figure is written as .svg or .pdf"
            raise ValueError(message)
        return path


class Result:
    """All that an experiment found."""

    def __init__(self, results: _fedgenie.Results, failures: tuple[RunError, ...] = (), records: object = None) -> None:
        self._results = results
        self._records = records
        self.failures = failures
        """The exceptions of runs that failed."""

    @property
    def title(self) -> str:
        """The scenario's title, or else its name."""
        return self._results.title

    @property
    def folder(self) -> Path | None:
        """The result folder, if there is one."""
        return self._results.folder

    @property
    def scenario(self) -> str:
        """The resolved scenario: TOML with every default."""
        return self._results.scenario

    @property
    def answers(self) -> Answers:
        """Which policy is best, in sentences."""
        return Answers(self._results.answers)

    @property
    def warnings(self) -> list[str]:
        """Warnings about worlds and results, in sentences."""
        return self._results.warnings

    @property
    def digest(self) -> str:
        """The digest of all runs: equal digests are equal results, to the bit."""
        return self._results.digest

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What `summary.json` has."""
        loaded: dict[str, Any] = json.loads(self._results.summary_json())
        return loaded

    @cached_property
    def runs(self) -> Frame:
        """A row for each run, in any state: its status, digests and numbers."""
        return Frame(self._results.frame("runs"), "runs")

    @cached_property
    def rounds(self) -> Frame:
        """A row for each recorded round of a run."""
        return Frame(self._results.frame("rounds"), "rounds")

    @cached_property
    def targets(self) -> Frame:
        """A row for each target of a run."""
        return Frame(self._results.frame("targets"), "targets")

    @cached_property
    def controls(self) -> Frame:
        """A row for each control of a run: what is reached without learning."""
        return Frame(self._results.frame("controls"), "controls")

    @cached_property
    def clients(self) -> Frame:
        """A row for each client of a run."""
        return Frame(self._results.frame("clients"), "clients")

    @cached_property
    def comparisons(self) -> Frame:
        """A row for each statistic over seeds: a number of a policy at a point, or a difference."""
        return Frame(self._results.frame("comparisons"), "comparisons")

    @cached_property
    def events(self) -> Frame:
        """A row for each event of a run. Events are recorded by `events=True`."""
        frame = Frame(self._results.frame("events"), "events")
        if len(frame) == 0:
            message = "no events were recorded: run with events=True"
            raise UsageError(message)
        return frame

    @cached_property
    def jobs(self) -> Frame:
        """A row for each job of a run, a log for `fedgenie fit`. Jobs are told by events, which `events=True` records."""
        frame = Frame(self._results.frame("jobs"), "jobs")
        if len(frame) == 0:
            message = "no events were recorded: run with events=True"
            raise UsageError(message)
        return frame

    def to_wandb(
        self, project: str, mode: Literal["online", "offline", "disabled", "shared"] = "offline", **settings: Any
    ) -> list[str]:
        """Logs every run to Weights & Biases, a step for each recorded round, with virtual time. Returns their ids."""
        try:
            import wandb  # type: ignore[import-not-found, unused-ignore]
        except ImportError as error:
            message = f"{error.name} is not installed: `pip install 'fedgenie[wandb]'` installs it"
            raise ImportError(message, name=error.name) from error
        rounds = self.rounds
        keys = list(zip(rounds["policy"], rounds["seed"].tolist(), rounds["point"].tolist(), strict=True))
        numbers = {
            name: rounds[name].tolist()
            for name in rounds
            if rounds.described(name)["kind"] != "text" and name not in ("seed", "point")
        }
        ids = []
        for policy, seed, point in dict.fromkeys(keys):
            config = {"policy": policy, "seed": seed, "point": point, **self.summary["points"][point]}
            name = f"{policy}-p{point}-s{seed}" if len(self.summary["points"]) > 1 else f"{policy}-s{seed}"
            run = wandb.init(
                project=project, group=self.title, name=name, config=config, mode=mode, reinit=True, **settings
            )
            for place, key in enumerate(keys):
                if key == (policy, seed, point):
                    row = {name: values[place] for name, values in numbers.items() if values[place] is not None}
                    run.log(row, step=row["round"])
            ids.append(run.id)
            run.finish()
        return ids

    def table(self) -> TextTable:
        """The table that the command prints."""
        return TextTable(self._results.table())

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Writes the report: one page for a browser, which needs no network."""
        path = Path(path)
        if path.suffix not in (".html", ".htm"):
            message = f"found {path.name}; a report is a page: name it .html (figures are saved as .svg or .pdf)"
            raise ValueError(message)
        self._results.write_report(path)
        return path

    @property
    def figures(self) -> list[str]:
        """Names of the report's figures."""
        return self._results.figures

    def figure(self, name: str) -> Figure:
        """A figure of the report. The start of a name will do if it is that of one figure alone."""
        known = self.figures
        matching = [figure for figure in known if figure.startswith(name)]
        return Figure(self._results, matching[0] if name not in known and len(matching) == 1 else name)

    def _repr_html_(self) -> str:
        return self.answers._repr_html_() + self.table()._repr_html_()

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} runs failed" if self.failures else ""
        return f"<fedgenie.Result {self.title!r}: digest {self.digest}{failed}>"
