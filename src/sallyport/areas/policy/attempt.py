"""What the policies know of a request and of its login. These values are frozen: a policy changes neither."""

from dataclasses import dataclass
from typing import NamedTuple

from sallyport.areas.clients.client import Client
from sallyport.areas.domains.domain import Domain
from sallyport.radius.duplicates import Source
from sallyport.radius.packet import Request


class Arrival(NamedTuple):
    """An authentic request, as it arrived.

    client: the RADIUS client that sent it. source: the socket address of the sender. at: the time of arrival, in
    microseconds. monotonic: the same time in seconds of the monotonic clock.
    """

    request: Request
    client: Client
    source: Source
    at: int
    monotonic: float = 0.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """A login attempt, as the lock-outs see it.

    domain: the domain of the user. user: the name by which failures are counted, without a realm. method: the
    authentication method. outside: whether `user` is only the outer identity of EAP, which a client can choose freely.
    proven: whether the sender has proved its identity by a correct password or code. approved: whether the user has
    approved the second factor.
    """

    arrival: Arrival
    domain: Domain
    user: str
    method: str
    outside: bool = False
    proven: bool = False
    approved: bool = False
