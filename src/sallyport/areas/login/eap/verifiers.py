"""Verifiers check the credentials in an EAP conversation. `Local` uses the passwords in memory. `Directory` asks the
directory, and winbind for MS-CHAP. `WithCloud` looks for the users of certificates in the imported cloud
directories too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Protocol, runtime_checkable

from sallyport.areas.domains.domain import Domain
from sallyport.areas.login.first import cloud
from sallyport.areas.login.first.checker import CODE_LENGTHS, DirectoryAccount, Tell, silent
from sallyport.areas.login.first.password import is_password, known, made_with, split_digits
from sallyport.areas.login.identity import host_realm
from sallyport.areas.login.login import NOTHING, Found, Login, Reason
from sallyport.areas.login.pipeline import Pipeline
from sallyport.areas.mfa.provider import Code
from sallyport.areas.policy.bypass.match import requested_station_by_eap
from sallyport.areas.users.service import Missing
from sallyport.areas.users.user import User
from sallyport.base.mac import mac_key, spellings
from sallyport.base.text import fold, password_text
from sallyport.radius.eap.certificate_names import NamedBy
from sallyport.radius.eap.model import Certificate, Chap, MsChap, Password, Question
from sallyport.radius.mschap import MsChap1, MsChap2, peer_names
from sallyport.radius.password import chap_holds

_OPEN: Final = frozenset({Reason.NONE, Reason.UNKNOWN_USER})
NO_LOGIN_NAMES: Final = frozenset({NamedBy.SID, NamedBy.OBJECT_ID, NamedBy.SERIAL})
"""The fields of a certificate whose value is no login name. A user whose login name looks like such a value is another
user."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to a question about credentials.

    reason: the result; NONE if the credentials are correct. found: the user's groups and reply attributes. code: the
    code that followed the password, or None. hash_hash, hashed: values for the answer to a correct MS-CHAPv2 response,
    see `radius.eap.model.Verdict`. stamp: for an endpoint user, a value that changes with the password; for a
    directory's user, a value that changes with the directory's configuration; for a cloud account, a value that
    identifies the account; for a station, an empty text. user: the user's name without its realm, if the certificate
    names the user by another identifier; otherwise empty. account: the account of the directory that a certificate
    names, or None. detail: a text for the event.
    """

    reason: Reason
    found: Found = NOTHING
    code: Code | None = None
    hash_hash: bytes = b""
    hashed: bytes = b""
    stamp: str = ""
    user: str = ""
    account: DirectoryAccount | None = None
    detail: str = ""


class Verifier(Protocol):
    """A check of the credentials that one domain's users send by EAP."""

    @property
    def checkable(self) -> frozenset[type[Question]]:
        """The kinds of credentials that the verifier can check. Every verifier must also answer `Certificate` and
        `Resumed`."""

    def at_once(self, user: str, question: Question) -> Finding | None:
        """Check the credentials without waiting. Return None if the caller must await `verify`. user: the name without
        its realm."""

    async def verify(self, user: str, question: Question) -> Finding:
        """Check the credentials. user: the name without its realm. Raises StoreError, SecretError."""


class Local:
    """The verifier of endpoint users. steps: the pipeline, which looks up users and their codes."""

    checkable: Final = frozenset({Password, Chap, MsChap})

    def __init__(self, steps: Pipeline, domain: Domain) -> None:
        self._steps = steps
        self._domain = domain

    def at_once(self, user: str, question: Question) -> Finding | None:
        if isinstance(question, Certificate) and question.by in NO_LOGIN_NAMES:
            return Finding(Reason.UNKNOWN_USER)
        person = self._steps.users.cached(self._domain.id, user)
        return None if person is Missing.MISSING else self._examined(person, question)

    async def verify(self, user: str, question: Question) -> Finding:
        if isinstance(question, Certificate) and question.by in NO_LOGIN_NAMES:
            return Finding(Reason.UNKNOWN_USER)
        return self._examined(await self._steps.user(self._domain, user), question)

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
        for split in splits if self._steps.takes_codes(self._domain, user.name) else ():
            if split is not None and is_password(split[0], user):
                return replace(finding, code=Code(split[1].decode()))
        return Finding(Reason.WRONG_PASSWORD)


class Station:
    """The verifier of a station that a domain admits by its MAC address. The station sends the address as user name,
    and usually as password too.

    key: the address as 12 hex digits. word: the password that all stations behind the client have, or None. The end of
    the login decides whether the station is still admitted.
    """

    checkable: Final = frozenset({Chap})

    def __init__(self, key: str, word: bytes | None) -> None:
        self._key = key
        self._passwords = [each.encode() for name in spellings(key) for each in (name, name.upper())]
        if word is not None:
            self._passwords.append(word)

    def is_of(self, login: Login) -> bool:
        """Return whether a request is still about this station. Each round of a conversation must be about it.
        Otherwise the login would be decided for another station, or for a user without a checked password."""
        return requested_station_by_eap(login.arrival, login.method) == self._key

    async def verify(self, user: str, question: Question) -> Finding:
        return self.at_once(user, question)

    def at_once(self, user: str, question: Question) -> Finding:
        if not isinstance(question, Chap):
            return Finding(Reason.METHOD_UNFIT)
        if mac_key(user) != self._key:
            return Finding(Reason.UNKNOWN_USER)
        right = any(chap_holds(question.value, password, question.challenge) for password in self._passwords)
        return Finding(Reason.NONE if right else Reason.WRONG_PASSWORD)


