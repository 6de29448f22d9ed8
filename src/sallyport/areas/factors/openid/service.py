"""Sign-ins with the identity providers of domains, as proofs of logins."""

import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from sallyport.areas.factors.passkeys.passkey import Person
from sallyport.areas.mfa.fields import AuthTime, OwnFields, UserIs
from sallyport.areas.mfa.provider import Strength
from sallyport.base.clock import SECOND, Clock
from sallyport.base.errors import Conflict, Forbidden
from sallyport.base.text import fold
from sallyport.outgoing.errors import ProviderError
from sallyport.outgoing.http import HttpFactory
from sallyport.outgoing.openid.client import (
    EXPIRED,
    Claims,
    Flow,
    OpenIdClient,
    ProviderDown,
    Registration,
    refusal,
)
from sallyport.store.vault import Vault

PATH: Final = "/mfa/openid"
"""The path of the redirect URIs: each domain has its own below it."""
AT_ME: Final = "/me/openid"
"""The path of the pages that use a sign-in for /me. Providers do not know it: the redirect URI is the same."""
ME: Final = "me"
"""What the ids of sign-ins at /me begin with. Those of step-ups are hexadecimal."""
NO_PROVIDER: Final = "the domain has no identity provider any more: choose another factor"
OTHER_USER: Final = (
    "You have signed in as another user than the one of this login. Sign in again with the account of the login."
)
MAX_USER_LENGTH: Final = 320

log = structlog.get_logger()

Account = Callable[[int, str], Awaitable[frozenset[str]]]
"""A function that returns the case-folded user names of the active account with an object id in the cloud directories
of a domain: account(domain id, object id). Empty if there is none, or if it is unclear."""


@dataclass(frozen=True, slots=True)
class OfDomains:
    """What the sign-ins need of domains, by their ids. fields_of: returns the configuration of the provider `own`, or
    None. http_of: returns the HTTP client of the domain's tenant. account: see `Account`."""

    fields_of: Callable[[int], OwnFields | None]
    http_of: Callable[[int], HttpFactory]
    account: Account


class Asking(Protocol):
    """What a sign-in proves: a step-up (`Shown`), or a sign-in at /me (`SignInAtMe`)."""

    @property
    def id(self) -> str:
        """The id, which differs from those of all others."""

    @property
    def domain_id(self) -> int:
        """The domain of the person."""

    @property
    def user(self) -> str:
        """The name of the person, as logins have it."""


@dataclass(frozen=True, slots=True)
class SignInAtMe:
    """A sign-in at /me that asks for a proof. session_id: its id in the store."""

    session_id: int
    domain_id: int
    user: str

    @property
    def id(self) -> str:
        """The id, which is not one of a step-up."""
        return f"{ME}{self.session_id}"


@dataclass(frozen=True, slots=True)
class State:
    """The parameter `state` of a sign-in. asking_id: what the sign-in proves. began_at: the time in seconds. The domain
    and the browser are not in it, but its last part, a keyed hash, covers them."""

    asking_id: str
    began_at: int
    text: str

    @classmethod
    def read(cls, text: str) -> "State | None":
        """Return the state of a parameter, or None if it is malformed. The caller checks the keyed hash."""
        parts = text.split(".")
        if len(text) > 200 or len(parts) != 4 or not parts[1].isdecimal() or not parts[1].isascii():
            return None
        return cls(parts[0], int(parts[1]), text)


