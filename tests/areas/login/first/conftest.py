"""A first factor outside the domain. Here it is one password for all users, without a server."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import pytest
import trio
from pydantic import SecretStr

from sallyport.areas.domains.domain import Domain, FirstFactor
from sallyport.areas.login.first.checker import Checker, Host, Tell
from sallyport.areas.login.first.fields import Fields
from sallyport.areas.login.login import FirstFactorResult, Found, Login, Reason
from sallyport.radius.attributes import CLASS, REPLY_MESSAGE, push_attribute
from sallyport.radius.password import sent_password
from tests.areas import Areas, areas, clock
from tests.areas.login.conftest import FakeListener, listener

__all__ = ["areas", "clock", "listener"]


class ListFields(Fields):
    """Settings of the first factor: the only right password."""

    password: SecretStr
    away: bool = False


@dataclass
class Book:
    """A record of the checkers that are running, and of the users whose passwords they checked.

    fails: whether the background work of a checker fails. gate: an event that an answer waits for.
    """

    running: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    fails: bool = False
    gate: trio.Event | None = None


def kind(book: Book) -> type[Fields]:
    """Return a kind of first factor whose checkers record their work in `book`."""

    class Listed:
        name: ClassVar[str] = "ldap"

        def __init__(self, fields: ListFields, host: Host) -> None:
            self._fields = fields
            self._host = host

        async def check(self, login: Login, takes_code: Callable[[], bool], tell: Tell) -> FirstFactorResult:
            await trio.lowlevel.checkpoint()
            book.asked.append(login.user)
            tell(f"asked about {login.user}")
            if book.gate is not None:
                await book.gate.wait()
            if self._fields.away:
                return FirstFactorResult(Reason.FIRST_FACTOR_UNREACHABLE)
            if (
                sent_password(login.arrival.request, login.arrival.client.secret).decode()
                != self._fields.password.get_secret_value()
            ):
                return FirstFactorResult(Reason.WRONG_PASSWORD, Found(refuse=push_attribute(REPLY_MESSAGE, b"no")))
            accept = push_attribute(CLASS, b"staff")
            return FirstFactorResult(
                Reason.NONE, Found(accept=accept, groups=frozenset({"staff"}), ous=frozenset({"people"}))
            )

        async def look_up(self, user: str, tell: Tell) -> tuple[Reason, Found]:
            await trio.lowlevel.checkpoint()
            if self._fields.away:
                return Reason.FIRST_FACTOR_UNREACHABLE, Found()
            return (Reason.UNKNOWN_USER if user == "nobody" else Reason.NONE), Found()

        async def run(self) -> None:
            if book.fails:
                raise OSError("no socket is left")
            book.running.append(self._host.domain)
            try:
                await trio.sleep_forever()
            finally:
                book.running.remove(self._host.domain)

    class Booked(ListFields):
        def checker(self, host: Host) -> Checker:
            return Listed(self, host)

    return Booked


@pytest.fixture
def book(areas: Areas) -> Book:
    """Yield the record of a first factor of the kind `ldap` that needs no directory."""
    book = Book()
    areas.first_kinds[FirstFactor.LDAP] = kind(book)
    return book


@pytest.fixture
async def listed(listener: FakeListener, book: Book) -> Domain:
    """Return the domain corp. Its only right password is s3cret."""
    areas = listener.areas
    await areas.first_settings.set(
        areas.domains.table.by_id[areas.domain], FirstFactor.LDAP, {"ldap": {"password": "s3cret"}}
    )
    return areas.domains.table.by_id[areas.domain]
