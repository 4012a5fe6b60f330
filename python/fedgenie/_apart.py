"""What another process does for a sweep: it makes the experiment, carries runs out, and returns their files."""

from __future__ import annotations

import os
import pickle
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from fedgenie import _fedgenie
from fedgenie._kinds import kinds
from fedgenie.errors import FedGenieError, UsageError

__all__ = ["Made", "NodeError", "Order", "carry_out"]

PREFIX = "fedgenie-apart-"


class NodeError(UsageError):
    """A node refused a task: something there is another one, or is not there."""


class Order(NamedTuple):
    """What is to be made, for every process once."""

    key: str
    """A digest of the rest."""
    ticket: str
    """What the experiment must be, as JSON."""
    classes: bytes
    """Policies, task and algorithm, pickled."""
    files: Mapping[str, bytes] | None
    """All files that population and task read, if they are sent."""
    cores: int
    """Threads of a task."""


class Made(NamedTuple):
    """Runs that were carried out."""

    pack: bytes
    """Their files."""
    seconds: float
    """How long it took there."""
    warning: str | None
    """A warning about the node."""


class _Here:
    """What this process knows: the experiments of its orders."""

    known: dict[str, _fedgenie.Apart]
    lock = threading.Lock()
    files: list[str]
    ends = False
    """Whether this process is about to end."""


_Here.known = {}
_Here.files = []


def node() -> str:
    """The name of this machine, with the address under which a cluster knows it."""
    name = socket.gethostname()
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        return f"{name} ({ray.util.get_node_ip_address()})"
    return name


def forget_dead() -> None:
    """Deletes what killed processes of this machine and user have left."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        process = folder.name.removeprefix(PREFIX).split("-")[0]
        try:
            if process.isdigit():
                os.kill(int(process), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue


def forget_own() -> None:
    """Deletes the folders of this process, in which other threads may still write, before it ends."""
    _Here.ends = True
    for _ in range(200):
        folders = list(Path(tempfile.gettempdir()).glob(f"{PREFIX}{os.getpid()}-*"))
        if not folders:
            return
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.005)


def _folder() -> str:
    if _Here.ends:
        message = "the program that gave the task has ended"
        raise OSError(message)
    return tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")


def _files(order: Order) -> Path | None:
    """A folder with the files that were sent."""
    if order.files is None:
        return None
    folder = _folder()
    _Here.files.append(folder)
    for name, contents in order.files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)
    return Path(folder)


def _made(order: Order) -> _fedgenie.Apart:
    """The experiment, which is made once in a process."""
    with _Here.lock:
        known = _Here.known.get(order.key)
        if known is None:
            forget_dead()
            program = kinds(*pickle.loads(order.classes))
            _Here.known.clear()
            known = _Here.known[order.key] = _fedgenie.Apart(order.ticket, program, _files(order))
            torch = sys.modules.get("torch")
            if torch is not None:
                torch.set_num_threads(order.cores)
    return known


def carry_out(order: Order, names: list[str]) -> Made:
    """Carries runs out."""
    began = time.monotonic()
    folder = _folder()
    try:
        made = _made(order)
        pack = made.carry_out(names, Path(folder), order.cores)
    except (FedGenieError, OSError, ImportError, AttributeError) as error:
        # These are not pickled whole, and say nothing of where they were raised.
        message = f"node {node()}: {error}"
        raise NodeError(message) from None
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    warning = None if made.warning is None else f"node {node()}: {made.warning}"
    return Made(pack, time.monotonic() - began, warning)
