"""The processes of a service with several workers. The process of `sallyport serve` is the parent: it starts, watches
and stops the workers.

The parent runs no event loop and has no threads, so it can fork at any time. A worker is a fork of the parent, so it
already has all imported modules. It also inherits the sockets, which are bound only once (see `sockets`). The parent
waits for signals and for messages from the workers. A worker sends its status messages to the parent, not to systemd.

The first worker starts alone, because it creates the store at the first start of the service. If a worker ends before
all workers are ready, the service ends. If a worker ends later, the parent starts it again.
"""

import os
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Final

import structlog
import trio

from sallyport import __version__
from sallyport.base.clock import BackOff
from sallyport.cli.main import run
from sallyport.host.notify import Notifier, ToParent
from sallyport.service.activation import PassedSockets, passed_sockets
from sallyport.service.reload import STATUS
from sallyport.service.serve import Worker, serve_until_signal
from sallyport.service.sockets import bind_for_workers
from sallyport.settings.settings import Settings
from sallyport.store.postgres import check_driver

PAUSE_S: Final = 0.2
MAX_PAUSE_S: Final = 30.0
"""The longest pause in seconds before a worker is started again. The pause doubles each time that the worker ends."""
STEADY_S: Final = 60.0
"""Time in seconds. If a worker was ready and ran longer than this time, the next pause is the shortest pause again."""
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)

Run = Callable[[int, ToParent], int]
"""A function that runs a worker in its process, and returns the exit code. It gets the number of the worker, and never
raises an error."""

log = structlog.get_logger()


@dataclass(slots=True)
class _Process:
    """The process of a worker.

    messages: the socket on which the worker's messages arrive. alive_at: the time of its last message, by the monotonic
    clock. is_ready: whether the worker answers requests. is_reloading: whether the worker is still handling a SIGHUP.
    """

    process_id: int
    messages: socket.socket
    started_at: float
    alive_at: float = 0.0
    is_ready: bool = False
    is_reloading: bool = False


@dataclass(slots=True)
class _Place:
    """The restart state of a worker. due: the time at which the parent must start the worker again."""

    back_off: BackOff = field(default_factory=lambda: BackOff(first_s=PAUSE_S, most_s=MAX_PAUSE_S, chance=lambda: 0.0))
    due: float = 0.0
    process: _Process | None = None


