"""One nursery for the whole service: start everything, wait for a signal, answer what is waiting, stop.

The order is the promise: sockets are bound and the kept answers are known before the first datagram is read; at the
end the listeners stop first, then the logins in progress are decided, the journal writes them, and the store closes.
"""

import gc
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

import structlog
import trio

from sallyport.app import App, opened
from sallyport.base.config import Address, Settings
from sallyport.base.errors import StartError
from sallyport.domains import api as domains_api
from sallyport.inventory.clients import api as clients_api
from sallyport.inventory.devices import api as devices_api
from sallyport.listen import udp
from sallyport.listen.control import serve_control
from sallyport.listen.exchange import Exchange, Kind, Services, Waiting
from sallyport.login import api as logins_api
from sallyport.metrics import render
from sallyport.web.app import create_app, create_metrics_app
from sallyport.web.scope import Gate
from sallyport.web.server import Listener, Tls, serve_http

DRAIN_S = 5.0
LAG_S = 1.0

log = structlog.get_logger()


@dataclass(slots=True)
class Bound:
    """Where the service listens; filled as it starts, so that port 0 can be asked for."""

    radius_auth: list[Address] = field(default_factory=list)
    radius_acct: list[Address] = field(default_factory=list)
    http: list[Address] = field(default_factory=list)


