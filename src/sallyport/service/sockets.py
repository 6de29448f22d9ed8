"""The sockets that a process of the service reads from. A service may have several worker processes.

Workers share the addresses. Each worker has its own UDP socket at each address (SO_REUSEPORT, socket(7)), and all
workers accept from the same listening sockets. The process that starts the workers binds all sockets and keeps them
open.

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

    http: the sockets of `http_bind`, `metrics_bind` and `people_bind`. control: the socket of the command line. Only a
    worker gets these sockets here. A service with one process opens them itself.
    """

    radius: tuple[tuple[RadiusService, socket.socket], ...]
    radsec: tuple[socket.socket, ...]
    http: tuple[socket.socket, ...] = ()
    control: socket.socket | None = None

    def addresses(self) -> Bound:
        """Return the addresses of the sockets."""
        found = Bound(radsec=[_address(each) for each in self.radsec], http=[_address(each) for each in self.http])
        for kind, sock in self.radius:
            (found.radius_auth if kind is RadiusService.AUTHENTICATION else found.radius_acct).append(_address(sock))
        return found


def bind(settings: Settings, held: ExitStack) -> Sockets:
    """Bind the RADIUS sockets for a service of one process. Raises StartError.

    held: the exit stack that closes the sockets.
    """
    radius = [(kind, held.enter_context(closing(udp.bind(address, name)))) for kind, name, address in _radius(settings)]
    if not radius and not settings.radsec_bind:
        raise StartError("no RADIUS address to listen on")
    return Sockets(tuple(radius), tuple([_listen(each, "radsec_bind", held) for each in settings.radsec_bind]))


def bind_for_workers(settings: Settings, held: ExitStack) -> list[Sockets]:
    """Bind the sockets of all workers, and return the sockets of each worker. Raises StartError.

    held: the exit stack that closes the sockets.
    """
    with ExitStack() as alone:  # without SO_REUSEPORT, so that the bind fails if another service uses an address
        places = [(kind, _address(sock)) for kind, sock in bind(settings, alone).radius]
    radsec = tuple([_listen(each, "radsec_bind", held) for each in settings.radsec_bind])
    streams = [each for each in settings.addresses() if each[2] == socket.SOCK_STREAM and each[0] != "radsec_bind"]
    http = [_listen(address, name, held) for name, address, _ in streams]
    commands = held.enter_context(closing(control.listen(settings.control_path)))
    held.callback(settings.control_path.unlink, missing_ok=True)
    return [
        Sockets(
            tuple(
                [
                    (kind, held.enter_context(closing(udp.bind(each, f"radius_{kind.value}_bind", shared=True))))
                    for kind, each in places
                ]
            ),
            radsec,
            tuple(http),
            commands,
        )
        for _ in range(settings.workers)
    ]


def _radius(settings: Settings) -> Iterator[tuple[RadiusService, str, Address]]:
    """Yield the RADIUS addresses with their settings. An IPv6 address is left out if the machine has no IPv6."""
    wanted = [(RadiusService.AUTHENTICATION, "radius_auth_bind", address) for address in settings.radius_auth_bind]
    wanted += [(RadiusService.ACCOUNTING, "radius_acct_bind", address) for address in settings.radius_acct_bind]
    for each in wanted:
        if has_family(each[2]):
            yield each
        else:
            log.warning("ipv6_not_available", address=str(each[2]))


def _listen(address: Address, setting: str, held: ExitStack) -> socket.socket:
    """Return a listening TCP socket. Raises StartError, which names the address and its setting."""
    try:
        sock = held.enter_context(closing(bound(address, socket.SOCK_STREAM)))
    except OSError as error:
        raise cannot_listen(setting, address, socket.SOCK_STREAM, error) from error
    sock.setblocking(False)
    sock.listen(BACKLOG)
    return sock


def _address(sock: socket.socket) -> Address:
    return Address(*sock.getsockname()[:2])
