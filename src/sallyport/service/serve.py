"""The run of the whole service in one nursery: start everything, wait for a signal, answer waiting requests, stop.

The order matters. Before the service reads the first datagram, it binds all sockets and loads the stored answers. At
the end the listeners stop first. Then the logins in progress are decided, the journal writes them, and the store
closes.
"""

import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial

import structlog
import trio

from sallyport.areas.login.listen import radsec, udp
from sallyport.areas.login.listen.exchange import Exchange, RadiusService, Services
from sallyport.areas.login.listen.siblings import Siblings, socket_of
from sallyport.host.notify import Notifier, ToParent
from sallyport.nodes.periodic import while_leading
from sallyport.service import supervise
from sallyport.service.activation import PassedSockets, passed_sockets
from sallyport.service.app import App
from sallyport.service.build import build
from sallyport.service.commands import Requests, commands
from sallyport.service.control import serve_control, serve_socket
from sallyport.service.garbage import collect_garbage
from sallyport.service.operations import console, gate_of, operations, pages, people
from sallyport.service.reload import STATUS, Reloads
from sallyport.service.sockets import Bound, Sockets, bind
from sallyport.settings.settings import Settings
from sallyport.settings.values import Address
from sallyport.web.app import create_app, create_metrics_app
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate
from sallyport.web.server import Listener, serve_http

LAST_WORDS_S = 2.0
GRACE_S = 10.0
"""Seconds in addition to `drain_s` in which HTTP, the journal and the store must end."""
LAG_S = 0.25

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Worker:
    """One of several processes of the service.

    number: the number of the process, from 1. notifier: sends messages to the parent process.
    """

    number: int
    sockets: Sockets
    notifier: ToParent


