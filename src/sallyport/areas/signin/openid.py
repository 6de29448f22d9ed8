"""OpenID Connect with the identity providers of the configuration file: the code flow with PKCE (RFC 7636).

    started = Started.new("company", next_path, now)
    address = await open_id.address(started)             # the browser goes there, and returns with a code
    who = await open_id.identity(started, code)

`Started` has everything that belongs to one sign-in. The browser keeps it in a cookie. The state, the nonce and the
code verifier are derived from its random key, so only the browser that has begun a sign-in can finish it. Any node can
finish it, because the service keeps nothing.

Each provider has a redirect URI of its own, so that the code of one provider is never sent to another (RFC 9700 section
4.4). The addresses of a provider come from its discovery document, over TLS. The service connects to them with the
rules of the setting `egress`. The document and the keys are cached. If a token has an unknown key, they are fetched
again, at most once in `REFRESH_S` seconds.
"""

import hashlib
import hmac
import math
import secrets
from base64 import b64encode, urlsafe_b64encode
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import quote, quote_plus, unquote, urlencode, urlsplit

import structlog
import trio

from sallyport.base.clock import SECOND, Clock
from sallyport.base.errors import ConfigError, Forbidden, NotFound, Refused, Unauthenticated
from sallyport.base.fair import FairLimiter
from sallyport.outgoing.errors import AddressNotAllowed, ProviderError
from sallyport.outgoing.http import HttpFactory, json_object, link_of, text_at
from sallyport.settings.identity_provider import GroupRole, IdentityProvider, is_private

if TYPE_CHECKING:
    from sallyport.areas.signin.id_token import Identity, Key

PATH: Final = "/sign-in/with/{provider}"
"""The path at which a sign-in through a provider begins."""
RETURN: Final = "/sign-in/with/{provider}/done"
"""The path of the redirect URI."""
STARTED_S: Final = 600
"""Seconds in which a person must sign in at the provider."""
SKEW_S: Final = 60
"""Maximum difference between the clocks of two nodes, in seconds. Another node may finish a sign-in."""
TIMEOUT_S: Final = 5.0
KEPT_S: Final = 3600
REFRESH_S: Final = 30
FAILED_S: Final = 5
"""Seconds for which a provider that cannot be reached is not tried again."""
AT_ONCE: Final = 8
"""Maximum number of codes that are redeemed at one provider at the same time."""
LONGEST_CODE: Final = 4096
LONGEST_PATH: Final = 3000
"""Maximum length of the path in the cookie. Browsers drop a cookie of more than 4096 octets."""
EXPIRED: Final = (
    "this sign-in has expired, or it began in another browser or at another address of this service: sign in again"
)
REFUSED_CODE: Final = "the identity provider does not accept this sign-in any more: sign in again"
REFUSED_PERSON: Final = "the identity provider has refused the sign-in"
REFUSED_TOKEN: Final = "the answer of the identity provider is not valid; the log of the service has the reason"  # noqa: S105

log = structlog.get_logger()


