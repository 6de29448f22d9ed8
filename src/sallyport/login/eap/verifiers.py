"""Verifiers answer the questions of a conversation: for `local` from the passwords in memory, for `ldap` by asking the
directory and winbind."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from typing import Final, Protocol, runtime_checkable

from sallyport.base.text import fold
from sallyport.endpoints.service import Missing
from sallyport.endpoints.user import User
from sallyport.login.first.checker import CODE_LENGTHS, Tell, silent
from sallyport.login.first.password import is_password, known, made_with, split_digits
from sallyport.login.identity import host_realm
from sallyport.login.login import NOTHING, Found, Reason
from sallyport.mfa.provider import Code
from sallyport.radius.eap.certificate import NamedBy
from sallyport.radius.eap.model import Certificate, Chap, MsChap, Password, Question
from sallyport.radius.mschap import MsChap1, MsChap2, peer_names
from sallyport.radius.packet import as_text
from sallyport.radius.password import chap_holds


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to a question.

    reason: NONE if the credentials are right. code: the code behind the password. hash_hash, hashed: of a right
    MS-CHAPv2 response, see `radius.eap.model.Verdict`. stamp: changes with each change of the password, or, for a
    directory, of its configuration; empty for a station.
    """

    reason: Reason
    found: Found = NOTHING
    code: Code | None = None
    hash_hash: bytes = b""
    hashed: bytes = b""
    stamp: str = ""


class Verifier(Protocol):
    """Answers questions about the users of one domain. checkable: the kinds of questions that it answers."""

    @property
    def checkable(self) -> frozenset[type[Question]]:
        """Return the kinds of questions that it can answer, in addition to those about users alone."""

    def at_once(self, user: str, question: Question) -> Finding | None:
        """Return the answer if it needs no wait. user: the name without its realm."""

    async def verify(self, user: str, question: Question) -> Finding:
        """Answer a question. user: the name without its realm. Raises StoreError, SecretError."""


class Local:
    """Passwords in memory. cached: returns a user in memory; load: finds any user. takes_codes: whether a code may
    follow a user's password."""

    checkable: Final = frozenset({Password, Chap, MsChap})

    def __init__(
        self,
        cached: Callable[[str], User | Missing | None],
        load: Callable[[str], Awaitable[User | None]],
        takes_codes: Callable[[str], bool],
    ) -> None:
        self._cached = cached
        self._load = load
        self._takes_codes = takes_codes

    def at_once(self, user: str, question: Question) -> Finding | None:
        """See `Verifier`."""
        person = self._cached(user)
        return None if person is Missing.MISSING else self._examined(person, question)

    async def verify(self, user: str, question: Question) -> Finding:
        """See `Verifier`."""
        return self._examined(await self._load(user), question)

    def _examined(self, person: User | None, question: Question) -> Finding:
        if person is None:
            return Finding(Reason.UNKNOWN_USER)
        finding = Finding(Reason.NONE, known(person), stamp=person.stamp)
        if isinstance(question, Password):
            return self._password(question, person, finding)
        if isinstance(question, Chap):
            right = any(chap_holds(question.value, password, question.challenge) for password in person.passwords)
            return finding if right else Finding(Reason.WRONG_PASSWORD)
        return _mschap(question, person, finding) if isinstance(question, MsChap) else finding

    def _password(self, question: Password, user: User, finding: Finding) -> Finding:
        if is_password(question.password, user):
            return finding
        splits = [split_digits(question.password, length) for length in CODE_LENGTHS]
        for split in splits if self._takes_codes(user.name) else ():
            if split is not None and is_password(split[0], user):
                return replace(finding, code=Code(split[1].decode()))
        return Finding(Reason.WRONG_PASSWORD)


