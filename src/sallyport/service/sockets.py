"""The sockets that a process of the service reads from. A service may have several worker processes.

Workers share the addresses. Each worker has its own UDP socket at each address (SO_REUSEPORT, socket(7)), and all
workers accept from the same listening sockets. The process that starts the workers binds all sockets and keeps them
open. systemd may have opened sockets already (`service.activation`): one for each address, and of each UDP address one
for each worker.

The kernel chooses a UDP socket by the address and port of the sender. Therefore a sender stays with its worker while
the number of workers does not change. The datagrams for a worker that restarts wait in its socket.
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

import structlog

from sallyport.areas.login.listen import udp
from sallyport.areas.login.listen.exchange import RadiusService
from sallyport.base.errors import StartError
from sallyport.service import control
from sallyport.service.activation import PassedSockets
from sallyport.settings.listening import bound, cannot_listen, has_family
from sallyport.settings.settings import Settings
from sallyport.settings.values import Address

BACKLOG = 512

log = structlog.get_logger()


@dataclass(slots=True)
class Bound:
    """The addresses of the service, with the ports that the system has chosen for port 0."""

    radius_auth: list[Address] = field(default_factory=list)
    radius_acct: list[Address] = field(default_factory=list)
    radsec: list[Address] = field(default_factory=list)
    http: list[Address] = field(default_factory=list)

    def shown(self) -> dict[str, list[str]]:
        """Return the addresses by setting, in the form for the log."""
        return {name: [str(each) for each in getattr(self, name)] for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Sockets:
    """The sockets of a process.

    http: the sockets of `http_bind`, `metrics_bind` and `people_bind`; None for one that HTTP opens itself, as in a
    service with one process. control: the socket of the command line, for a worker.
    """

    radius: tuple[tuple[RadiusService, socket.socket], ...]
    radsec: tuple[socket.socket, ...]
    http: tuple[socket.socket | None, ...] = ()
    control: socket.socket | None = None

    def addresses(self) -> Bound:
        """Return the addresses of the sockets."""
        http = [_address(each) for each in self.http if each is not None]
        found = Bound(radsec=[_address(each) for each in self.radsec], http=http)
        for kind, sock in self.radius:
            (found.radius_auth if kind is RadiusService.AUTHENTICATION else found.radius_acct).append(_address(sock))
        return found


def bind(settings: Settings, held: ExitStack, passed: PassedSockets) -> Sockets:
    """Return the sockets of a service of one process: those of systemd, and new ones for the other addresses. HTTP
    opens its own sockets, except those of systemd. Raises StartError.

    held: the exit stack that closes the sockets.
    """
    passed.check(settings.addresses())
    radius = list[tuple[RadiusService, socket.socket]]()
    for kind, name, address in _radius(settings):
        found = passed.take(name, address, socket.SOCK_DGRAM)
        sock = udp.prepare(found[0], address) if found else udp.bind(address, name)
        radius.append((kind, held.enter_context(closing(sock))))
    radsec = [_listen(each, "radsec_bind", held, passed) for each in settings.radsec_bind]
    http = [_taken(address, name, held, passed) for name, address in _http(settings)]
    return Sockets(tuple(radius), tuple(radsec), tuple(http))


def bind_for_workers(settings: Settings, held: ExitStack, passed: PassedSockets) -> list[Sockets]:
    """Return the sockets of each worker: those of systemd, and new ones for the other addresses. Raises StartError.

    held: the exit stack that closes the sockets.
    """
    passed.check(settings.addresses())
    radius = list[list[tuple[RadiusService, socket.socket]]]()
    for kind, name, address in _radius(settings):
        found = passed.take(name, address, socket.SOCK_DGRAM, settings.workers)
        sockets = [udp.prepare(each, address) for each in found] or _shared(address, name, settings.workers)
        radius.append([(kind, held.enter_context(closing(each))) for each in sockets])
    radsec = tuple([_listen(each, "radsec_bind", held, passed) for each in settings.radsec_bind])
    http = tuple([_listen(address, name, held, passed) for name, address in _http(settings)])
    commands = held.enter_context(closing(control.listen(settings.control_path)))
    held.callback(settings.control_path.unlink, missing_ok=True)
    return [
        Sockets(tuple([each[number] for each in radius]), radsec, http, commands) for number in range(settings.workers)
    ]


def _shared(address: Address, setting: str, count: int) -> list[socket.socket]:
    """Return sockets that share an address. Raises StartError if another service uses the address."""
    with closing(udp.bind(address, setting)) as alone:  # without SO_REUSEPORT, so that the bind fails in this case
        place = _address(alone)
    return [udp.bind(place, setting, shared=True) for _ in range(count)]


def _http(settings: Settings) -> Iterator[tuple[str, Address]]:
    """Yield the setting and the address of each HTTP listener, in the order of the listeners."""
    for name, address, kind in settings.addresses():
        if kind == socket.SOCK_STREAM and name != "radsec_bind":
            yield name, address


def _radius(settings: Settings) -> Iterator[tuple[RadiusService, str, Address]]:
    """Yield the RADIUS addresses with their settings. An IPv6 address is left out if the machine has no IPv6. Raises
    StartError if no address is left, and RadSec has none."""
    wanted = [(RadiusService.AUTHENTICATION, "radius_auth_bind", address) for address in settings.radius_auth_bind]
    wanted += [(RadiusService.ACCOUNTING, "radius_acct_bind", address) for address in settings.radius_acct_bind]
    usable = [each for each in wanted if has_family(each[2])]
    for _, _, address in (each for each in wanted if each not in usable):
        log.warning("ipv6_not_available", address=str(address))
    if not usable and not settings.radsec_bind:
        raise StartError("no RADIUS address to listen on")
    yield from usable


def _taken(address: Address, setting: str, held: ExitStack, passed: PassedSockets) -> socket.socket | None:
    """Return the listening TCP socket of systemd, or None if there is none. Raises StartError."""
    found = passed.take(setting, address, socket.SOCK_STREAM)
    return held.enter_context(closing(found[0])) if found else None


def _listen(address: Address, setting: str, held: ExitStack, passed: PassedSockets) -> socket.socket:
    """Return a listening TCP socket: that of systemd, or a new one. Raises StartError, which names the address and its
    setting."""
    if (taken := _taken(address, setting, held, passed)) is not None:
        return taken
    try:
        sock = held.enter_context(closing(bound(address, socket.SOCK_STREAM)))
    except OSError as error:
        raise cannot_listen(setting, address, socket.SOCK_STREAM, error) from error
    sock.setblocking(False)
    sock.listen(BACKLOG)
    return sock


def _address(sock: socket.socket) -> Address:
    return Address(*sock.getsockname()[:2])
