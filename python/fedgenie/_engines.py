"""Engines that carry runs out in other processes: they place tasks, try them again, and move their results."""

from __future__ import annotations

import concurrent.futures
import concurrent.futures.process
import multiprocessing
import os
import pickle
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from fedgenie._apart import Made, Order, carry_out, forget_dead, forget_own
from fedgenie._notices import warn
from fedgenie.errors import UsageError

__all__ = ["Died", "Engine", "open_engine"]

KILLED_S = 5.0
"""How long a killed process is waited for."""

ENGINES = ("threads", "processes", "ray", "dask")


class Died(NamedTuple):
    """The process of a task died."""

    why: str
    alone: bool
    """Whether no other task was under way, so that it is this one's fault."""
    is_final: bool
    """Whether the engine has tried it as often as it may."""


Outcome = Made | Died | BaseException


class Engine(Protocol):
    """Carries tasks out; each is a list of runs."""

    def begin(self, order: Order) -> None:
        """Sends what is to be made, before the first task."""

    @property
    def slots(self) -> int:
        """How many tasks may be under way at once."""

    def submit(self, names: list[str]) -> Any:
        """Begins a task, and returns its key."""

    def wait(self, seconds: float) -> list[tuple[Any, Outcome]]:
        """Tasks that have ended, after so many seconds at the latest."""

    def close(self) -> None:
        """Ends what is under way."""


class _Child:
    """What a process of the engine `processes` keeps."""

    order: Order


def _begin(order: Order) -> None:
    # The process that waits is interrupted, and ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _Child.order = order


