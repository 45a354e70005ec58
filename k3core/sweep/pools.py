"""Where points are computed: processes of this machine, or the workers of a Dask cluster. One interface for both.

width: batches to keep under way. submit(tasks); wait() -> the batches that ended, each as its tasks and their outcome:
(records, seconds), or None where the process that computed them died. deaths: how many of these a single point may
cause. close().
"""

import os
from contextlib import contextmanager
from pathlib import Path

from .. import __version__
from .files import File
from .worker import compute_batch

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # as Dask's workers have it
TIMEOUT = 10  # seconds to reach a scheduler


class Processes:
    """Processes of this machine; each is an executor of its own, so that it is known whose death cost which points."""

    deaths = 3

    def __init__(self, command: str, files: list[File], jobs: int):
        import multiprocessing

        self.command, self.width = command, jobs
        self.sources = {file.sha256: file.source for file in files}
        self.set = [name for name in ONE_THREAD if name not in os.environ]
        os.environ |= dict.fromkeys(self.set, "1")
        self.others = set(multiprocessing.active_children())
        self.free = [_executor() for _ in range(jobs)]
        self.running = {}  # future -> (executor, tasks)

    def submit(self, tasks: list) -> None:
        """Start a batch; a process must be free."""
        from concurrent.futures.process import BrokenProcessPool

        arguments = compute_batch, __version__, self.command, tasks, self.sources
        with _interrupt_later():
            executor = self.free.pop()
            try:
                future = executor.submit(*arguments)
            except BrokenProcessPool:  # it died idle
                executor = _executor()
                future = executor.submit(*arguments)
            self.running[future] = executor, tasks

    def wait(self) -> list:
        """The batches that ended since; a process that died has a successor."""
        from concurrent.futures import FIRST_COMPLETED, wait
        from concurrent.futures.process import BrokenProcessPool

        ended = []
        for future in wait(self.running, return_when=FIRST_COMPLETED).done:
            executor, tasks = self.running.pop(future)
            try:
                ended.append((tasks, future.result()))
            except BrokenProcessPool:
                ended.append((tasks, None))
                executor.shutdown()
                executor = _executor()
            self.free.append(executor)
        return ended

    def close(self) -> None:
        """End the processes at once, whatever they are at."""
        import multiprocessing

        with _interrupt_later():
            if self.running:
                for child in set(multiprocessing.active_children()) - self.others:
                    child.kill()
            for executor in [*self.free, *(executor for executor, _ in self.running.values())]:
                executor.shutdown(cancel_futures=True)
            for name in self.set:
                del os.environ[name]


def _executor():
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _begin)


@contextmanager
def _interrupt_later():
    """Ctrl-C waits until this is over; a process that starts meanwhile never hears of it."""
    import signal

    pressed = []
    handler = signal.signal(signal.SIGINT, lambda *_: pressed.append(True))  # for any thread of this process
    try:
        if hasattr(signal, "pthread_sigmask"):  # for processes that start
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            yield
        finally:
            if hasattr(signal, "pthread_sigmask"):
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    finally:
        signal.signal(signal.SIGINT, handler)
    if pressed:
        raise KeyboardInterrupt


def _begin() -> None:
    """In a new process: leave Ctrl-C to the parent, and end when it does."""
    import multiprocessing
    import signal
    import threading

    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def follow():
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


class Cluster:
    """The workers behind a Dask scheduler. Dask computes again what was on a worker that died.

    Each file is a task of its own: its content goes to a worker once and stays there, and is made again where the last
    worker that had it died.
    """

    deaths = 1  # Dask has tried several workers by then

    def __init__(self, command: str, files: list[File], address: str):
        try:
            import distributed
        except ImportError:
            raise ValueError("dask is not installed; pip install 'k3core[cluster]' brings it") from None
        self.dask, self.command, self.address = distributed, command, address
        self.client = _client(distributed, address)
        self.running = {}  # future -> tasks
        try:
            with self._reached():
                self._check_versions()
                self.sources = {file.sha256: self._send(file) for file in files}
        except BaseException:
            self.client.close()
            raise

    @property
    def width(self) -> int:
        """Two batches per thread, so that none waits for the network."""
        with self._reached():
            return 2 * max(1, sum(self.client.nthreads().values()))

    def submit(self, tasks: list) -> None:
        """Send a batch, with references to the files that it needs."""
        needed = {sha256 for _, _, _, files in tasks for sha256, _ in files.values()}
        sources = {sha256: self.sources[sha256] for sha256 in needed}
        with self._reached():
            future = self.client.submit(compute_batch, __version__, self.command, tasks, sources, pure=False)
        self.running[future] = tasks

    def wait(self) -> list:
        """The batches that ended since."""
        with self._reached(), self.client.as_current():
            done = self.dask.wait(list(self.running), return_when="FIRST_COMPLETED").done
            return [(self.running.pop(future), self._outcome(future)) for future in done]

    def close(self) -> None:
        """Give up what is under way, and leave the cluster."""
        if self.running:
            self.client.cancel(list(self.running))
        self.client.close()

    def _outcome(self, future):
        try:
            return future.result()
        except self.dask.KilledWorker:
            return None
        except ImportError as error:  # on a worker that joined later
            raise ValueError(f"a worker lacks something: {error}; install the same everywhere") from None

    @contextmanager
    def _reached(self):
        """Dask's several ways to say that the scheduler does not answer any more, as one."""
        try:
            yield
        except (self.dask.client.CancelledError, self.dask.client.ClosedClientError, self.dask.comm.CommClosedError,
                TimeoutError, RuntimeError):
            raise OSError(f"the scheduler at {self.address} is gone") from None

    def _send(self, file: File):
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PB"}):
            return self.client.submit(bytes, Path(file.source).read_bytes(), key=f"k3core-{file.sha256}")

    def _check_versions(self) -> None:
        """Raises ValueError for the first machine on which something differs from here."""

        def installed():  # runs there, where k3core may not even be
            try:
                from k3core import __version__
            except ImportError:
                return None
            return __version__

        versions = self.client.get_versions()
        packages = {"the scheduler": versions["scheduler"], **versions["workers"]}
        own = {"the scheduler": self.client.run_on_scheduler(installed), **self.client.run(installed)}
        mine = _compared(versions["client"], __version__)
        for place, theirs in packages.items():
            for name, version in _compared(theirs, own.get(place)).items():
                if version != mine[name]:
                    raise ValueError(f"{place} has {f'{name} {version}' if version else f'no {name}'}, this machine "
                                     f"{mine[name]}; install the same everywhere")


def _compared(versions: dict, k3core: str | None) -> dict:
    found = {name: versions["packages"].get(name) for name in ("python", "numpy", "dask", "distributed")}
    return found | {"python": ".".join(found["python"].split(".")[:2]), "k3core": k3core}


def _client(distributed, address: str):
    """A client with at least one worker. Raises OSError, ValueError."""
    import asyncio
    import logging
    import warnings

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters ends the sweep with a line of its own
    asyncio.run(_reach(address))  # a client that could not connect complains again when it is thrown away
    with warnings.catch_warnings(action="ignore"):  # versions are compared below
        client = distributed.Client(address, timeout=TIMEOUT, set_as_default=False)
    try:
        client.wait_for_workers(1, timeout=TIMEOUT)
    except TimeoutError:
        client.close()
        raise OSError(f"the scheduler at {address} has no workers") from None
    return client


async def _reach(address: str) -> None:
    from distributed.comm import connect

    try:
        comm = await connect(address, timeout=TIMEOUT)
    except OSError:
        raise OSError(f"no scheduler answers at {address}") from None
    await comm.close()