class Station:
    """A station that is admitted by its MAC address, which is also its password. passwords: the address in all
    spellings. listed: whether it is on the list of the domain."""

    checkable: Final = frozenset({Chap})

    def __init__(self, passwords: Collection[bytes], listed: Callable[[], bool]) -> None:
        self._passwords = passwords
        self._listed = listed

    async def verify(self, user: str, question: Question) -> Finding:
        """See `Verifier`."""
        return self.at_once(user, question)

    def at_once(self, user: str, question: Question) -> Finding:
        """See `Verifier`."""
        if not isinstance(question, Chap):
            return Finding(Reason.METHOD_UNFIT)
        if not self._listed():
            return Finding(Reason.UNKNOWN_USER)
        right = any(chap_holds(question.value, password, question.challenge) for password in self._passwords)
        return Finding(Reason.NONE if right else Reason.WRONG_PASSWORD)


@runtime_checkable
class Binds(Protocol):
    """The calls of a directory: `login.first.ldap.checker.Ldap`."""

    @property
    def checks_mschap(self) -> bool:
        """Return whether winbind is available."""

    @property
    def code_digits(self) -> int:
        """Return the number of digits of a code behind a password."""

    async def bind(self, user: str, password: str, tell: Tell) -> tuple[Reason, Found]:
        """Check a user's password."""

    async def ask_winbind(
        self, user: str, attempt: MsChap1 | MsChap2, name: bytes, tell: Tell
    ) -> tuple[bytes | Reason, Found]:
        """Return the hash of the NT hash of the password that made a response, or the reason why there is none."""

    async def look_up(self, user: str, tell: Tell) -> tuple[Reason, Found]:
        """Check whether a user may log in."""


class Directory:
    """Answers by a directory. has_codes: whether a user is known to have codes, which may follow the password. stamp:
    of its configuration: in another directory the same name is another person. realms: of the domain, without case."""

    def __init__(
        self, directory: Binds, has_codes: Callable[[str], Awaitable[bool]], stamp: str, realms: Collection[str]
    ) -> None:
        self._directory = directory
        self._has_codes = has_codes
        self._stamp = stamp
        self._realms = realms

    @property
    def checkable(self) -> frozenset[type[Question]]:
        """See `Verifier`."""
        return frozenset({Password, MsChap} if self._directory.checks_mschap else {Password})

    def at_once(self, user: str, question: Question) -> None:
        """See `Verifier`: a directory always needs a wait."""

    async def verify(self, user: str, question: Question) -> Finding:
        """See `Verifier`. One question is one bind: see `Ldap.check`."""
        return replace(await self._examined(user, question), stamp=self._stamp)

    async def _examined(self, user: str, question: Question) -> Finding:
        if isinstance(question, Password):
            return await self._password(user, question.password)
        if isinstance(question, MsChap):
            name = peer_names(question.hashed)[0]
            key, found = await self._directory.ask_winbind(user, question.attempt, name, silent)
            return Finding(key) if isinstance(key, Reason) else Finding(Reason.NONE, found, None, key, name)
        if isinstance(question, Chap):
            return Finding(Reason.METHOD_UNFIT)
        reason, found = await self._directory.look_up(user, silent)
        if reason is Reason.UNKNOWN_USER and self._may_be_computer(user, question):
            reason, found = await self._directory.look_up(f"host/{user}", silent)
        return Finding(reason, found)

    def _may_be_computer(self, user: str, question: Question) -> bool:
        """Return whether a certificate's host name belongs to a computer of the domain. Windows computers use such
        names; their directory does not."""
        by_host = isinstance(question, Certificate) and question.by is NamedBy.DNS
        return by_host and fold(host_realm(user)) in self._realms

    async def _password(self, user: str, given: bytes) -> Finding:
        code = None
        split = split_digits(given, self._directory.code_digits)
        if split is not None and await self._has_codes(user):
            given, code = split[0], Code(split[1].decode())
        reason, found = await self._directory.bind(user, as_text(given), silent)
        return Finding(reason, found, code) if reason is Reason.NONE else Finding(reason)


def _mschap(question: MsChap, user: User, finding: Finding) -> Finding:
    key, name = made_with(user, question.attempt, question.hashed)
    if key is None:
        return Finding(Reason.WRONG_PASSWORD)
    return replace(finding, hash_hash=key.hash_hash, hashed=name)
