"""The service for sessions of the console: look them up, list them, and end them."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

from sallyport.areas.signin import repo
from sallyport.areas.signin.openid import OpenId
from sallyport.areas.signin.person import Person, Session
from sallyport.areas.tenancy.authentication import MAX_LENGTH
from sallyport.base.actor import acting, acting_as
from sallyport.base.clock import SECOND, Clock
from sallyport.base.errors import NotFound
from sallyport.base.fair import FairLimiter
from sallyport.base.secret import token_hash
from sallyport.base.wire import JSON
from sallyport.store import audit
from sallyport.store.audit import INSTALLATION
from sallyport.store.model import Store, Tx
from sallyport.store.vault import Vault
from sallyport.web.scope import INSTALLATIONS, Role, not_allowed

NOT_FOUND: Final = "there is no such session of the console"
SEEN_US: Final = 60 * SECOND
"""Resolution of the time of the last request. With a finer resolution, every request would write to the store."""


@dataclass(frozen=True, slots=True)
class Browser:
    """The sender of a sign-in. source: the address. agent: the header User-Agent."""

    source: str
    agent: str = ""

    @property
    def is_local(self) -> bool:
        """Return whether the request comes from the service's own machine."""
        try:
            return ipaddress.ip_address(self.source.partition("%")[0]).is_loopback
        except ValueError:
            return False


class Sessions:
    """The sessions of the console. open_id: the identity providers. idle_us: the time without a request after which a
    session ends."""

    def __init__(self, store: Store, vault: Vault, open_id: OpenId, clock: Clock, *, idle_us: int) -> None:
        self._store = store
        self._vault = vault
        self._open_id = open_id
        self._clock = clock
        self.idle_us = idle_us
        self._turns = FairLimiter[str](1)

    # --- while signed in --------------------------------------------------------------------------------------

    async def person(self, key: str, source: str, *, touch: bool = True) -> Person | None:
        """Return the person whose session has a key. Return None if there is no such session, or if the session has
        ended.

        source: the address of the client. touch: whether the request counts as use of the session. A request that a
        script sends without the person does not count.
        """
        if len(key) > MAX_LENGTH:
            return None
        now = self._clock()
        async with self._turns.slot(source):
            session = await self._store.read_now(partial(repo.session_by_hash, hashed=token_hash(key)))
        if session is None or not self._is_live(session, now):
            return None
        if touch and now - session.seen_at >= min(SEEN_US, self.idle_us // 4):
            await self._store.write(partial(repo.seen, session_id=session.id, at=now))
        return Person(session)

    async def again(self, session_id: int) -> Person | None:
        """Return the person of a session that was valid before; None if it has ended. This is no use of the session."""
        session = await self._store.read_now(partial(repo.session_by_id, session_id=session_id))
        return Person(session) if session is not None and self._is_live(session, self._clock()) else None

    async def sign_out(self, person: Person) -> str:
        """End the person's session. Return the address at which the person also signs out at the identity provider;
        empty if the person has not signed in through one, or if it has no such address."""
        session, at = person.session, self._clock()

        def transaction(tx: Tx) -> None:
            if repo.end(tx, session.id):
                tenant_id = _owner(session)
                record(tx, "console.sign-out", session.target, tenant_id, Browser(session.source), at)

        with acting_as(person.caller.actor):
            await self._store.write(transaction)
        if session.issuer is None:
            return ""
        return await self._open_id.end_address(session.issuer, repo.open_id_token(self._vault, session))

    async def choose_tenant(self, person: Person, tenant_id: int) -> None:
        """Set the tenant in which an installation administrator acts. The caller must check that it exists. Raises
        Forbidden."""
        if not person.is_installation:
            raise not_allowed(person.caller.role, INSTALLATIONS)
        await self._store.write(lambda tx: repo.set_tenant(tx, person.session.id, tenant_id))

    # --- administration ---------------------------------------------------------------------------------------

    async def everything(self) -> list[Session]:
        """Return all live sessions of the installation, newest first."""
        return await self._store.search(lambda tx: self._live(repo.sessions(tx, None)))

    async def visible_to(
        self, person: Person, order: str = "", *, descending: bool = True, offset: int, limit: int
    ) -> tuple[list[Session], int]:
        """Return one page of the live sessions that a person may see and end, and their total. They are chosen in the
        thread of the search, because a tenant may have very many.

        An installation administrator may see all sessions. An admin may see the sessions of the tenant. Any other
        person may see the sessions of the own token or administrator. order: see `repo.sessions`.
        """
        own = person.session

        def query(tx: Tx) -> tuple[list[Session], int]:
            if person.is_installation or Role.ADMIN in person.roles:
                tenant_id = None if person.is_installation else own.tenant_id
                found = repo.sessions(tx, tenant_id, order, descending=descending)
            else:
                owner = (own.token_id, own.administrator_id, own.identity_id)
                found = repo.sessions_of(tx, *owner, order, descending=descending)
            live = self._live(found)
            return live[offset : offset + limit], len(live)

        return await self._store.search(query)

    async def visible(self, person: Person, session_id: int) -> Session:
        """Return a live session that a person may see and end. Raises NotFound."""
        session = await self._store.read(lambda tx: repo.session_by_id(tx, session_id))
        if session is None or not self._is_live(session, self._clock()) or not _may_see(person, session):
            raise NotFound(NOT_FOUND)
        return session

    async def end(self, session_id: int, by: Person | None = None) -> Session:
        """End a session. Raises NotFound if the session does not exist, or if the person may not see it.

        by: the person who ends the session, or None for the command line.
        """
        if by is not None:
            await self.visible(by, session_id)
        at = self._clock()

        def transaction(tx: Tx) -> Session:
            session = repo.session_by_id(tx, session_id)
            if session is None or not repo.end(tx, session_id):
                raise NotFound(NOT_FOUND)
            record(tx, "console.revoke", session.target, _owner(session), Browser(session.source), at)
            return session

        with acting_as(acting() if by is None else by.caller.actor):
            return await self._store.write(transaction)

    def _live(self, sessions: list[Session]) -> list[Session]:
        now = self._clock()
        return [each for each in sessions if self._is_live(each, now)]

    def _is_live(self, session: Session, now: int) -> bool:
        """Return whether a session is valid, and the configuration still gives its role to the groups of its person."""
        if not session.is_live(now, self.idle_us):
            return False
        if session.issuer is None:
            return True
        given = self._open_id.role_of(session.issuer, session.groups)
        if given is None or given.role != session.role:
            return False
        return given.role == Role.INSTALLATION.value or (given.org, given.tenant) == (
            session.organization,
            session.tenant_number,
        )


def _may_see(person: Person, session: Session) -> bool:
    own = person.session
    if person.is_installation:
        return True
    if Role.ADMIN in person.roles:
        return session.role != Role.INSTALLATION and session.tenant_id == own.tenant_id
    return (session.kind, session.owner_id) == (own.kind, own.owner_id)


def _owner(session: Session) -> int:
    """Return the tenant whose audit trail has the entries about a session."""
    return INSTALLATION if session.role == Role.INSTALLATION else session.tenant_id or INSTALLATION


def record(
    tx: Tx,
    action: str,
    target: str,
    tenant_id: int,
    browser: Browser,
    at: int,
    more: Mapping[str, JSON] = MappingProxyType({}),
) -> None:
    """Write an entry about a session or a sign-in to the audit trail."""
    changes: dict[str, JSON] = {"from": [None, browser.source], **more}
    audit.record(tx, action, at=at, tenant_id=tenant_id, target=target, changes=changes)