class Workers:
    """The workers of a service.

    run: runs a worker (see `Run`). notifier: sends messages to systemd. ready: called when all workers are ready.
    """

    def __init__(self, count: int, run: Run, notifier: Notifier, ready: Callable[[], None]) -> None:
        self._run = run
        self._notifier = notifier
        self._ready = ready
        self._places = {number: _Place() for number in range(1, count + 1)}
        self._selector = selectors.DefaultSelector()
        self._has_begun = False  # all were ready
        self._has_reloaded = False
        self._status = f"STATUS={STATUS}"
        self._is_stopping = False
        self._code = 0

    def watch(self) -> int:
        """Start all workers, and return the exit code when all workers have ended. They end after SIGTERM or SIGINT, or
        if a worker cannot start."""
        with self._selector, _signals() as came:
            self._selector.register(came, selectors.EVENT_READ)
            self._start(1)
            while not self._is_stopping or self._processes():
                for key, _ in self._selector.select(self._wait()):
                    if key.data is None:
                        for number in came.recv(4096):
                            self._handle(number)
                    else:
                        self._hear(key.data)
                self._start_due()
                self._feed_watchdog()
        return self._code

    def _processes(self) -> list[_Process]:
        return [each.process for each in self._places.values() if each.process is not None]

    def _wait(self) -> float | None:
        """Return the seconds until the next deadline, such as the start of a worker. Return None if there is no
        deadline."""
        now, watchdog_s = time.monotonic(), self._notifier.watchdog_s
        waits = [max(0.0, each.due - now) for each in self._places.values() if each.process is None and each.due]
        waits += [] if watchdog_s is None else [watchdog_s / 3]
        return min(waits, default=None)

    def _start(self, number: int) -> None:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        process_id = os.fork()
        if process_id == 0:
            ours.close()
            self._become(number, its)
        its.close()
        ours.setblocking(False)
        now = time.monotonic()
        place = self._places[number]
        place.process, place.due = _Process(process_id, ours, now, now), 0.0
        self._selector.register(ours, selectors.EVENT_READ, place.process)

    def _become(self, number: int, messages: socket.socket) -> None:
        """Run a worker in this process, and then exit. The parent has forked this process for the worker."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for each in SIGNALS:
                signal.signal(each, signal.SIG_DFL)
            for process in self._processes():  # the socket of a worker shows it when the parent has ended
                process.messages.close()
            self._selector.close()
            code = self._run(number, ToParent(messages, self._notifier.watchdog_s))
        except BaseException:
            log.exception("worker_failed", worker=number)
        finally:
            os._exit(code)

    def _start_due(self) -> None:
        now = time.monotonic()
        for number, place in self._places.items():
            if place.process is None and place.due and place.due <= now and not self._is_stopping:
                self._start(number)

    def _hear(self, process: _Process) -> None:
        """Handle a message from a worker."""
        try:
            lines = process.messages.recv(4096).decode(errors="replace").split("\n")  # a long status is cut
        except OSError:
            return
        if lines == [""]:  # the worker has ended; SIGCHLD follows
            self._selector.unregister(process.messages)
            return
        process.alive_at = time.monotonic()
        if "READY=1" in lines:
            self._status = next((each for each in lines if each.startswith("STATUS=")), self._status)
            self._has_become_ready(process)
        elif "STOPPING=1" in lines and self._is_stopping:  # with the time that the worker needs
            self._notifier.send(*lines)

    def _has_become_ready(self, process: _Process) -> None:
        was_ready = process.is_ready
        process.is_ready, process.is_reloading = True, False
        if self._is_stopping:
            return
        if not was_ready and self._has_reloaded:  # this worker still has the settings of the start
            os.kill(process.process_id, signal.SIGHUP)
        if not self._has_begun:
            for number, place in self._places.items():
                if place.process is None:
                    self._start(number)
            if all(each.is_ready for each in self._processes()):
                self._has_begun = True
                self._ready()
                self._notifier.send("READY=1", self._status)
        elif was_ready:  # after SIGHUP, or after `sallyport server reload`
            self._has_reloaded = True
            self._end_reload()

    def _end_reload(self) -> None:
        if not any(each.is_reloading for each in self._processes()):
            self._notifier.send("READY=1", self._status)

    def _handle(self, number: int) -> None:
        """Handle a signal to the parent process. number: the number of the signal."""
        if number == signal.SIGCHLD:
            self._reap()
        elif number == signal.SIGHUP:
            self._reload()
        else:
            self._stop()

    def _reload(self) -> None:
        self._has_reloaded = True
        self._notifier.reloading()
        for process in self._processes():
            if process.is_ready:
                process.is_reloading = True
                os.kill(process.process_id, signal.SIGHUP)
        self._end_reload()

    def _stop(self) -> None:
        self._is_stopping = True
        self._notifier.stopping()
        for process in self._processes():
            os.kill(process.process_id, signal.SIGTERM)

    def _reap(self) -> None:
        """Handle the end of each worker that has ended."""
        for number, place in self._places.items():
            process = place.process
            if process is None:
                continue
            ended, status = os.waitpid(process.process_id, os.WNOHANG)
            if ended:
                with suppress(KeyError):
                    self._selector.unregister(process.messages)
                process.messages.close()
                place.process = None
                self._ended(number, place, process, os.waitstatus_to_exitcode(status))

    def _ended(self, number: int, place: _Place, process: _Process, code: int) -> None:
        if self._is_stopping:
            self._code = self._code or int(code not in {0, -signal.SIGTERM})
            return
        if not self._has_begun:
            self._code = code if code > 0 else 1
            self._stop()
            return
        now = time.monotonic()
        if process.is_ready and now - process.started_at > STEADY_S:
            place.back_off.worked()
        pause_s = place.back_off.failed()
        place.due = now + pause_s
        log.error("worker_ended", worker=number, status=code, restart_in_s=pause_s)
        if process.is_reloading:
            self._end_reload()

    def _feed_watchdog(self) -> None:
        """Send `alive` to systemd if a watchdog is set. Kill each worker that has not sent a message in time."""
        watchdog_s = self._notifier.watchdog_s
        if watchdog_s is None:
            return
        self._notifier.alive()
        for number, place in self._places.items():
            process = place.process
            if process is not None and process.is_ready and time.monotonic() - process.alive_at > watchdog_s:
                log.error("worker_hangs", worker=number)
                os.kill(process.process_id, signal.SIGKILL)


def run_workers(
    settings: Settings, environ: Mapping[str, str], read: Callable[[], Settings], lock: int, ready: Callable[[], None]
) -> int:
    """Run a service with several workers, and return the exit code. Raises StartError.

    read: returns the current settings. lock: the descriptor that holds the lock of the data directory; each worker gets
    a copy. ready: called when all workers are ready.
    """
    check_driver()
    import_module("sallyport.store.postgres.engine")  # imported once for all workers
    with ExitStack() as held:
        sockets = bind_for_workers(settings, held, PassedSockets(passed_sockets(environ)))

        def work(number: int, parent: ToParent) -> int:
            structlog.contextvars.bind_contextvars(worker=number)
            return run(
                lambda: trio.run(
                    partial(serve_until_signal, worker=Worker(number, sockets[number - 1], parent)),
                    _as_node(settings, number),
                    environ,
                    lambda: _as_node(read(), number),
                    os.dup(lock),
                )
            )

        def all_ready() -> None:
            ready()
            addresses = sockets[0].addresses()
            console = settings.link_base(addresses.http[0] if addresses.http else None)
            log.info("ready", **addresses.shown(), console=console, version=__version__, workers=settings.workers)

        return Workers(settings.workers, work, Notifier(environ), all_ready).watch()


def _as_node(settings: Settings, number: int) -> Settings:
    """Return the settings of a worker. Each worker has a node name of its own."""
    return settings.model_copy(update={"node_name": f"{settings.node.partition('/')[0]}/{number}"})


@contextmanager
def _signals() -> Iterator[socket.socket]:
    """Yield a socket. When a signal arrives, its number can be read from the socket."""
    ours, kernels = socket.socketpair()
    with closing(ours), closing(kernels):
        kernels.setblocking(False)
        before = {each: signal.signal(each, lambda _number, _frame: None) for each in SIGNALS}
        signal.set_wakeup_fd(kernels.fileno())
        try:
            yield ours
        finally:
            signal.set_wakeup_fd(-1)
            for each, handler in before.items():
                signal.signal(each, handler)