async def serve(
    settings: Settings,
    environ: Mapping[str, str],
    stop: trio.Event,
    *,
    hung_up: trio.MemoryReceiveChannel[None] | None = None,
    read: Callable[[], Settings] | None = None,
    lock: int | None = None,
    worker: Worker | None = None,
    task_status: trio.TaskStatus[Bound] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Run the service until `stop` is set. Raises StartError or StoreError if it cannot start.

    hung_up: a channel with an item for each SIGHUP. read: a function that returns the current settings. lock: see
    `build`. worker: this process, or None if the service has only one process.
    """
    notifier = Notifier(environ) if worker is None else worker.notifier
    async with build(settings, environ, lock=lock, joins=True) as app:
        app.apply(settings)
        if worker is not None:
            paths = {each: socket_of(settings.control_path, each) for each in range(1, settings.workers + 1)}
            app.installation.siblings = Siblings(paths, worker.number)
        with ExitStack() as held:
            sockets = bind(settings, held, PassedSockets(passed_sockets(environ))) if worker is None else worker.sockets
            async with trio.open_nursery() as background:
                await background.start(app.parts.notices.run)
                await background.start(app.events.login_log.run)
                for task in (app.follower.run, *app.areas.node_tasks):
                    background.start_soon(task)
                if app.login.spool is not None:
                    await background.start(app.login.spool.run)
                leading = partial(while_leading, begin=app.parts.settled.begin)
                background.start_soon(leading, app.parts.cluster, app.areas.leader_tasks)
                await background.start(app.login.first.run)
                await background.start(app.login.second.run)
                background.start_soon(_measure_lag, app)
                background.start_soon(supervise.feed_watchdog, app.parts.store, notifier)
                background.start_soon(
                    supervise.watch_room,
                    settings.database_path.parent,
                    lambda: app.parts.settings.disk_warning_mib << 20,
                )
                reloads = Reloads(app, notifier, read or (lambda: settings))
                app.installation.reload = reloads.rows
                if hung_up is not None:
                    background.start_soon(reloads.run, hung_up)
                await _answer_requests(app, sockets, worker, stop, notifier, task_status)
                background.cancel_scope.cancel()


async def serve_until_signal(
    settings: Settings,
    environ: Mapping[str, str],
    read: Callable[[], Settings] | None = None,
    lock: int | None = None,
    ready: Callable[[], None] = lambda: None,
    worker: Worker | None = None,
) -> None:
    """Run the service until SIGTERM or SIGINT. A worker also stops when its parent process has ended.

    read: a function that returns the current settings, for SIGHUP. lock: see `build`. ready: a function that is called
    when every listener answers.
    """
    stop = trio.Event()
    hang_ups, hung_up = trio.open_memory_channel[None](1)
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async with trio.open_nursery() as nursery:

            async def wait_for_signal() -> None:
                async for number in signals:
                    if number == signal.SIGHUP:
                        with suppress(trio.WouldBlock):  # a second pending signal adds nothing
                            hang_ups.send_nowait(None)
                    else:
                        stop.set()

            nursery.start_soon(wait_for_signal)
            async with trio.open_nursery() as running:
                if worker is not None:
                    nursery.start_soon(_stop_without_parent, worker.notifier, stop)
                started = partial(serve, hung_up=hung_up, read=read or (lambda: settings), lock=lock, worker=worker)
                await running.start(started, settings, environ, stop)
                ready()
            nursery.cancel_scope.cancel()


async def _stop_without_parent(parent: ToParent, stop: trio.Event) -> None:
    await trio.lowlevel.wait_readable(parent.socket)  # only when the parent has ended: it never sends
    log.warning("worker_without_parent")
    stop.set()


async def _answer_requests(
    app: App,
    sockets: Sockets,
    worker: Worker | None,
    stop: trio.Event,
    notifier: Notifier,
    task_status: trio.TaskStatus[Bound],
) -> None:
    listeners = sockets.radius
    async with trio.open_nursery() as waiting, trio.open_nursery() as connected:
        services = _services(app)
        gate = gate_of(app)
        declared = operations(app, gate)
        exchanges = await _exchanges(app, services, listeners, waiting)
        over_tls = _radsec(app)
        pair = _radsec_exchanges(app, services, over_tls, waiting, number=len(listeners))
        exchanges += pair
        _watch_listeners(app, listeners, exchanges)
        await connected.start(over_tls.run, sockets.radsec, *pair)
        async with trio.open_nursery() as delayed:
            for exchange in exchanges:
                delayed.start_soon(exchange.delayed.run)
            async with trio.open_nursery() as listening:
                for (_, sock), exchange in zip(listeners, exchanges, strict=False):
                    listening.start_soon(
                        partial(
                            udp.receive,
                            sock,
                            exchange.receive,
                            app.login.journal.flush,
                            owner=app.clients.service.owner,
                            refuse=exchange.refuse,
                        )
                    )
                path, requests = app.parts.settings.control_path, Requests(app, declared)
                if sockets.control is not None and worker is not None:
                    await listening.start(serve_socket, sockets.control, requests.run)
                    path = socket_of(path, worker.number)
                await listening.start(serve_control, path, requests.run)
                bound = sockets.addresses()
                bound.http = await waiting.start(_serve_http, app, gate, declared, sockets.http, stop)
                app.http_address = bound.http[0]
                listening.start_soon(collect_garbage, lambda: services.slots.now)
                task_status.started(bound)
                if worker is None:
                    log.info(
                        "ready",
                        **bound.shown(),
                        console=app.parts.link_base(),
                        version=app.version,
                    )
                else:
                    log.info("worker_ready", node=app.parts.settings.node)
                notifier.ready(STATUS)
                await stop.wait()
                app.agents.service.states.close()
                notifier.stopping(app.parts.settings.drain_s + GRACE_S)
                log.info("stopping", waiting=sum(each.in_flight for each in exchanges))
                listening.cancel_scope.cancel()
                over_tls.stop()
            await _drain(app, waiting, exchanges)
            delayed.cancel_scope.cancel()
        with trio.move_on_after(LAST_WORDS_S):
            await over_tls.sent()
        connected.cancel_scope.cancel()


async def _drain(app: App, waiting: trio.Nursery, exchanges: Sequence[Exchange]) -> None:
    """Wait for logins in progress, up to a time limit. Then end the logins that wait for a second factor, and write all
    events.

    If a first factor has no result by then, no reply is sent, and the device sends the request again.
    """

    async def ended() -> None:
        while waiting.child_tasks or any(exchange.pending.handed_over for exchange in exchanges):
            await trio.sleep(0.01)
        await app.login.journal.drained()

    with trio.move_on_after(app.parts.settings.drain_s):
        await ended()
    await app.login.second.stop_waiting()
    with trio.move_on_after(LAST_WORDS_S):
        await ended()
    waiting.cancel_scope.cancel()


def _services(app: App) -> Services:
    return Services(
        find_client=app.clients.service.find,
        domains=app.domains.service,
        sightings=app.devices.service.sightings,
        pipeline=app.login.pipeline,
        eap=app.login.eap,
        journal=app.login.journal,
        senders=app.login.senders,
        slots=app.login.slots,
        radius_metrics=app.login.radius_metrics,
        login_metrics=app.login.metrics,
        learn=app.clients.service.latches.latch,
        ready=lambda: app.parts.store.ready,
        copied=app.shadow.copies.receive,
    )


async def _exchanges(
    app: App, services: Services, listeners: Sequence[tuple[RadiusService, socket.socket]], waiting: trio.Nursery
) -> list[Exchange]:
    """Return an exchange for each socket.

    An exchange contains the answers that were sent before a restart. A retransmitted request gets the same answer
    again.
    """
    kept = await app.login.journal.recent()
    exchanges = []
    for number, (kind, sock) in enumerate(listeners):
        exchange = Exchange(
            services,
            kind,
            number,
            udp.sender(sock),
            waiting,
            duplicate_window_s=app.parts.settings.duplicate_window_s,
            reject_delay_s=lambda: app.parts.settings.reject_delay_s,
        )
        exchange.restore(kept)
        exchanges.append(exchange)
    return exchanges


def _radsec(app: App) -> radsec.RadSec:
    login = app.login
    return radsec.RadSec(
        app.parts.certificates.server,
        lambda: app.clients.service.table,
        login.journal.flush,
        login.radius_metrics,
        login.senders,
    )


def _radsec_exchanges(
    app: App, services: Services, over_tls: radsec.RadSec, waiting: trio.Nursery, *, number: int
) -> list[Exchange]:
    """Return the exchanges of all RadSec connections: one for authentication, one for accounting."""
    services = replace(services, find_client=over_tls.find_client, decode=radsec.decode_proven)
    return [
        Exchange(
            services,
            kind,
            number + more,
            over_tls.send,
            waiting,
            duplicate_window_s=app.parts.settings.duplicate_window_s,
            reject_delay_s=lambda: app.parts.settings.reject_delay_s,
            label=radsec.LABEL,
        )
        for more, kind in enumerate(RadiusService)
    ]


def _watch_listeners(
    app: App, listeners: Sequence[tuple[RadiusService, socket.socket]], exchanges: Sequence[Exchange]
) -> None:
    kinds = [kind.value for kind, _ in listeners] + [radsec.LABEL] * (len(exchanges) - len(listeners))

    def summed(values: Callable[[], list[int]]) -> Callable[[], dict[tuple[str, ...], float]]:
        def read() -> dict[tuple[str, ...], float]:
            total: dict[tuple[str, ...], float] = {}
            for kind, value in zip(kinds, values(), strict=False):
                total[kind,] = total.get((kind,), 0.0) + value
            return total

        return read

    app.login.radius_metrics.watch_listeners(
        summed(lambda: [exchange.in_flight for exchange in exchanges]),
        summed(lambda: udp.receive_drops([sock for _, sock in listeners])),
    )


async def _serve_http(
    app: App,
    gate: Gate,
    declared: list[Operations],
    sockets: Sequence[socket.socket | None],
    stop: trio.Event,
    *,
    task_status: trio.TaskStatus[list[Address]] = trio.TASK_STATUS_IGNORED,
) -> None:
    settings = app.parts.settings
    observe = app.http_metrics.observe

    metrics = app.installation.exposition

    def not_ready() -> list[str]:
        return [] if app.parts.store.ready and not stop.is_set() else ["the store does not take writes"]

    site = console(app, gate, declared, commands(app), stop)
    main = create_app(
        declared,
        version=app.version,
        observe=observe,
        not_ready=not_ready,
        metrics=None if settings.metrics_bind else metrics,
        pages=pages(app, gate, site),
        unknown=site.unknown,
    )
    sites = [Listener(main, settings.http_bind, app.tls, app.proxies)]
    if settings.metrics_bind is not None:
        apart = create_metrics_app(observe=observe, not_ready=not_ready, metrics=metrics)
        sites.append(Listener(apart, settings.metrics_bind, setting="metrics_bind"))
    if settings.people_bind is not None:
        site_of_people = people(app, observe)
        sites += [
            Listener(site_of_people, each, app.tls, app.proxies, setting="people_bind") for each in settings.people_bind
        ]
    sites = [replace(each, bound=sock) for each, sock in zip(sites, sockets, strict=True)]
    async with trio.open_nursery() as nursery:
        await nursery.start(site.running.run)
        await serve_http(sites, stop, task_status=task_status)
        nursery.cancel_scope.cancel()


async def _measure_lag(app: App) -> None:
    while True:
        due = time.monotonic() + LAG_S
        await trio.sleep(LAG_S)
        app.installation.metrics.lag(max(0.0, time.monotonic() - due))