def _end_with_parent() -> None:
    """Ends this process when the one that began it has died: nobody would take what it makes."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        forget_own()
        os._exit(1)


def _in_child(names: list[str]) -> Made:
    return carry_out(_Child.order, names)


class Processes:
    """Processes of this machine."""

    def __init__(self) -> None:
        self._pool: concurrent.futures.ProcessPoolExecutor | None = None
        self._under_way: set[concurrent.futures.Future[Made]] = set()

    def begin(self, order: Order) -> None:
        self._order = order
        self._count = max(1, (os.cpu_count() or 1) // order.cores)

    @property
    def slots(self) -> int:
        return self._count

    def submit(self, names: list[str]) -> Any:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._pool = concurrent.futures.ProcessPoolExecutor(
                self._count, context, initializer=_begin, initargs=(self._order,)
            )
        future: concurrent.futures.Future[Made]
        # Libraries look at these when a process, which begins here, imports them.
        limits = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        os.environ.update({name: str(self._order.cores) for name in limits})
        try:
            future = self._pool.submit(_in_child, names)
        except concurrent.futures.process.BrokenProcessPool as error:
            # A process has just died, which the tasks under way will be told.
            future = concurrent.futures.Future()
            future.set_exception(error)
        finally:
            for name, before in limits.items():
                os.environ.pop(name) if before is None else os.environ.update({name: before})
        self._under_way.add(future)
        return future

    def wait(self, seconds: float) -> list[tuple[Any, Outcome]]:
        first = concurrent.futures.FIRST_COMPLETED
        ended = concurrent.futures.wait(self._under_way, timeout=seconds, return_when=first).done
        errors = {future: future.exception() for future in ended}
        if any(isinstance(error, concurrent.futures.process.BrokenProcessPool) for error in errors.values()):
            # All that were under way end so, and nobody knows whose fault it is.
            self._end_pool()
            ended = set(self._under_way)
            errors = {future: future.exception() for future in concurrent.futures.wait(ended).done}
        alone = len(self._under_way) == 1
        self._under_way -= ended
        return [(future, self._outcome(future, errors[future], alone)) for future in ended]

    @staticmethod
    def _outcome(future: concurrent.futures.Future[Made], error: BaseException | None, alone: bool) -> Outcome:
        if isinstance(error, (concurrent.futures.process.BrokenProcessPool, concurrent.futures.CancelledError)):
            return Died("its process ended", alone, is_final=False)
        return future.result() if error is None else error

    def _end_pool(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            # Those at work would be waited for.
            processes = list((pool._processes or {}).values())
            pool.shutdown(wait=False, cancel_futures=True)
            for process in processes:
                process.kill()
                process.join(KILLED_S)
            forget_dead()

    def close(self) -> None:
        self._end_pool()


def _cloudpickle() -> Any:
    """A pickler that takes functions and classes of the script itself, where a package has one."""
    try:
        import cloudpickle  # type: ignore[import-not-found, import-untyped, unused-ignore]

        return cloudpickle
    except ImportError:
        return pickle


def pickled(engine: str, classes: tuple[Any, Any, Any]) -> bytes:
    """Policies, task and algorithm for other processes."""
    pickler = _ray().cloudpickle if engine == "ray" else _cloudpickle()
    try:
        taken: bytes = pickler.dumps(classes)
        if pickler is pickle and b"__main__" in taken:
            message = "classes of the script itself need the package cloudpickle"
            raise TypeError(message)
        pickle.loads(taken)
    except Exception as error:
        message = (
            f"engine={engine!r}: a policy, the task or the algorithm cannot be sent to other processes ({error}); give "
            "classes of a module that can be imported there, whose parameters can be pickled"
        )
        raise TypeError(message) from error
    return taken


def _missing(name: str, error: ImportError) -> ImportError:
    message = f"{error.name} is not installed: `pip install 'fedgenie[{name}]'` installs it"
    return ImportError(message, name=error.name)


def _ray() -> Any:
    try:
        import ray  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError as error:
        raise _missing("ray", error) from error
    return ray


def _on_ray(box: list[Any], key: str, names: list[str]) -> Made:
    """A task on Ray: the order is fetched by the first task of a process alone."""
    import ray

    if key not in _Taken.orders:
        _Taken.orders = {key: ray.get(box[0])}
    return carry_out(_Taken.orders[key], names)


class _Taken:
    """Orders that this process has fetched."""

    orders: dict[str, Order]


_Taken.orders = {}


def _refuse_silence(address: str | None) -> None:
    """Whether anybody listens at HOST:PORT; Ray itself waits for minutes, and ends the process."""
    host, _, port = (address or "").rpartition(":")
    if "/" in host or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError as error:
        message = f"engine='ray': there is no cluster at {address}: {error}"
        raise UsageError(message) from error


class Ray:
    """A cluster of Ray."""

    PATIENCE_S = 60.0
    """How long a cluster may be without any node that can take a task."""

    def __init__(self, address: str | None, retries: int) -> None:
        self._ray = ray = _ray()
        self._begun = not ray.is_initialized()
        if self._begun:
            _refuse_silence(address)
            try:
                ray.init(address=address, log_to_driver=False, logging_level="warning", configure_logging=False)
            except Exception as error:
                why = str(error.__cause__ or error).strip().splitlines()[-1]
                message = f"engine='ray': there is no cluster at {address or 'the default address'}: {why}"
                raise UsageError(message) from error
        elif address is not None:
            warn(f"engine='ray': this program is connected to a cluster already, and address={address!r} is not used")
        self._retries = retries
        self._under_way: list[Any] = []
        self._waited = 0.0

    def begin(self, order: Order) -> None:
        self._order, self._key, self._cores = self._ray.put(order), order.key, order.cores
        # Retries of Ray come after the first try.
        self._task = self._ray.remote(num_cpus=order.cores, max_retries=max(self._retries - 1, 0))(_on_ray)

    @property
    def slots(self) -> int:
        # Some wait on their nodes, so that none is idle meanwhile.
        return 2 * max(1, int(self._ray.cluster_resources().get("CPU", 1) // self._cores))

    def submit(self, names: list[str]) -> Any:
        key = self._task.remote([self._order], self._key, names)
        self._under_way.append(key)
        return key

    def wait(self, seconds: float) -> list[tuple[Any, Outcome]]:
        ended, self._under_way = self._ray.wait(self._under_way, num_returns=1, timeout=seconds, fetch_local=True)
        if not ended:
            self._look(seconds)
        else:
            self._waited = 0.0
        return [(key, self._outcome(key)) for key in ended]

    def _look(self, seconds: float) -> None:
        """Whether a node is left that a task could run on."""
        nodes = self._ray.nodes()
        if any(node["Alive"] and node["Resources"].get("CPU", 0) >= self._cores for node in nodes):
            self._waited = 0.0
            return
        self._waited += seconds
        if self._waited >= self.PATIENCE_S:
            message = (
                f"engine='ray': for {self._waited:.0f} s no node of the cluster could take a task of {self._cores} cores; "
                "what is complete is kept, and the same call with resume=True goes on"
            )
            raise UsageError(message)

    def _outcome(self, key: Any) -> Outcome:
        errors = self._ray.exceptions
        died = (errors.WorkerCrashedError, errors.NodeDiedError, errors.ObjectLostError, errors.OutOfMemoryError)
        try:
            made: Made = self._ray.get(key)
        except died as error:
            return Died(str(error).splitlines()[0], alone=True, is_final=True)
        except errors.RayTaskError as error:
            cause: BaseException = error.cause if isinstance(error.cause, BaseException) else error
            return cause
        except errors.RayError as error:
            lost: BaseException = error
            return lost
        return made

    def close(self) -> None:
        for key in self._under_way:
            self._ray.cancel(key, force=True)
        if self._begun:
            self._ray.shutdown()


class Dask:
    """A cluster of Dask."""

    def __init__(self, address: str | None, retries: int) -> None:
        try:
            import distributed  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ImportError as error:
            raise _missing("dask", error) from error
        self._distributed: Any = distributed
        self._retries = max(retries - 1, 0)
        try:
            connect = self._distributed.Client
            self._client = connect(address) if address else connect(threads_per_worker=1)
        except (OSError, ValueError) as error:
            message = f"engine='dask': there is no cluster at {address}: {error}"
            raise UsageError(message) from error
        self._under_way: list[Any] = []

    def begin(self, order: Order) -> None:
        self._order, self._cores = self._client.scatter(order, hash=False), order.cores

    @property
    def slots(self) -> int:
        threads = sum(self._client.nthreads().values())
        slots: int = 2 * max(1, threads // self._cores)
        return slots

    def submit(self, names: list[str]) -> Any:
        key = self._client.submit(carry_out, self._order, names, pure=False, retries=self._retries)
        self._under_way.append(key)
        return key

    def wait(self, seconds: float) -> list[tuple[Any, Outcome]]:
        try:
            self._distributed.wait(self._under_way, timeout=seconds, return_when="FIRST_COMPLETED")
        except (TimeoutError, self._distributed.TimeoutError):
            return []
        ended = [key for key in self._under_way if key.done()]
        self._under_way = [key for key in self._under_way if not key.done()]
        return [(key, self._outcome(key)) for key in ended]

    def _outcome(self, key: Any) -> Outcome:
        error = key.exception()
        if isinstance(error, self._distributed.KilledWorker):
            return Died("its worker died", alone=True, is_final=True)
        if error is not None:
            failed: BaseException = error
            return failed
        made: Made = key.result()
        return made

    def close(self) -> None:
        self._client.cancel(self._under_way)
        self._client.close()


def _refuse_unguarded(engine: str) -> None:
    """Refuses a call at the top of a program that new processes would read again, and call again, without end."""
    program = sys.modules.get("__main__")
    file = getattr(program, "__file__", None)
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
    is_at_top = frame.f_code.co_name == "<module>" and frame.f_globals is vars(program)
    if file is None or getattr(program, "__spec__", None) is not None or not is_at_top:
        return
    try:
        is_guarded = "__main__" in Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        message = (
            f"engine={engine!r}: new processes read the program again, and {file} cannot be read; save it as a file"
        )
        raise UsageError(message) from None
    if not is_guarded:
        message = (
            f"engine={engine!r}: new processes read {file} again, and would call this again; put the call below "
            '`if __name__ == "__main__":`'
        )
        raise UsageError(message)


def open_engine(engine: str, address: str | None, retries: int) -> Engine:
    """An engine by its name, connected to its cluster."""
    if engine == "processes" or (engine == "dask" and address is None):
        _refuse_unguarded(engine)
    if engine == "processes":
        if address is not None:
            message = f"engine='processes' is of this machine and has no address; found {address!r}"
            raise UsageError(message)
        return Processes()
    return Ray(address, retries) if engine == "ray" else Dask(address, retries)
