"""`sallyport serve` runs the service; `sallyport log` sets its log level."""

import gc
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Final

import click

import sallyport
from sallyport.base import log
from sallyport.base.errors import ConfigError, Locked, StartError
from sallyport.cli.connection import AGAIN_S, LOCKED, patiently, process_id
from sallyport.cli.line import Line
from sallyport.host.owner import as_owner, become_owner, user_name
from sallyport.settings.settings import POSTGRES, Settings, unknown_environment
from sallyport.settings.values import environment_name
from sallyport.shell.options import Group, json_answer
from sallyport.store.data_folder import make_data_directory, open_data_directory, remove_data_directory

DESCRIPTORS = 65_536
SWITCH_S: Final = 0.0005
"""Switch interval of the interpreter lock, in seconds. A thread of the store waits for the lock after each statement.
With Python's default of 5 ms, a transaction of ten statements took 50 ms while the event loop was busy."""
EMBEDDED_SWITCH_S: Final = 0.00005
"""The switch interval with the embedded database. There, the event loop itself waits for the lock after each statement
and each datagram. With 0.5 ms, the p99 of logins beside a busy console was 22 ms instead of 12 ms. With PostgreSQL, so
short an interval costs 40 % of the rate, because its threads wait for the lock much more often."""

PATIENCE: Final[Mapping[type[StartError], float]] = MappingProxyType({Locked: 30.0})
"""Time in seconds for which a starting service waits for a command that uses the store, such as a backup."""
OCCUPIED: Final = f"stop it first, or set {environment_name('data_dir')} to another directory"
NOTED: Final = int(2.0 / AGAIN_S)
"""Number of failed attempts to take the lock after which the service logs that it waits (about two seconds)."""


@click.command()
@click.pass_obj
def serve(line: Line) -> None:
    """Run the service. The service logs the line `ready` when all listeners answer."""
    log.configure()  # so that the log has the reason of a refused start
    _check_interpreter()
    gc.disable()  # saves a twentieth of the start time; the service configures the collector when it is `ready`
    settings = line.connection.read()
    sys.setswitchinterval(SWITCH_S if settings.database_url else EMBEDDED_SWITCH_S)
    if settings.workers > 1 and not settings.database_url:
        raise ConfigError(
            f"workers: {settings.workers} need a PostgreSQL database: set {environment_name('database')} to its "
            f"{POSTGRES} URL, or {environment_name('workers')} to 1"
        )
    log.configure(level=settings.log_level, form=settings.log_format)
    log.set_level(settings.log_level, settings.log_levels)
    log.take_messages_of_libraries()
    for name in unknown_environment(os.environ):
        log.logger().warning("unknown_environment_variable", variable=name)
    _take_descriptors()
    made = make_data_directory(settings.data_dir)
    lock = hold(
        settings
    )  # this is done before the slow imports, so that a command that starts at the same time waits for the service
    # This process keeps a copy of the lock, so that no command uses a directory that is being removed.
    with _kept_if_ready(settings, made) as ready:
        if settings.workers > 1:
            from sallyport.cli.workers import run_workers

            raise click.exceptions.Exit(run_workers(settings, os.environ, line.connection.read, lock, ready))

        import trio

        from sallyport.service.serve import serve_until_signal

        trio.run(serve_until_signal, settings, os.environ, line.connection.read, os.dup(lock), ready)


@contextmanager
def _kept_if_ready(settings: Settings, made: Sequence[Path]) -> Iterator[Callable[[], None]]:
    """Remove a new data directory at the end of the block, unless the block calls the yielded function.

    The directory stays if another process has created a store in it. The directory also stays if the store is in
    another place, because the directory then contains the master key of the store. made: the directories that
    `make_data_directory` has created.
    """
    store = settings.database_path
    is_kept = not made or store.parent != settings.data_dir or store.exists()

    def keep() -> None:
        nonlocal is_kept
        is_kept = True

    try:
        yield keep
    finally:
        if not is_kept:
            log.logger().info("new_data_directory_removed", data_dir=str(settings.data_dir))
            remove_data_directory(made)


def hold(
    settings: Settings, *, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
) -> int:
    """Take the lock of the data directory, and return the descriptor that holds the lock.

    If a command holds the lock, wait for the end of the command. If root runs the service, the process changes its user
    to the owner of the directory, so that new files belong to the owner. Raises Locked if another process does not
    release the lock in time. Raises StartError if a service already runs, or if the owner cannot read the program.
    """
    _check_program(settings.data_dir)
    if owner := become_owner(settings.data_dir):
        log.logger().warning("root_given_up", data_dir=str(settings.data_dir), user=owner)
    turns = count()

    def turn() -> int:
        try:
            return open_data_directory(settings.data_dir)
        except Locked as error:
            if process_id(settings) is not None:
                raise StartError(f"{error}, a running service: {OCCUPIED}") from None
            if next(turns) == NOTED:
                log.logger().warning("waiting_for_data_directory", data_dir=str(settings.data_dir))
            raise

    try:
        return patiently(turn, PATIENCE, now=now, sleep=sleep)
    except Locked as error:
        raise Locked(f"{error}; {LOCKED}") from None


def _check_program(data_dir: Path) -> None:
    """Check that the owner of the data directory can read Python, its packages and this program. Raises StartError."""
    owner = user_name(data_dir.stat().st_uid)
    with as_owner(data_dir, reads_all=False):
        for file in (os.__file__, click.__file__, sallyport.__file__):
            try:
                os.close(os.open(file, os.O_RDONLY | os.O_CLOEXEC))
            except PermissionError:
                raise StartError(
                    f"the service runs as user {owner}, who owns {data_dir} and cannot read {file}: "
                    "install the program where that user can read it, such as /opt/sallyport"
                ) from None


def _check_interpreter() -> None:
    """Raise StartError if this Python has no interpreter lock: threads of the store and the event loop share counters
    that only this lock protects."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise StartError(
            "this Python runs without its global interpreter lock: set PYTHON_GIL=1, or use another Python"
        )


def _take_descriptors() -> None:
    """Raise the limit of file descriptors of this process. Each waiting agent needs a descriptor, and the usual limit
    is only 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@click.group("log", cls=Group)
def log_group() -> None:
    """The log of the running service."""


@log_group.command()
@click.argument("level", type=click.Choice(log.LEVELS), required=False)
@json_answer
@click.pass_obj
def level(line: Line, *, level: str | None) -> None:
    """Show or set the lowest level of log events. A restart or a reload restores the setting `log_level`."""
    now = str(line.call("log.level", level=level))
    line.print_answer({"level": now}, now)