class CompanySignIns:
    """Sign-ins with the identity providers of domains. site: the base URL of the pages of people, or empty."""

    def __init__(self, of_domains: OfDomains, vault: Vault, site: str, clock: Clock) -> None:
        self._of_domains = of_domains
        self._vault = vault
        self._site = site.rstrip("/")
        self._clock = clock
        self._clients: dict[int, tuple[OwnFields, OpenIdClient]] = {}

    async def has(self, person: Person) -> bool:
        """Return whether the person's domain has an identity provider. Whether the person has an account there is known
        only when the person signs in."""
        return self._fields(person.domain_id) is not None

    def strongest(self, domain_id: int) -> Strength | None:
        """Return the highest strength that a sign-in of a domain can prove, or None if the domain has none."""
        fields = self._fields(domain_id)
        if fields is None:
            return None
        return Strength.PHISHING_RESISTANT if fields.resistantAmr else Strength.TWO_CHANNELS

    async def address(self, asking: Asking, browser: str) -> str:
        """Return the address at which the person signs in. Raises Conflict, ProviderDown."""
        fields = self._demanded(asking.domain_id)
        now = self._clock() // SECOND
        begun = f"{asking.id}.{now}.{secrets.token_urlsafe(16)}"
        state = State(asking.id, now, f"{begun}.{self._mac(begun, asking.domain_id, fields, browser)}")
        client, registration = self._client(asking.domain_id, fields)
        return await client.address(registration, self._flow(asking.domain_id, fields, state, asking.user))

    async def prove(
        self, asking: Asking, domain: str, browser: str, answer: Mapping[str, str], source: str
    ) -> Strength:
        """Check the sign-in with which a browser returns, and return the strength of the proof by itself.

        domain: the id of the domain in the redirect URI. answer: the parameters of the redirect. source: the address
        of the browser.

        Raises Forbidden if the sign-in belongs to another login, browser or provider, or to another user. Raises
        Unauthenticated if the provider refuses it, or if its answer is not valid. Raises Conflict, ProviderDown.
        """
        fields = self._demanded(asking.domain_id)
        state = State.read(answer.get("state", ""))
        if state is None or state.asking_id != asking.id or domain != str(asking.domain_id):
            raise Forbidden(EXPIRED)
        begun, _, mac = state.text.rpartition(".")
        if not hmac.compare_digest(mac.encode(), self._mac(begun, asking.domain_id, fields, browser).encode()):
            raise Forbidden(EXPIRED)
        client, registration = self._client(asking.domain_id, fields)
        flow = self._flow(asking.domain_id, fields, state, asking.user)
        claims, _ = await client.claims(registration, flow, answer, source)
        self._check(registration, fields, claims, state)
        await self._check_user(asking, fields, claims)
        return _strength(fields, claims)

    def _check(self, registration: Registration, fields: OwnFields, claims: Claims, state: State) -> None:
        from sallyport.outgoing.openid.id_token import TokenError, check_methods, check_time

        try:
            check_time(claims, state.began_at, is_required=fields.authTime is AuthTime.REQUIRED)
            check_methods(claims, amr=_listed(fields.amr), acr=_listed(fields.acr))
        except TokenError as error:
            raise refusal(registration, str(error)) from None

    async def _check_user(self, asking: Asking, fields: OwnFields, claims: Claims) -> None:
        """Check that the user of the provider is the user of the login. Raises Forbidden."""
        given = claims.get(fields.userClaim)
        if isinstance(given, str) and 0 < len(given) <= MAX_USER_LENGTH:
            if fields.userIs is UserIs.DIRECTORY_ID:
                names = await self._of_domains.account(asking.domain_id, fold(given))
            else:
                name, suffix = fold(given), fold(fields.userSuffix)
                names = frozenset({name.removesuffix(suffix)} if name.endswith(suffix) else ())
            if fold(asking.user) in names - {""}:
                return
        log.warning("identity_of_another_user", domain=asking.domain_id, user=asking.user, claim=fields.userClaim)
        raise Forbidden(OTHER_USER)

    # --- the provider of a domain -----------------------------------------------------------------------------

    def _fields(self, domain_id: int) -> OwnFields | None:
        """Return the fields of a domain with an identity provider, or None. The client of a removed one is dropped."""
        fields = self._of_domains.fields_of(domain_id) if self._site else None
        if fields is None or not fields.has_provider:
            self._clients.pop(domain_id, None)
            return None
        return fields

    def _demanded(self, domain_id: int) -> OwnFields:
        fields = self._fields(domain_id)
        if fields is None:
            raise Conflict(NO_PROVIDER)
        return fields

    def _client(self, domain_id: int, fields: OwnFields) -> tuple[OpenIdClient, Registration]:
        known = self._clients.get(domain_id)
        if known is None or known[0] != fields:
            known = self._clients[domain_id] = fields, OpenIdClient(self._of_domains.http_of(domain_id), self._clock)
        secret = fields.clientSecret.get_secret_value
        title = "The company's identity provider"
        return known[1], Registration(f"domain {domain_id}", title, fields.issuer, fields.clientId, secret, SCOPES)

    async def check(self, domain_id: int) -> str:
        """Check that the identity provider of a domain can be reached and has what a sign-in needs. Return the result
        in words. Raises ProviderError."""
        try:
            client, registration = self._client(domain_id, self._demanded(domain_id))
            await client.look(registration)
        except ProviderDown as error:
            raise ProviderError(f"identity provider: {error.reason}") from None
        except Conflict as error:
            raise ProviderError(str(error)) from None
        return f"the identity provider answers, and must allow the redirect URI {self.redirect_uri(domain_id)}"

    # --- values that are derived ------------------------------------------------------------------------------

    def redirect_uri(self, domain_id: int) -> str:
        """Return the redirect URI of a domain, to be registered at its identity provider."""
        return f"{self._site}{PATH}/{domain_id}"

    def _flow(self, domain_id: int, fields: OwnFields, state: State, user: str) -> Flow:
        more = {"prompt": "login"}
        if fields.authTime is AuthTime.REQUIRED:
            more["max_age"] = "0"
        if fields.acr:
            more["acr_values"] = " ".join(_listed(fields.acr))
        if fields.userIs is UserIs.NAME:
            more["login_hint"] = f"{user}{fields.userSuffix}"
        nonce = self._vault.digest(state.text.encode(), "openid/nonce")
        verifier = self._vault.digest(state.text.encode(), "openid/verifier")
        return Flow(self.redirect_uri(domain_id), state.text, nonce, verifier, more)

    def _mac(self, begun: str, domain_id: int, fields: OwnFields, browser: str) -> str:
        """Return the keyed hash that binds a state to its domain, its provider and its browser."""
        covered = "\n".join((begun, str(domain_id), fields.issuer, fields.clientId, browser))
        return self._vault.digest(covered.encode(), "openid/state")


SCOPES: Final = ("openid", "profile")


def _strength(fields: OwnFields, claims: Claims) -> Strength:
    from sallyport.outgoing.openid.id_token import methods_of

    resistant = methods_of(claims) & frozenset(_listed(fields.resistantAmr))
    return Strength.PHISHING_RESISTANT if resistant else Strength.TWO_CHANNELS


def _listed(words: str) -> list[str]:
    return [each for each in words.split(",") if each]
