"""A federation of Flower on this machine: a SuperLink, SuperNodes as processes, links of limited rates between them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

START_S = 60.0
"""How long a process may take until its port answers."""


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Link:
    """A port that passes connections on to another, each way at most so many bytes a second in all."""

    CHUNK = 4096

    def __init__(self, to: int, down_bytes_s: float, up_bytes_s: float) -> None:
        self.port = free_port()
        self._to = to
        self._rates = {"down": down_bytes_s, "up": up_bytes_s}
        self._free = {"down": 0.0, "up": 0.0}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._ready = threading.Event()

    def start(self) -> None:
        self._thread.start()
        self._ready.wait(START_S)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(asyncio.start_server(self._accept, "127.0.0.1", self.port))
        self._ready.set()
        self._loop.run_forever()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.close()
            return
        await asyncio.gather(self._pass("up", reader, to_writer), self._pass("down", to_reader, writer))

    async def _pass(self, way: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while data := await reader.read(self.CHUNK):
                # All connections of a way share its rate: a piece goes when those before it have gone.
                begins = max(self._free[way], self._loop.time())
                self._free[way] = begins + len(data) / self._rates[way]
                await asyncio.sleep(self._free[way] - self._loop.time())
                writer.write(data)
                await writer.drain()
        with contextlib.suppress(OSError):
            writer.close()


class Loopback:
    """The federation, for as long as a `with` lasts. Its processes are ended by their own groups, and no others."""

    def __init__(self, folder: Path, clients: int, rates: list[tuple[float, float]] | None = None) -> None:
        self.folder = folder
        self.clients = clients
        self.rates = rates
        self.port = free_port()
        self.links: list[Link] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        self._environment = {
            **os.environ,
            # Flower starts its own commands by their names.
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
            "FLWR_HOME": str(folder / "home"),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
        }

    def __enter__(self) -> Self:
        (self.folder / "home").mkdir(parents=True, exist_ok=True)
        (self.folder / "home" / "config.toml").write_text(
            f'[superlink]\ndefault = "loopback"\n\n[superlink.loopback]\naddress = "127.0.0.1:{self.port}"\ninsecure = true\n'
        )
        try:
            self._begin(
                "superlink", "flower-superlink", "--port", str(self.port), "--disable-runtime-dependency-installation"
            )
            self._wait(self.port, "superlink", self._processes[0])
            for client in range(self.clients):
                self._node(client)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _node(self, client: int) -> None:
        to = self.port
        if self.rates is not None:
            self.links.append(Link(self.port, *self.rates[client]))
            self.links[-1].start()
            to = self.links[-1].port
        config = f"partition-id={client} num-partitions={self.clients}"
        words = ["--superlink", f"127.0.0.1:{to}", "--port", str(free_port()), "--node-config", config]
        self._begin(f"node-{client}", "flower-supernode", *words)

    def _command(self, name: str) -> str:
        found = shutil.which(name, path=self._environment["PATH"])
        if found is None:
            message = f"there is no command {name} beside {sys.executable}"
            raise FileNotFoundError(message)
        return found

    def _begin(self, log: str, name: str, *words: str) -> None:
        with (self.folder / f"{log}.log").open("wb") as told:
            self._processes.append(
                subprocess.Popen(
                    [self._command(name), "--insecure", *words],
                    stdout=told,
                    stderr=subprocess.STDOUT,
                    env=self._environment,
                    start_new_session=True,
                )
            )

    def _wait(self, port: int, log: str, process: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + START_S
        while time.monotonic() < until and process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return
            time.sleep(0.1)
        ended = "ended" if process.poll() is not None else f"did not answer within {START_S:g} s"
        message = f"the {log} {ended}:\n{(self.folder / f'{log}.log').read_text(errors='replace')[-2000:]}"
        raise RuntimeError(message)

    def run(self, app: Path, timeout_s: float, **config: Any) -> str:
        """Runs an app, and returns what its server printed."""
        given = " ".join(f"{name}={_value(value)}" for name, value in config.items())
        words = [self._command("flwr"), "run", str(app), "loopback", "--stream", *(["-c", given] if given else [])]
        ended = subprocess.run(
            words, capture_output=True, text=True, timeout=timeout_s, env=self._environment, check=False
        )  # fmt: skip
        told = ended.stdout + ended.stderr
        (self.folder / "run.log").write_text(told)
        return told

    def stop(self) -> None:
        """Ends what was begun."""
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                pass
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        self._processes.clear()
        for link in self.links:
            link.stop()
        self.links.clear()


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}'" if isinstance(value, (str, Path)) else repr(value)