@runtime_checkable
class Binds(Protocol):
    """The methods of `login.first.ldap.checker.Ldap` that a verifier calls."""

    @property
    def checks_mschap(self) -> bool:
        """Whether winbind is configured, so that MS-CHAP can be checked."""

    @property
    def code_digits(self) -> int:
        """The number of digits of a code that users append to the password."""

    async def bind(self, user: str, password: str, tell: Tell) -> tuple[Reason, Found]:
        """Check a user's password."""

    async def ask_winbind(
        self, user: str, attempt: MsChap1 | MsChap2, name: bytes, tell: Tell
    ) -> tuple[bytes | Reason, Found]:
        """Check an MS-CHAP response. Return the hash of the password's NT hash, or the reason for a refusal. The second
        value has the user's groups."""

    async def identify(
        self, user: str, tell: Tell, *, by_sid: bool = False
    ) -> tuple[Reason, Found, DirectoryAccount | None]:
        """Check whether a user exists and may log in, without a password. Return the account too."""


class Directory:
    """The verifier of a directory's users.

    steps: the pipeline, which knows the codes of users.
    """

    def __init__(self, directory: Binds, steps: Pipeline, domain: Domain) -> None:
        self._directory = directory
        self._steps = steps
        self._domain = domain
        self._stamp = steps.first.stamp(domain)  # after a change, the same name may belong to another person

    @property
    def checkable(self) -> frozenset[type[Question]]:
        return frozenset({Password, MsChap} if self._directory.checks_mschap else {Password})

    def at_once(self, user: str, question: Question) -> None:
        """Return None, because each question must wait for the directory."""

    async def verify(self, user: str, question: Question) -> Finding:
        """Check the credentials with at most one bind, see `Ldap.check`."""
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
        by_sid = isinstance(question, Certificate) and question.by is NamedBy.SID
        if isinstance(question, Certificate) and question.by in NO_LOGIN_NAMES and not by_sid:
            return Finding(Reason.UNKNOWN_USER)
        reason, found, account = await self._directory.identify(user, silent, by_sid=by_sid)
        if reason is Reason.UNKNOWN_USER and self._may_be_computer(user, question):
            reason, found, account = await self._directory.identify(f"host/{user}", silent)
        named = account.name if by_sid and account is not None else ""
        return Finding(reason, found, user=named, account=account)

    def _may_be_computer(self, user: str, question: Question) -> bool:
        """Return whether a name is a certificate's DNS name in one of the domain's realms. Such a name may be the host
        name of a Windows computer. The directory has the computer's account under another name."""
        by_host = isinstance(question, Certificate) and question.by is NamedBy.DNS
        return by_host and fold(host_realm(user)) in self._domain.realm_keys

    async def _password(self, user: str, given: bytes) -> Finding:
        code = None
        split = split_digits(given, self._directory.code_digits)
        if split is not None and await self._steps.has_codes(self._domain, user):
            given, code = split[0], Code(split[1].decode())
        reason, found = await self._directory.bind(user, password_text(given), silent)
        return Finding(reason, found, code) if reason is Reason.NONE else Finding(reason)


class WithCloud:
    """A verifier that looks for the user of a certificate in the domain's cloud directories, if another verifier does
    not know the user. If the other verifier knows the user, but the whole principal name is that of a cloud account
    that is not active, the user is refused. known: the other verifier."""

    def __init__(self, known: Verifier, steps: Pipeline, domain: Domain) -> None:
        self._known = known
        self._steps = steps
        self._domain = domain
        self.checkable = known.checkable

    def at_once(self, user: str, question: Question) -> Finding | None:
        finding = self._known.at_once(user, question)
        is_open = isinstance(question, Certificate) and finding is not None and finding.reason in _OPEN
        return None if is_open else finding

    async def verify(self, user: str, question: Question) -> Finding:
        finding = await self._known.verify(user, question)
        if finding.reason not in _OPEN or not isinstance(question, Certificate):
            return finding
        principals, domain = self._steps.principals, self._domain
        identifier, at = cloud.identifier_of(question, domain), principals.clock()
        if not identifier or (finding.reason is Reason.NONE and not identifier.startswith("upn:")):
            return finding
        since = cloud.oldest(domain, at)
        account = await principals.account(domain.id, identifier, domain.realm_keys, since=since)
        if finding.reason is Reason.NONE:
            # The certificate was issued to this account, and not to another user with the same name without realm.
            reason = Reason.NONE if account.state is None else cloud.reason_of_status(account.state)
            return finding if reason is Reason.NONE else Finding(reason)
        if account.is_unclear:
            return Finding(Reason.ACCOUNT_UNCLEAR, detail=f"accounts: {account.name}")
        if account.state is None:
            return finding
        reason = cloud.reason_of(principals.current(account.state), domain, at)
        found = cloud.directory_account(account, question)
        return Finding(reason, stamp=cloud.stamp_of(account.state), user=account.user, account=found)


def _mschap(question: MsChap, user: User, finding: Finding) -> Finding:
    key, name = made_with(user, question.attempt, question.hashed)
    if key is None:
        return Finding(Reason.WRONG_PASSWORD)
    return replace(finding, hash_hash=key.hash_hash, hashed=name)
