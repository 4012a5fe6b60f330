"""Tables of results, for any data frame."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedgenie import _fedgenie

if TYPE_CHECKING:
    import pandas
    import polars

__all__ = ["Frame"]

SHOWN = 10
"""Rows at each end that are shown."""


def _missing(extra: str, error: ImportError) -> ImportError:
    message = f"{error.name} is not installed: `pip install 'fedgenie[{extra}]'` installs it"
    return ImportError(message, name=error.name)


class Frame:
    """A table: columns and types are those of `fedgenie export`. What was not measured is null."""

    def __init__(self, columns: _fedgenie.Columns, name: str) -> None:
        self._columns = columns
        self.name = name
        """The name of the table."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._columns.names

    @property
    def meaning(self) -> str:
        """What a row is."""
        return self._columns.meaning

    def described(self, column: str) -> dict[str, Any]:
        """Kind, unit and meaning of a column, and whether every row has a value."""
        return self._columns.described(column)

    def __len__(self) -> int:
        return len(self._columns)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __getitem__(self, column: str) -> NDArray[Any]:
        """A column as an array: masked where values may be missing."""
        values, mask = self._columns.values(column)
        described = self._columns.described(column)
        if described["kind"] == "text":
            texts = np.array([*mask, None], dtype=object)
            cells: NDArray[Any] = texts[values]
            return cells
        values.flags.writeable = False
        return values if described["required"] else np.ma.masked_array(values, mask)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow stream, which polars, pyarrow, pandas, DuckDB and others read."""
        return self._columns.__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame of pandas, with its nullable types where values may be missing."""
        try:
            import pandas as pd
        except ImportError as error:
            raise _missing("pandas", error) from error
        made: dict[str, Any] = {}
        for name in self.columns:
            values, mask = self._columns.values(name)
            described = self._columns.described(name)
            if described["kind"] == "text":
                dtype: Any = "str" if pd.__version__ >= "3" else "string"
                made[name] = pd.array([*mask], dtype=dtype).take(values, allow_fill=True)
            elif described["required"]:
                made[name] = values
            else:
                kind = pd.arrays.IntegerArray if described["kind"] == "integer" else pd.arrays.FloatingArray
                made[name] = kind(values, mask)
        # The arrays are new, and nobody else has them.
        return pd.DataFrame(made, copy=False)

    def to_polars(self) -> polars.DataFrame:
        """A data frame of polars."""
        try:
            import polars as pl
        except ImportError as error:
            raise _missing("polars", error) from error
        return pl.DataFrame(self)

    def to_arrow(self) -> Any:
        """A table of pyarrow."""
        try:
            import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
        except ImportError as error:
            raise _missing("arrow", error) from error
        return pa.table(self)

    def _rows(self) -> tuple[list[int], int]:
        total = len(self)
        if total <= 2 * SHOWN:
            return list(range(total)), total
        return [*range(SHOWN), *range(total - SHOWN, total)], SHOWN

    def _cells(self) -> tuple[list[list[str]], int]:
        rows, gap = self._rows()
        columns = []
        for name in self.columns:
            column = self[name]
            cells = [column[row] for row in rows]
            columns.append(["" if cell is None or cell is np.ma.masked else _shown(cell) for cell in cells])
        return [list(row) for row in zip(*columns, strict=True)], gap

    def __repr__(self) -> str:
        return f"<fedgenie.Frame {self.name}: {len(self)} rows, columns {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        cells, gap = self._cells()
        lines = ["<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in cells]
        if gap < len(lines):
            lines.insert(gap, f"<tr><td colspan={len(self.columns)}>… {len(self) - 2 * gap} rows</td></tr>")
        head = "".join(
            f'<th title="{html.escape(self.described(name)["meaning"], quote=True)}">{html.escape(name)}</th>'
            for name in self.columns
        )
        caption = f"<caption>{html.escape(self.name)}: {len(self)} rows</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _shown(cell: Any) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)
