"""Executes notebooks: `python notebooks.py A.ipynb …`. With --write, keeps what they show."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import nbclient
import nbformat


def main() -> None:
    words = sys.argv[1:]
    for name in [word for word in words if word != "--write"]:
        path = Path(name)
        notebook = nbformat.read(path, as_version=4)
        needs_torch = any("import torch" in cell.source for cell in notebook.cells)
        if needs_torch and importlib.util.find_spec("torch") is None:
            print(f"notice: {name} was not executed: PyTorch is not installed")
            continue
        nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": path.parent}}).execute()
        if "--write" in words:
            for cell in notebook.cells:
                cell.metadata.pop("execution", None)
            nbformat.write(notebook, path)
        print(f"{name}: {sum(cell.cell_type == 'code' for cell in notebook.cells)} cells executed")


main()
