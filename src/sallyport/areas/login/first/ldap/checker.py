"""Check the credentials of a login by asking a directory. `Ldap.bind` serves callers that have only a name and a
password."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Final, TypeVar

import structlog
import trio

from sallyport.areas.directory.entry.entry import has_replaced_name
from sallyport.areas.directory.entry.sid import OBJECT_SID, sid_filter
from sallyport.areas.directory.reading.answers import TooLarge
from sallyport.areas.directory.reading.connection import (
    INSUFFICIENT_ACCESS,
    INVALID_DN,
    NO_SUCH_OBJECT,
    OPERATIONS_ERROR,
    REFERRAL,
    SIZE_LIMIT,
    Account,
    Connection,
    Entry,
    Refusal,
)
from sallyport.areas.directory.reading.search import escaped
from sallyport.areas.directory.reading.server import Server, Unreachable
from sallyport.areas.login.first.checker import ASSERTION, USER, DirectoryAccount, Host, Tell, silent
from sallyport.areas.login.first.ldap import account
from sallyport.areas.login.first.ldap.directory import Directory, ServiceRefused
from sallyport.areas.login.first.ldap.memory import Memory
from sallyport.areas.login.first.password import attempt_of, mschap_found, split_digits
from sallyport.areas.login.first.winbind.checker import Winbind, account_name, hashed_name
from sallyport.areas.login.login import NOTHING, FirstFactorResult, Found, Login, Reason
from sallyport.areas.mfa.provider import Code
from sallyport.base.text import fold, password_text, trimmed
from sallyport.outgoing.tls import LazyContext, client_context
from sallyport.radius.attributes import USER_NAME
from sallyport.radius.mschap import MsChap1, MsChap2
from sallyport.radius.password import Method, sent_password

ACCOUNT_NAME: Final = "sAMAccountName"
MANY_VALUES: Final = 100
"""Maximum number of attribute values in an entry that is evaluated on the event loop. Larger entries are evaluated in a
thread."""
_Answer = TypeVar("_Answer")

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _FoundUser:
    server: Server
    entry: Entry
    found: Found
    name: str


@dataclass(frozen=True, slots=True)
class LdapSettings:
    """The configuration of a directory.

    servers: the servers in order of preference. service: the account that searches for users; if it is None, the search
    is anonymous. user_filter: the filter that finds a user, with {user} in place of the name. authorities: the trusted
    certificates in PEM; if it is None, those in the system's store are trusted. remember_s: the time for which a
    correct password is cached, in seconds. winbind_domain: the name of the Active Directory domain; if it is empty, it
    is the domain that the host has joined. code_digits: the number of digits of a code that users append to the
    password. timeout_s: the time limit for one login, in seconds.
    """

    servers: tuple[Server, ...]
    base_dn: str
    service: Account | None = field(repr=False)
    user_filter: str
    authorities: str | None
    remember_s: int
    winbind: bool
    winbind_domain: str
    code_digits: int
    timeout_s: int


class Ldap:
    """The checker of a domain with a directory. It checks PAP passwords by an LDAP bind. It checks MS-CHAP responses by
    winbind, if this is configured, because a bind needs the password itself."""

    name: ClassVar[str] = "ldap"

    def __init__(self, settings: LdapSettings, host: Host) -> None:
        self._settings = settings
        self._host = host
        self._winbind = None
        if settings.winbind and host.ntlm_auth is not None:
            self._winbind = Winbind(host.ntlm_auth, host.domain, settings.winbind_domain)
        self._memory = Memory(settings.remember_s, host.monotonic)
        self._names = [
            (name, account.principal_pattern(each)) for name, each in ASSERTION.findall(settings.user_filter)
        ]
        trust = LazyContext(partial(client_context, settings.authorities))
        self._directory = Directory(settings.servers, settings.service, trust, host.egress)

    @property
    def checks_mschap(self) -> bool:
        """Whether winbind is configured, so that MS-CHAP can be checked."""
        return self._winbind is not None

    @property
    def code_digits(self) -> int:
        """The number of digits of a code that users append to the password."""
        return self._settings.code_digits

    async def run(self) -> None:
        """Keep the connections to the directory until cancelled."""
        await self._directory.run()

    async def check(self, login: Login, takes_code: Callable[[], bool], tell: Tell) -> FirstFactorResult:
        """Check a PAP password or an MS-CHAP response.

        If a code may follow a PAP password, and the last six characters are digits, these characters are taken as the
        code. The configuration can set eight characters instead; codes of another length cannot be appended. There is
        only one bind, so the whole password is not tried as well. So a user who has codes, and whose own password ends
        in six digits, must always append a code.
        """
        if login.method in (Method.MSCHAP, Method.MSCHAP2) and self._winbind is not None:
            return await self._check_mschap(login, tell)
        if login.method != Method.PAP:
            tell(f"a bind needs the password itself, but a login by {login.method} does not contain it")
            return FirstFactorResult(Reason.METHOD_UNFIT)
        given, code = sent_password(login.arrival.request, login.arrival.client.secret), None
        split = split_digits(given, self.code_digits) if takes_code() else None
        if split is not None:
            tell(f"the last {self.code_digits} digits are taken as a code")
            given, code = split[0], Code(split[1].decode())
        if b"\0" in given:
            tell("a password cannot contain a NUL")
            return FirstFactorResult(Reason.WRONG_PASSWORD)
        reason, found = await self.bind(login.user, password_text(given), tell)
        return FirstFactorResult(reason, found, code if reason is Reason.NONE else None)

    async def bind(self, user: str, password: str, tell: Tell) -> tuple[Reason, Found]:
        """Check a user's password by a bind. Return the result, and the user's groups and units.

        A failure of the directory is returned as a reason. An empty password is never sent, because directories accept
        it as an unauthenticated bind (RFC 4513 section 5.1.2).
        """
        if not password or "\0" in password:
            tell("an empty password, or one with a NUL, is never sent")
            return Reason.WRONG_PASSWORD, NOTHING
        remembered = self._memory.recall(user, password)
        if remembered is not None:
            tell("the directory confirmed this password a short time ago")
            return Reason.NONE, remembered
        answer = await self._answered(partial(self._ask, user, password, tell), tell)
        reason, found = (answer, NOTHING) if isinstance(answer, Reason) else answer
        if reason is Reason.NONE:
            self._memory.keep(user, password, found)
        return reason, found

    async def look_up(self, user: str, tell: Tell) -> tuple[Reason, Found]:
        """Check whether a user exists and may log in. Return the result, and the user's groups and units.

        No bind is made, because the caller has authenticated the user by other means. So the directory's password
        policy is not applied.
        """
        reason, found, _ = await self.identify(user, tell)
        return reason, found

    async def identify(
        self, user: str, tell: Tell, *, by_sid: bool = False
    ) -> tuple[Reason, Found, DirectoryAccount | None]:
        """Check whether a user exists and may log in as `look_up` does, and return the account too.

        by_sid: whether `user` is the security identifier of the account. The filter of the domain applies too, with any
        name.
        """
        find = partial(self._find, account_name(user), tell, by_sid=by_sid, further=account.OF_ACCOUNT)
        answer = await self._answered(find, tell)
        if isinstance(answer, Reason):
            return answer, NOTHING, None
        reason = account.state(answer.entry, self._host.clock())
        known = account.directory_account(answer.name, answer.entry)
        return (Reason.NONE, answer.found, known) if reason is Reason.WRONG_PASSWORD else (reason, NOTHING, known)

    async def _check_mschap(self, login: Login, tell: Tell) -> FirstFactorResult:
        attempt = attempt_of(login.arrival.request)
        if isinstance(attempt, Reason):
            return FirstFactorResult(attempt)
        name = hashed_name(login.arrival.request.first[USER_NAME])
        key, found = await self.ask_winbind(login.user, attempt, name, tell)
        if isinstance(key, Reason):
            return FirstFactorResult(key)
        return FirstFactorResult(Reason.NONE, mschap_found(login.arrival, attempt, key, name, found))

    async def ask_winbind(
        self, user: str, attempt: MsChap1 | MsChap2, name: bytes, tell: Tell
    ) -> tuple[bytes | Reason, Found]:
        """Check an MS-CHAP response by winbind. Return the hash of the password's NT hash (16 octets), or the reason
        for a refusal. The second value has the user's groups and units.

        name: the user name with which the client has computed its response. The account name for winbind comes from the
        user's directory entry, so password and groups always belong to the same person.
        """
        if self._winbind is None:
            tell("MS-CHAP is checked through winbind, which this domain does not use")
            return Reason.METHOD_UNFIT, NOTHING
        answer = await self._answered(partial(self._find, account_name(user), tell), tell)
        if isinstance(answer, Reason):
            return answer, NOTHING
        names = [trimmed(name) for name in answer.entry.of(ACCOUNT_NAME)]
        if not names or len(names[0]) > account.MAX_NAME_LENGTH:
            tell(f"the entry has no {ACCOUNT_NAME} that the service account may read")
            return Reason.UNKNOWN_USER, NOTHING
        key = await self._winbind.ask(names[0], attempt, name, tell)
        return (key, NOTHING) if isinstance(key, Reason) else (key, answer.found)

    async def _answered(self, work: Callable[[], Awaitable[_Answer]], tell: Tell) -> _Answer | Reason:
        """Return the result of `work`. If the directory fails or exceeds the time limit, return the reason."""
        with trio.move_on_after(self._settings.timeout_s):
            try:
                return await work()
            except (Unreachable, ServiceRefused) as error:  # already logged
                tell(str(error))
                return Reason.FIRST_FACTOR_UNREACHABLE
            except TooLarge as error:
                tell(str(error))
                log.warning("directory_answer_too_large", domain=self._host.domain, error=str(error))
                return Reason.DIRECTORY_ENTRY_TOO_LARGE
            except Refusal as error:
                tell(f"{error}{self._remedy(error)}")
                log.warning("directory_refuses_answer", domain=self._host.domain, error=str(error))
                return Reason.FIRST_FACTOR_UNREACHABLE
        tell("no answer in time; check the address, and firewalls on the way")
        log.warning("directory_timeout", domain=self._host.domain)
        return Reason.FIRST_FACTOR_UNREACHABLE

    def _remedy(self, refusal: Refusal) -> str:
        """Return a hint on how to correct a refused search, with a leading semicolon. Return an empty text if no hint
        is known."""
        base, service = self._settings.base_dn, self._settings.service
        if refusal.code in (NO_SUCH_OBJECT, REFERRAL, INVALID_DN):
            return f"; the server has no base DN {base} that the service account may read: check baseDN"
        if refusal.code in (OPERATIONS_ERROR, INSUFFICIENT_ACCESS):
            return (
                "; the server refuses anonymous searches: set bindDN and bindPassword"
                if service is None
                else f"; the account {service.dn} may not search below {base}"
            )
        return ""

    async def _ask(self, user: str, password: str, tell: Tell) -> tuple[Reason, Found]:
        known = await self._find(user, tell)
        if isinstance(known, Reason):
            return known, NOTHING
        reason = await self._bind_as(known.server, known.entry, password, tell)
        return (reason, known.found) if reason is Reason.NONE else (reason, NOTHING)

    async def _find(
        self, user: str, tell: Tell, *, by_sid: bool = False, further: Sequence[str] = ()
    ) -> _FoundUser | Reason:
        """Return a user's entry. Return UNKNOWN_USER if the search finds no entry or several entries. Also return
        UNKNOWN_USER if the name in the login is not the entry's canonical name. Raises TooLarge.

        by_sid: whether `user` is a security identifier. further: further attributes to read.
        """
        pattern = self._settings.user_filter.replace(USER, "*" if by_sid else escaped(user))
        if by_sid:
            pattern = f"(&{pattern}{sid_filter(user)})"
        tell(f"search below {self._settings.base_dn} for {pattern}")
        attributes = dict.fromkeys((*account.ATTRIBUTES, *further, ACCOUNT_NAME, *(name for name, _ in self._names)))
        try:
            server, entries = await self._directory.search(self._settings.base_dn, pattern, [*attributes], tell)
        except Refusal as refusal:
            if refusal.code != SIZE_LIMIT:
                raise
            tell("the filter matches several entries")
            return Reason.UNKNOWN_USER
        entries = [entry for entry in entries if not has_replaced_name(entry.dn)]
        if not entries and tell is not silent:
            await self._tell_base(tell)
        if len(entries) != 1:
            self._tell_none(entries, user, None, tell)
            return Reason.UNKNOWN_USER
        name, found = await self._examined(entries[0])
        is_same = entries[0].of(OBJECT_SID) == (user,) if by_sid else name is not None and fold(name) == fold(user)
        if name is None or not is_same:
            self._tell_none(entries, user, name, tell)
            return Reason.UNKNOWN_USER
        tell(f"found {entries[0].dn}")
        return _FoundUser(server, entries[0], found, name)

    async def _tell_base(self, tell: Tell) -> None:
        """Report to the admin either that the base DN is wrong, or that the user is missing. A search returns no entry
        in both cases, so an extra search for the base DN is needed."""
        base = self._settings.base_dn
        try:
            _, found = await self._directory.search(base, "(objectClass=*)", ["1.1"], silent)
            exists = bool(found)
        except Refusal as refusal:
            exists = refusal.code == SIZE_LIMIT
        if exists:
            tell(f"the base DN {base} exists: check the user's name, userFilter, and the place of the user's entry")
        else:
            tell(f"the server has no base DN {base} that the service account may read: check baseDN")

    async def _examined(self, entry: Entry) -> tuple[str | None, Found]:
        """Return the canonical name of an entry, and its groups and units. Raises TooLarge."""

        def examine() -> tuple[str | None, Found]:
            return account.name_of(entry, self._names), account.found(entry)

        if sum(map(len, entry.values.values())) <= MANY_VALUES:
            return examine()
        return await trio.to_thread.run_sync(examine)

    def _tell_none(self, entries: list[Entry], user: str, name: str | None, tell: Tell) -> None:
        if not entries:
            tell("no entry was found")
        elif len(entries) > 1:
            tell(f"more than one entry was found: {', '.join(entry.dn for entry in entries)}")
            log.warning("directory_name_ambiguous", domain=self._host.domain, user=user)
        elif name is not None:
            tell(f"found {entries[0].dn} by a name that is not valid for logins: log in as {name}")
        else:
            tell(f"found {entries[0].dn}, whose name cannot be read")

    async def _bind_as(self, server: Server, entry: Entry, password: str, tell: Tell) -> Reason:
        try:
            connection = await self._directory.bind(server, Account(entry.dn, password), tell)
        except Refusal as refusal:
            reason = account.why_refused(refusal, entry, self._host.clock())
            if reason is Reason.NONE:
                raise
            if reason is Reason.WRONG_PASSWORD:
                tell("the service account works, but the user's password is not correct")
            tell(f"bind as {entry.dn}: {refusal}")
            return reason
        tell(f"bind as {entry.dn}: success")
        try:
            ended = account.ended(entry, self._host.clock())
            if ended is not Reason.NONE:
                tell(f"the directory accepts the password, but an attribute of the entry says: {ended}")
                return ended
            return Reason.PASSWORD_MUST_CHANGE if await _must_change(connection, entry) else Reason.NONE
        finally:
            connection.close()


async def _must_change(connection: Connection, entry: Entry) -> bool:
    """Return whether the directory requires the user to change the password before anything else.

    A server may accept the bind of such a user. So, if the server has a password policy, this function reads the user's
    own entry over the connection. If the password must be changed, the server refuses to return the entry.
    """
    if account.must_change(entry):
        return True
    if not connection.has_policy:
        return False
    try:
        await connection.read(entry.dn, ["1.1"])
    except Refusal as refusal:
        return refusal.code == INSUFFICIENT_ACCESS and "restricted" in str(refusal)
    return False
