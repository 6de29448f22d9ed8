"""OpenID Connect with the identity providers of the configuration file (`outgoing.openid`).

    started = Started.new("company", next_path, now)
    address = await open_id.address(started)             # the browser goes there, and returns with a code
    who = await open_id.identity(started, code)

`Started` has everything that belongs to one sign-in. The browser keeps it in a cookie. The state, the nonce and the
code verifier are derived from its random key, so only the browser that has begun a sign-in can finish it. Any node can
finish it, because the service keeps nothing.

Each provider has a redirect URI of its own, so that the code of one provider is never sent to another (RFC 9700 section
4.4).
"""

import hmac
import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import quote, unquote

from sallyport.base.clock import SECOND, Clock
from sallyport.base.errors import NotFound
from sallyport.outgoing.http import HttpFactory
from sallyport.outgoing.openid.client import Flow, OpenIdClient, Registration, base64, refusal
from sallyport.settings.identity_provider import GroupRole, IdentityProvider

if TYPE_CHECKING:
    from sallyport.outgoing.openid.id_token import Identity

PATH: Final = "/sign-in/with/{provider}"
"""The path at which a sign-in through a provider begins."""
RETURN: Final = "/sign-in/with/{provider}/done"
"""The path of the redirect URI."""
STARTED_S: Final = 600
"""Seconds in which a person must sign in at the provider."""
SKEW_S: Final = 60
"""Maximum difference between the clocks of two nodes, in seconds. Another node may finish a sign-in."""
MAX_PATH_LENGTH: Final = 3000
"""Maximum length of the path in the cookie. Browsers drop a cookie of more than 4096 octets."""


@dataclass(frozen=True, slots=True)
class Started:
    """A sign-in that has begun. key: a random key that only the browser knows. next_path: the page to open afterwards.
    began_at: the time in seconds."""

    key: str
    provider: str
    next_path: str
    began_at: int

    @classmethod
    def new(cls, provider: str, next_path: str, now: int) -> Self:
        """Return a new sign-in. now: the time in microseconds."""
        fits = len(quote(next_path)) <= MAX_PATH_LENGTH
        return cls(secrets.token_urlsafe(32), provider, next_path if fits else "/", now // SECOND)

    @classmethod
    def read(cls, text: str, now: int) -> Self | None:
        """Return the sign-in of a cookie's value. Return None if the value is malformed, or if the sign-in began too
        long ago."""
        parts = text.split(".", 3)
        if len(parts) < 4:
            return None
        key, began, provider, next_path = parts
        if len(key) < 43 or not began.isdecimal() or len(began) > 12:
            return None
        if not -SKEW_S <= now // SECOND - int(began) <= STARTED_S:
            return None
        return cls(key, provider, unquote(next_path), int(began))

    def text(self) -> str:
        """Return the value of the cookie."""
        return f"{self.key}.{self.began_at}.{self.provider}.{quote(self.next_path)}"

    @property
    def state(self) -> str:
        """The parameter `state`. It also protects the other values of the cookie."""
        return self._derived(f"state {self.provider} {self.began_at} {self.next_path}")

    @property
    def nonce(self) -> str:
        """The claim `nonce` of the ID token."""
        return self._derived("nonce")

    @property
    def verifier(self) -> str:
        """The code verifier of PKCE."""
        return self._derived("verifier")

    def _derived(self, purpose: str) -> str:
        return base64(hmac.digest(self.key.encode(), purpose.encode(), "sha256"))


class OpenId:
    """The identity providers. base: a function that returns the base URL of this service for browsers."""

    def __init__(
        self, providers: Mapping[str, IdentityProvider], http: HttpFactory, base: Callable[[], str], clock: Clock
    ) -> None:
        self._providers = providers
        self._base = base
        self._client = OpenIdClient(http, clock)

    def use(self, providers: Mapping[str, IdentityProvider]) -> None:
        """Use these providers from now on. A session whose role they no longer give ends with its next request."""
        self._providers = providers
        self._client.forget()

    def titles(self) -> list[tuple[str, str]]:
        """Return the name and the title of each provider."""
        return [(name, each.title or name) for name, each in self._providers.items()]

    def title(self, issuer: str) -> str:
        """Return the title of the provider with an issuer, or the issuer."""
        return next((each.title or name for name, each in self._providers.items() if each.issuer == issuer), issuer)

    def role_of(self, issuer: str, groups: Collection[str]) -> GroupRole | None:
        """Return the role that the configuration gives to the members of groups, or None."""
        found = next((each for each in self._providers.values() if each.issuer == issuer), None)
        return None if found is None else found.role_of(groups)

    async def address(self, started: Started) -> str:
        """Return the address of the provider at which the person signs in. Raises NotFound, ProviderDown."""
        return await self._client.address(self._registration(started.provider), self._flow(started))

    async def identity(self, started: Started, answer: Mapping[str, str], source: str) -> "Identity":
        """Redeem the code of a sign-in, and return the person. answer: the parameters with which the browser has
        returned. source: the address of the browser.

        Raises Forbidden if the parameters do not belong to the sign-in. Raises Unauthenticated if the provider refuses
        it, or if its answer is not valid. Raises NotFound, ProviderDown.
        """
        from sallyport.outgoing.openid.id_token import TokenError, identity

        registration = self._registration(started.provider)
        claims, token = await self._client.claims(registration, self._flow(started), answer, source)
        provider = self._provider(started.provider)
        try:
            return identity(claims, token, groups_claim=provider.groups_claim, name_claim=provider.name_claim)
        except TokenError as error:
            raise refusal(registration, str(error)) from None

    async def end_address(self, issuer: str, id_token: str) -> str:
        """Return the address at which the person signs out at the provider. Return "" if the provider has none, or
        cannot be reached."""
        name = next((name for name, each in self._providers.items() if each.issuer == issuer), "")
        if not name:
            return ""
        return await self._client.end_address(self._registration(name), id_token, f"{self._base()}/sign-in")

    def _flow(self, started: Started) -> Flow:
        redirect_uri = self._base() + RETURN.format(provider=started.provider)
        return Flow(redirect_uri, started.state, started.nonce, started.verifier)

    def _registration(self, name: str) -> Registration:
        each = self._provider(name)
        return Registration(name, each.title, each.issuer, each.client_id, each.secret, each.scopes)

    def _provider(self, name: str) -> IdentityProvider:
        found = self._providers.get(name)
        if found is None:
            raise NotFound("there is no such identity provider")
        return found
