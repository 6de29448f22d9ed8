"""Sign in to the console, by an access token, a password with a code, or an identity provider."""

import json
import secrets
from collections.abc import Mapping
from functools import partial
from typing import Final

import trio

from sallyport.areas.signin import repo
from sallyport.areas.signin.administrators import MAX_PASSWORD_LENGTH
from sallyport.areas.signin.openid import OpenId, Started
from sallyport.areas.signin.person import Administrator
from sallyport.areas.signin.sessions import Browser, record
from sallyport.areas.tenancy.guesses import Guesses, network_of
from sallyport.areas.tenancy.passwords import checked
from sallyport.base.actor import Actor, acting_as
from sallyport.base.clock import Clock
from sallyport.base.errors import Forbidden, SecretError, TooMany, Unauthenticated
from sallyport.base.fair import FairLimiter, PerMinute
from sallyport.base.secret import token_hash
from sallyport.base.text import fold_name, plain_code
from sallyport.base.totp import matching_step
from sallyport.base.wire import JSON
from sallyport.store.audit import INSTALLATION
from sallyport.store.model import Store, Tx
from sallyport.store.vault import Vault
from sallyport.web.scope import READERS, Authenticator, Role

REFUSED: Final = "the name, the password or the code is not right"
TOO_MANY: Final = "too many failed sign-ins: try again in a minute"
REFUSED_TOKEN: Final = "the token is not valid"  # noqa: S105  a message
NO_ROLE: Final = "your account has no role here: ask an administrator for a group that gives you one"
MAX_AGENT_LENGTH: Final = 200
MAX_SESSIONS: Final = 50
"""Maximum number of sessions of one token, administrator or identity. The next sign-in ends the oldest of them."""
MAX_REFUSALS: Final = 60
"""Maximum number of audit entries a minute about failed sign-ins without the name of an administrator."""


