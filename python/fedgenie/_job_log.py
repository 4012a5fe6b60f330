"""A log of the jobs of a deployment, from which a fleet is made."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

__all__ = ["JobLog"]

COLUMNS = "client,round,sent_s,download_s,compute_s,upload_s,total_s,outcome"


class JobLog:
    """A file of comma-separated values with a line for each job, written as soon as the job is over.

    `sent_s` is the time at which the job was sent, in seconds from the beginning of the log. `total_s` is how long the
    server waited for it: until the update arrived, until the timeout (`late`), or until the server knew that the client
    had failed (`dropped`). What is not known is empty.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self._file = self.path.open("x", encoding="utf-8", newline="")
        except FileExistsError as error:
            message = f"{self.path} exists, and a log is never written over; name another file, or move that one away"
            raise FileExistsError(message) from error
        self._write(COLUMNS)

    def _write(self, line: str) -> None:
        self._file.write(line + "\n")
        self._file.flush()

    def add(
        self, client: int, round: int, sent_s: float, phases_s: Sequence[float | None], total_s: float, outcome: str
    ) -> None:
        """Adds a job; `phases_s` are download, compute and upload."""
        seconds = ["" if value is None else f"{value:.9f}" for value in (sent_s, *phases_s, total_s)]
        self._write(",".join([str(client), str(round), *seconds, outcome]))

    def begin(self) -> None:
        """Before the jobs of a federation."""
        if self._file.closed:
            message = f"{self.path} has the log of a federation that ended; make a new Selecting with another file"
            raise ValueError(message)

    def close(self) -> None:
        """Nothing is added any more."""
        self._file.close()