class ProviderDown(Refused):
    """An identity provider cannot be used now."""

    status = 503


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
        fits = len(quote(next_path)) <= LONGEST_PATH
        return cls(secrets.token_urlsafe(32), provider, next_path if fits else "/", now // SECOND)

    @classmethod
    def read(cls, text: str, now: int) -> Self | None:
        """Return the sign-in of a cookie's value. Return None if the value is malformed, or if the sign-in began too
        long ago."""
        key, began, provider, next_path = (*text.split(".", 3), "", "", "")[:4]
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
        return _base64(hmac.digest(self.key.encode(), purpose.encode(), "sha256"))


@dataclass(frozen=True, slots=True)
class _Known:
    """The cached data of a provider: the addresses in its discovery document, and its keys. at: the time in seconds at
    which the request for the document began, or at which it failed. failed: the reason of the failure."""

    authorization: str
    token: str
    end_session: str
    in_body: bool
    keys: "tuple[Key, ...]"
    at: int
    failed: str = ""


class OpenId:
    """The identity providers. base: a function that returns the base URL of this service for browsers."""

    def __init__(
        self, providers: Mapping[str, IdentityProvider], http: HttpFactory, base: Callable[[], str], clock: Clock
    ) -> None:
        self._providers = providers
        self._http = http
        self._base = base
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._locks: dict[str, trio.Lock] = {}
        self._turns = defaultdict[str, FairLimiter[str]](lambda: FairLimiter(AT_ONCE))

    def use(self, providers: Mapping[str, IdentityProvider]) -> None:
        """Use these providers from now on. A session whose role they no longer give ends with its next request."""
        self._providers = providers
        self._known.clear()

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

    # --- sign in ----------------------------------------------------------------------------------------------

    async def address(self, started: Started) -> str:
        """Return the address of the provider at which the person signs in. Raises NotFound, ProviderDown."""
        provider = self._provider(started.provider)
        known = await self._look_up(started.provider, provider)
        challenge = _base64(hashlib.sha256(started.verifier.encode()).digest())
        parameters = {
            "response_type": "code",
            "client_id": provider.client_id,
            "redirect_uri": self.redirect_uri(started.provider),
            "scope": " ".join(provider.scopes),
            "state": started.state,
            "nonce": started.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return _with(known.authorization, parameters)

    async def identity(self, started: Started, answer: Mapping[str, str], source: str) -> "Identity":
        """Redeem the code of a sign-in, and return the person. answer: the parameters with which the browser has
        returned. source: the address of the browser.

        Raises Forbidden if the parameters do not belong to the sign-in. Raises Unauthenticated if the provider refuses
        it, or if its answer is not valid. Raises NotFound, ProviderDown.
        """
        if not hmac.compare_digest(answer.get("state", "").encode(errors="replace"), started.state.encode()):
            raise Forbidden(EXPIRED)
        name, provider = started.provider, self._provider(started.provider)
        if answer.get("iss", provider.issuer) != provider.issuer:  # RFC 9207
            raise self._refused(name, "the parameter iss is not the issuer of the provider")
        code = answer.get("code", "")
        if not 0 < len(code) <= LONGEST_CODE:
            raise self._refused(name, "the browser has returned without a code", REFUSED_PERSON)
        async with self._turns[provider.issuer].slot(source):
            known = await self._look_up(name, provider)
            token = await self._redeem(name, provider, known, code, started.verifier)
            return await self._checked(name, provider, known, token, started.nonce)

    def redirect_uri(self, name: str) -> str:
        """Return the redirect URI of a provider."""
        return self._base() + RETURN.format(provider=name)

    async def end_address(self, issuer: str, id_token: str) -> str:
        """Return the address at which the person signs out at the provider. Return "" if the provider has none, or
        cannot be reached."""
        name = next((name for name, each in self._providers.items() if each.issuer == issuer), "")
        if not name:
            return ""
        try:
            known = await self._look_up(name, self._providers[name])
        except Refused:
            return ""
        parameters = {
            **({"id_token_hint": id_token} if id_token else {}),
            "client_id": self._providers[name].client_id,
            "post_logout_redirect_uri": f"{self._base()}/sign-in",
        }
        return _with(known.end_session, parameters) if known.end_session else ""

    # --- requests to the provider -----------------------------------------------------------------------------

    async def _redeem(self, name: str, provider: IdentityProvider, known: _Known, code: str, verifier: str) -> str:
        """Return the ID token for a code (RFC 6749 section 4.1.3)."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_uri(name),
            "code_verifier": verifier,
        }
        headers = {"Accept": "application/json"}
        try:
            secret = await trio.to_thread.run_sync(provider.secret)
            if known.in_body:
                form |= {"client_id": provider.client_id, "client_secret": secret}
            else:
                pair = f"{quote_plus(provider.client_id)}:{quote_plus(secret)}"
                headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
            status, document = await self._fetch("POST", known.token, form, headers)
        except (ProviderError, ConfigError) as error:
            raise self._down(name, provider, _advice(error)) from None
        if status != 200:
            reason = text_at(document, "error")[:40]
            if reason == "invalid_grant":
                raise self._refused(name, "the provider refuses the code: invalid_grant", REFUSED_CODE)
            raise self._down(name, provider, f"the token endpoint answers HTTP {status} {reason!r}")
        return text_at(document, "id_token")

    async def _checked(
        self, name: str, provider: IdentityProvider, known: _Known, token: str, nonce: str
    ) -> "Identity":
        from sallyport.areas.signin.id_token import KeyUnknown, TokenError, identity, verified

        def claims(known: _Known) -> Mapping[str, object]:
            now, expected = self._clock() // SECOND, (provider.issuer, provider.client_id)
            return verified(token, known.keys, issuer=expected[0], client_id=expected[1], nonce=nonce, now=now)

        try:
            try:
                found = claims(known)
            except KeyUnknown:
                found = claims(await self._look_up(name, provider, newer_than=known.at + REFRESH_S))
            return identity(found, token, groups_claim=provider.groups_claim, name_claim=provider.name_claim)
        except TokenError as error:
            raise self._refused(name, str(error)) from None

    async def _look_up(self, name: str, provider: IdentityProvider, newer_than: int = 0) -> _Known:
        """Return the data of a provider, from the cache or by requests to the provider.

        newer_than: a time in seconds. If it has passed, data from before this time are not used. Raises ProviderDown.
        """
        async with self._locks.setdefault(provider.issuer, trio.Lock()):
            now, known = self._clock() // SECOND, self._known.get(provider.issuer)
            age = math.inf if known is None or known.at > now else now - known.at  # the clock may have been set back
            if known is not None and known.failed and age < FAILED_S:
                raise ProviderDown(known.failed)
            is_kept = known is not None and not known.failed and age < KEPT_S
            if known is not None and is_kept and not (known.at < newer_than <= now):
                return known
            try:
                known = await self._discovered(provider, now)
            except ProviderError as error:
                down = self._down(name, provider, _advice(error))
                self._known[provider.issuer] = _Known("", "", "", False, (), self._clock() // SECOND, str(down))
                raise down from None
            self._known[provider.issuer] = known
            return known

    async def _discovered(self, provider: IdentityProvider, now: int) -> _Known:
        """Return what the discovery document has (OpenID Connect Discovery 1.0 section 4.3). Raises ProviderError."""
        from sallyport.areas.signin.id_token import keys_of

        status, document = await self._fetch("GET", f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration")
        if status != 200 or document.get("issuer") != provider.issuer:
            raise ProviderError("the discovery document is missing, or has another issuer than the setting")
        methods = document.get("code_challenge_methods_supported")
        if isinstance(methods, list) and "S256" not in methods:
            raise ProviderError("the provider does not support PKCE with S256")
        urls = [text_at(document, each) for each in ("authorization_endpoint", "token_endpoint", "jwks_uri")]
        end = text_at(document, "end_session_endpoint")
        of_tls = provider.issuer.startswith("https:")
        for each in (*urls, *([end] if end else [])):
            if not is_private(each) or (of_tls and not each.startswith("https:")):
                raise ProviderError("an address in the discovery document is missing, or has no TLS")
        status, jwks = await self._fetch("GET", urls[2])
        keys = keys_of(jwks) if status == 200 else ()
        if not keys:
            raise ProviderError("the provider has no signature keys (jwks_uri)")
        ways = document.get("token_endpoint_auth_methods_supported")
        in_body = isinstance(ways, list) and "client_secret_basic" not in ways and "client_secret_post" in ways
        return _Known(urls[0], urls[1], end, in_body, keys, now)

    async def _fetch(
        self, method: str, url: str, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, dict[str, object]]:
        """Return the status and the JSON object of an answer. Raises ProviderError."""
        parts = urlsplit(url)
        client = self._http(f"{parts.scheme}://{parts.netloc}", timeout_s=TIMEOUT_S)
        try:
            answer = await client.request(method, link_of(client, url), data=form, headers=headers)
        finally:
            await client.aclose()
        return answer.status_code, json_object(answer)

    def _provider(self, name: str) -> IdentityProvider:
        found = self._providers.get(name)
        if found is None:
            raise NotFound("there is no such identity provider")
        return found

    def _down(self, name: str, provider: IdentityProvider, reason: str) -> ProviderDown:
        log.warning("identity_provider_failed", provider=name, error=reason)
        return ProviderDown(f"{provider.title or name} cannot be used now: sign in in another way, or try again later")

    def _refused(self, name: str, reason: str, message: str = REFUSED_TOKEN) -> Unauthenticated:
        log.warning("identity_refused", provider=name, reason=reason)
        return Unauthenticated(message)


def _advice(error: Exception) -> str:
    return error.advice if isinstance(error, AddressNotAllowed) else str(error)


def _with(url: str, parameters: Mapping[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(parameters)}"


def _base64(octets: bytes) -> str:
    return urlsafe_b64encode(octets).decode().rstrip("=")
