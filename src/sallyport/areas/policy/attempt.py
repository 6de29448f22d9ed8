"""Protocols for logins and decisions. The policies use these protocols, so that they need not import the package
`login`."""

from collections.abc import Callable
from typing import Protocol

from sallyport.areas.clients.client import Client
from sallyport.areas.devices.device import Device
from sallyport.areas.domains.domain import Domain
from sallyport.areas.policy.lockouts.failures import Failure
from sallyport.radius.duplicates import Source
from sallyport.radius.packet import Request
from sallyport.store.model import Tx


class Attempt(Protocol):
    """A login attempt; `login.Login` implements this protocol.

    keep: a function that writes to the store, in the transaction that stores the login's event. If another node answers
    the login, the function returns False.
    """

    keep: Callable[[Tx], bool | None] | None

    @property
    def request(self) -> Request: ...
    @property
    def client(self) -> Client: ...
    @property
    def source(self) -> Source: ...
    @property
    def at(self) -> int: ...
    @property
    def device(self) -> Device: ...
    @property
    def domain(self) -> Domain | None: ...
    @property
    def method(self) -> str: ...
    @property
    def service_type(self) -> int | None: ...
    @property
    def principal(self) -> str: ...
    @property
    def outside(self) -> bool: ...
    @property
    def proven(self) -> bool: ...
    @property
    def approved(self) -> bool: ...


class Outcome(Protocol):
    """The decision on an attempt. failure: the kind of the wrong credential, or None if none was wrong. admits: whether
    the reply is Access-Accept."""

    @property
    def failure(self) -> Failure | None: ...
    @property
    def admits(self) -> bool: ...