async def serve(
    settings: Settings,
    environ: Mapping[str, str],
    stop: trio.Event,
    *,
    task_status: trio.TaskStatus[Bound] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run the service until `stop` is set. Raises StartError, StoreError when it cannot begin."""
    async with opened(settings, environ) as app:
        with ExitStack() as sockets:
            listeners = _bind(settings, sockets)
            async with trio.open_nursery() as background:
                for task in (app.devices.run, app.clients.run, app.configuration.watch, app.journal.purge):
                    background.start_soon(task)
                background.start_soon(_measure_lag, app)
                await _answer_requests(app, listeners, stop, task_status)
                background.cancel_scope.cancel()


async def serve_until_signal(settings: Settings, environ: Mapping[str, str]) -> None:
    """Run the service until SIGTERM or SIGINT."""
    stop = trio.Event()
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with trio.open_nursery() as nursery:

            async def wait_for_signal() -> None:
                async for _ in signals:
                    stop.set()

            nursery.start_soon(wait_for_signal)
            await serve(settings, environ, stop)
            nursery.cancel_scope.cancel()


_Listener = tuple[Kind, socket.socket]


def _bind(settings: Settings, sockets: ExitStack) -> list[_Listener]:
    """Every RADIUS socket. An address of a family that the machine does not have is left out. StartError."""
    wanted = [(Kind.AUTHENTICATION, address) for address in settings.radius_auth_bind]
    wanted += [(Kind.ACCOUNTING, address) for address in settings.radius_acct_bind]
    listeners = []
    for kind, address in wanted:
        if udp.has_family(address):
            listeners.append((kind, sockets.enter_context(closing(udp.bind(address)))))
        else:
            log.warning("this machine has no IPv6; not listening there", address=str(address))
    if not listeners:
        raise StartError("no RADIUS address to listen on")
    return listeners


async def _answer_requests(
    app: App, listeners: Sequence[_Listener], stop: trio.Event, task_status: trio.TaskStatus[Bound]
) -> None:
    async with trio.open_nursery() as waiting:
        exchanges = await _exchanges(app, listeners, waiting)
        async with trio.open_nursery() as delayed:
            for exchange in exchanges:
                delayed.start_soon(exchange.send_delayed)
            async with trio.open_nursery() as listening:
                for (_, sock), exchange in zip(listeners, exchanges, strict=True):
                    listening.start_soon(udp.receive, sock, exchange.receive, app.journal.flush)
                await listening.start(serve_control, app.settings.control_path, app.commands)
                bound = _bound(listeners)
                bound.http = await waiting.start(_serve_http, app, stop)
                _spare_the_collector()
                task_status.started(bound)
                log.info(
                    "ready",
                    radius_auth=[str(each) for each in bound.radius_auth],
                    radius_acct=[str(each) for each in bound.radius_acct],
                    http=[str(each) for each in bound.http],
                    version=app.version,
                )
                await stop.wait()
                log.info(
                    "stopping: what is waiting is answered first", waiting=sum(each.in_flight for each in exchanges)
                )
                listening.cancel_scope.cancel()
            await _drain(app, waiting)
            delayed.cancel_scope.cancel()


async def _drain(app: App, waiting: trio.Nursery) -> None:
    """Let logins in progress end and the journal write them, within the time for it."""
    with trio.move_on_after(DRAIN_S):
        while waiting.child_tasks:
            await trio.sleep(0.01)
        await app.journal.drained()
    waiting.cancel_scope.cancel()


async def _exchanges(app: App, listeners: Sequence[_Listener], waiting: trio.Nursery) -> list[Exchange]:
    """An exchange for each socket, knowing what was answered before a restart."""

    services = Services(
        clients=app.clients,
        domains=app.domains,
        sightings=app.devices.sightings,
        pipeline=app.pipeline,
        journal=app.journal,
        senders=app.senders,
        waiting=Waiting(app.settings.max_waiting_requests),
        radius_metrics=app.radius_metrics,
        login_metrics=app.login_metrics,
        learn=app.clients.latch,
    )
    kept = await app.journal.recent()
    exchanges = []
    for number, (kind, sock) in enumerate(listeners):
        exchange = Exchange(
            services,
            kind,
            number,
            udp.sender(sock),
            waiting,
            duplicate_window_s=app.settings.duplicate_window_s,
            reject_delay_s=app.settings.reject_delay_s,
        )
        exchange.restore(kept)
        exchanges.append(exchange)
    _watch_listeners(app, listeners, exchanges)
    return exchanges


def _watch_listeners(app: App, listeners: Sequence[_Listener], exchanges: Sequence[Exchange]) -> None:
    kinds = [kind.value for kind, _ in listeners]

    def summed(values: Callable[[], list[int]]) -> Callable[[], dict[tuple[str, ...], float]]:
        def read() -> dict[tuple[str, ...], float]:
            total: dict[tuple[str, ...], float] = {}
            for kind, value in zip(kinds, values(), strict=True):
                total[kind,] = total.get((kind,), 0.0) + value
            return total

        return read

    app.radius_metrics.watch_listeners(
        summed(lambda: [exchange.in_flight for exchange in exchanges]),
        summed(lambda: udp.receive_drops([sock for _, sock in listeners])),
    )


async def _serve_http(
    app: App, stop: trio.Event, *, task_status: trio.TaskStatus[list[Address]] = trio.TASK_STATUS_IGNORED
) -> None:
    settings = app.settings
    gate = Gate(app.tenancy, app.domains)
    observe = app.http_metrics.observe

    def metrics() -> bytes:
        return render(app.registry)

    def not_ready() -> list[str]:
        return [] if app.store.ready and not stop.is_set() else ["the store does not take writes"]

    main = create_app(
        [
            devices_api.operations(app.devices, gate),
            clients_api.operations(app.clients, gate),
            domains_api.operations(app.domains, gate),
            logins_api.operations(app.events, app.domains, gate),
        ],
        version=app.version,
        observe=observe,
        not_ready=not_ready,
        metrics=None if settings.metrics_bind else metrics,
    )
    tls = Tls(settings.tls_certificate, settings.tls_key) if settings.tls_certificate and settings.tls_key else None
    sites = [Listener(main, settings.http_bind, tls)]
    if settings.metrics_bind is not None:
        apart = create_metrics_app(observe=observe, not_ready=not_ready, metrics=metrics)
        sites.append(Listener(apart, settings.metrics_bind))
    await serve_http(sites, stop, task_status=task_status)


def _bound(listeners: Sequence[_Listener]) -> Bound:
    bound = Bound()
    for kind, sock in listeners:
        host, port = sock.getsockname()[:2]
        (bound.radius_auth if kind is Kind.AUTHENTICATION else bound.radius_acct).append(Address(host, port))
    return bound


def _spare_the_collector() -> None:
    """The login path makes no cycles; looking for some every 700 objects costs it a microsecond for each login."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


async def _measure_lag(app: App) -> None:
    while True:
        due = time.monotonic() + LAG_S
        await trio.sleep(LAG_S)
        app.process_metrics.loop_lag.set(max(0.0, time.monotonic() - due))