class SignIns:
    """The ways to begin a session of the console. tokens: the access tokens. open_id: the identity providers. guesses:
    the rate limit for failed attempts of each address. names: the rate limit for failed attempts with each name; it has
    a table of its own, so that many addresses cannot displace a name. longest_us: the time after which every session
    ends."""

    def __init__(
        self,
        store: Store,
        vault: Vault,
        tokens: Authenticator,
        guesses: Guesses,
        names: Guesses,
        open_id: OpenId,
        clock: Clock,
        *,
        longest_us: int,
    ) -> None:
        self._store = store
        self._vault = vault
        self._tokens = tokens
        self._guesses = guesses
        self._names = names
        self._refusals = PerMinute[None](MAX_REFUSALS, "entries about failed sign-ins", clock)
        self._left_out = 0
        self._open_id = open_id
        self._clock = clock
        self.longest_us = longest_us
        self._hashing: FairLimiter[str] = FairLimiter(1)

    async def by_token(self, token: str, browser: Browser) -> str:
        """Sign in with an access token, and return the key of the new session.

        Raises Unauthenticated if the token is not valid, or does not belong to a person. Raises TooMany if there were
        too many failed attempts from the address.
        """
        self._check_rate(browser, "")
        try:
            caller = await self._tokens.authenticate(token.strip(), browser.source)
            if caller.role not in READERS:
                raise Unauthenticated(REFUSED_TOKEN)
        except Unauthenticated:
            await self._fail(browser, "token")
            raise Unauthenticated(REFUSED_TOKEN) from None
        key, at = _new_key(), self._clock()

        def transaction(tx: Tx) -> None:
            self._add(tx, key, browser, at, token_id=caller.token_id)
            record(tx, "console.sign-in", f"token {caller.token_id} {caller.name}", caller.tenant_id, browser, at)

        with acting_as(caller.actor):
            await self._store.write(transaction)
        return key

    async def by_password(self, name: str, password: str, code: str, browser: Browser) -> str:
        """Sign in as a local administrator, and return the key of the new session. The caller must check that the
        connection is encrypted or local.

        Unauthenticated: the name, the password or the code is not right. The error is the same for all three. TooMany:
        the address, or the name from other addresses, has failed too often.
        """
        name_key = fold_name(name)
        self._check_rate(browser, name_key)
        who, held = await self._store.read(partial(_administrator, name_key=name_key))
        async with self._hashing.slot(browser.source):
            self._check_rate(browser, name_key)  # others may have failed during the wait
            await self._take_attempt(browser, name_key)  # before the check, so that concurrent attempts count
            step, new_hash = await self._checked(held, password, code)
        key, at = _new_key(), self._clock()

        def transaction(tx: Tx) -> bool:
            if who is None or held is None or step is None or repo.secrets(tx, who.id) != held:
                return False
            if not repo.spend(tx, who.id, step):
                return False
            if new_hash:
                repo.set_password(tx, self._vault, who.id, new_hash)
            for bucket, limit in self._limits(browser, name_key):
                repo.return_attempt(tx, bucket, limit.refill_us)
            tenant_id = who.tenant_id or repo.only_tenant(tx)
            self._add(tx, key, browser, at, administrator_id=who.id, tenant_id=tenant_id)
            record(tx, "console.sign-in", who.target, who.tenant_id or INSTALLATION, browser, at)
            return True

        with acting_as(Actor("administrator", who.name if who else "")):
            if step is None or not await self._store.write(transaction):
                target, tenant = (who.target, who.tenant_id) if who else ("administrator", None)
                for bucket, limit in self._limits(browser, name_key):
                    limit.tell(bucket)
                await self._refuse(browser, target, tenant or INSTALLATION, is_known=who is not None)
                raise Unauthenticated(REFUSED)
        for bucket, limit in self._limits(browser, name_key):
            limit.forgive(bucket, at)
        return key

    async def leave(self, started: Started, browser: Browser) -> str:
        """Return the address of an identity provider at which the person signs in. Raises NotFound, ProviderDown.
        Raises TooMany if there were too many failed attempts from the address."""
        self._check_rate(browser, "")
        return await self._open_id.address(started)

    async def by_identity(self, started: Started, answer: Mapping[str, str], browser: Browser) -> str:
        """Sign in a person who has signed in at an identity provider, and return the key of the new session. answer:
        the parameters with which the browser has returned.

        Raises Forbidden if the parameters do not belong to the sign-in, or if the person has no role here. Raises
        Unauthenticated if the provider refuses the sign-in, or if its answer is not valid. Raises TooMany if there were
        too many failed attempts from the address. Raises NotFound, ProviderDown.
        """
        self._check_rate(browser, "")
        try:
            who = await self._open_id.identity(started, answer, browser.source)
        except Unauthenticated:
            await self._fail(browser, f"identity provider {started.provider}")
            raise
        key, at = _new_key(), self._clock()
        given = self._open_id.role_of(who.issuer, who.groups)
        named = f"{who.name} ({who.subject})"

        def transaction(tx: Tx) -> bool:
            known = repo.identity_id(tx, who.issuer, who.subject)
            tenant_id = None if given is None else repo.tenant_id(tx, given.org or 0, given.tenant or 0)
            if given is None or (tenant_id is None and given.role != Role.INSTALLATION.value):
                if known is not None:
                    repo.end_of_identity(tx, known)
                return False
            members = json.dumps(sorted(who.groups), ensure_ascii=True)
            owner = repo.put_identity(
                tx,
                who.issuer,
                who.subject,
                name=who.name,
                role=given.role,
                tenant_id=tenant_id,
                member_of=members,
                at=at,
            )
            acts_in = tenant_id or repo.only_tenant(tx)
            session_id = self._add(tx, key, browser, at, identity_id=owner, tenant_id=acts_in)
            repo.set_id_token(tx, self._vault, session_id, who.id_token)
            record(tx, "console.sign-in", f"identity {owner} {named}", tenant_id or INSTALLATION, browser, at)
            return True

        with acting_as(Actor("identity", named)):
            is_in = await self._store.write(transaction)
        if not is_in:
            await self._fail(browser, f"identity of {started.provider}: {named}")
            raise Forbidden(NO_ROLE)
        return key

    async def _checked(self, held: repo.Secrets | None, password: str, code: str) -> tuple[int | None, str]:
        """Return the time step of the code if the password and the code are right, and the hash that replaces an
        outdated one. Without an administrator, it takes the same time."""
        octets = password[: MAX_PASSWORD_LENGTH + 1].encode(errors="surrogatepass")
        try:
            known, seed = ("", "") if held is None else (held.open_password(self._vault), held.open_seed(self._vault))
        except SecretError:
            known, seed = "", ""
        is_right, new_hash = await trio.to_thread.run_sync(checked, octets, known)
        digits = plain_code(code)
        if not known or not digits.isascii():
            return None, ""
        step = matching_step(seed, digits, self._clock())
        return (step if is_right else None), new_hash

    def _add(
        self,
        tx: Tx,
        key: str,
        browser: Browser,
        at: int,
        *,
        token_id: int | None = None,
        administrator_id: int | None = None,
        identity_id: int | None = None,
        tenant_id: int | None = None,
    ) -> int:
        own = [each.id for each in repo.sessions_of(tx, token_id, administrator_id, identity_id)]
        for session_id in own[MAX_SESSIONS - 1 :]:
            repo.end(tx, session_id)
        return repo.add_session(
            tx,
            token_hash(key),
            token_id=token_id,
            administrator_id=administrator_id,
            identity_id=identity_id,
            tenant_id=tenant_id,
            source=browser.source,
            agent=browser.agent[:MAX_AGENT_LENGTH],
            at=at,
            ends_at=at + self.longest_us,
        )

    def _check_rate(self, browser: Browser, name_key: str) -> None:
        now = self._clock()
        if any(limit.too_many(bucket, now) for bucket, limit in self._limits(browser, name_key)):
            raise TooMany(TOO_MANY)

    def _limits(self, browser: Browser, name_key: str) -> list[tuple[str, Guesses]]:
        """Return the limits of a sign-in, each with the name of its bucket. name_key: empty for a sign-in without a
        password, which has no limit of a name."""
        limits = [(network_of(browser.source), self._guesses)]
        if name_key and not browser.is_local:
            limits.append((_of_name(name_key), self._names))
        return limits

    async def _take_attempt(self, browser: Browser, name_key: str) -> None:
        """Count an attempt to sign in with a password, in the store and in memory. The store's count is exact over all
        nodes. The count in memory refuses further attempts without a write; the other nodes hear only of failures.
        Raises TooMany."""
        at, limits = self._clock(), self._limits(browser, name_key)

        def transaction(tx: Tx) -> None:
            for bucket, limit in limits:
                if not repo.take_attempt(tx, bucket, limit.burst, limit.refill_us, at):
                    raise TooMany(TOO_MANY)

        await self._store.write(transaction)
        for bucket, limit in limits:
            limit.count(bucket, at)

    async def _fail(self, browser: Browser, target: str) -> None:
        """Count a failed sign-in of an address, and write it to the audit trail."""
        self._guesses.fail(browser.source, self._clock())
        await self._refuse(browser, target, INSTALLATION)

    async def _refuse(self, browser: Browser, target: str, tenant_id: int, *, is_known: bool = False) -> None:
        """Write a failed sign-in to the audit trail. If no administrator has the typed name, the entry does not contain
        the name, because people may type a password into this field.

        is_known: whether an administrator has the name. The name's limit then bounds the number of entries. Otherwise
        at most MAX_REFUSALS entries a minute are written, and the next entry tells how many are left out.
        """
        try:
            if not is_known:
                self._refusals.admit(None)
        except TooMany:
            self._left_out += 1
            return
        at, left_out, self._left_out = self._clock(), self._left_out, 0
        more: dict[str, JSON] = {"leftOut": [None, left_out]} if left_out else {}
        with acting_as(Actor("service")):
            await self._store.write(lambda tx: record(tx, "console.refuse", target, tenant_id, browser, at, more))


def _new_key() -> str:
    return secrets.token_urlsafe(32)


def _of_name(name_key: str) -> str:
    """Return the key of a name in the rate limit. It cannot be confused with an address."""
    return f"name {token_hash(name_key)}"


def _administrator(tx: Tx, name_key: str) -> tuple[Administrator | None, repo.Secrets | None]:
    who = repo.administrator(tx, name_key)
    return who, None if who is None else repo.secrets(tx, who.id)
