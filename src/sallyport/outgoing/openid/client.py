"""One sign-in with an identity provider: discovery, the redirect, the code, and the check of the ID token.

The addresses of a provider come from its discovery document, over TLS. The service connects to them with the rules of
the setting `egress`. The document and the keys are cached. If a token has an unknown key, they are fetched again, at
most once in `REFRESH_S` seconds.

Nothing of a sign-in is stored: the caller derives the values of `Flow` from secrets that only it and the browser have.
"""

import hashlib
import hmac
import math
from base64 import b64encode, urlsafe_b64encode
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import quote_plus, urlencode, urlsplit

import structlog
import trio

from sallyport.base.clock import SECOND, Clock
from sallyport.base.errors import ConfigError, Forbidden, Refused, Unauthenticated
from sallyport.base.fair import FairLimiter
from sallyport.outgoing.errors import AddressNotAllowed, ProviderError
from sallyport.outgoing.http import HttpFactory, json_object, link_of, text_at
from sallyport.settings.identity_provider import is_private

if TYPE_CHECKING:
    from sallyport.outgoing.openid.id_token import Key

TIMEOUT_S: Final = 5.0
KEPT_S: Final = 3600
REFRESH_S: Final = 30
FAILED_S: Final = 5
"""Seconds for which a provider that cannot be reached is not tried again."""
AT_ONCE: Final = 8
"""Maximum number of codes that are redeemed at one provider at the same time."""
MAX_CODE_LENGTH: Final = 4096
EXPIRED: Final = (
    "this sign-in has expired, or it began in another browser or at another address of this service: sign in again"
)
REFUSED_CODE: Final = "the identity provider does not accept this sign-in any more: sign in again"
REFUSED_PERSON: Final = "the identity provider has refused the sign-in"
REFUSED_TOKEN: Final = "the answer of the identity provider is not valid; the log of the service has the reason"  # noqa: S105

Claims = Mapping[str, object]

log = structlog.get_logger()


class ProviderDown(Refused):
    """An identity provider cannot be used now. The message is for the person. reason: why, for the admin of the
    provider."""

    status = 503

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Registration:
    """The registration of this service at a provider, as its client. name: the name of the provider in the log. title:
    its name for people. secret: returns the client's secret, in a worker thread; raises ConfigError if there is
    none."""

    name: str
    title: str
    issuer: str
    client_id: str
    secret: Callable[[], str]
    scopes: Sequence[str] = ("openid",)


@dataclass(frozen=True, slots=True)
class Flow:
    """The values of one sign-in. state: binds it to the browser. nonce: the claim of this name. verifier: the code
    verifier of PKCE, of 43 to 128 characters. more: further parameters of the request, such as `prompt`."""

    redirect_uri: str
    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    more: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Endpoints:
    """The cached data of a provider: the addresses in its discovery document, and its keys. at: the time in seconds at
    which the request for the document began, or at which it failed. failed: the reason of the failure."""

    authorization: str
    token: str
    end_session: str
    in_body: bool
    keys: "tuple[Key, ...]"
    at: int
    failed: str = ""


class OpenIdClient:
    """The client of identity providers. It caches what it knows of them, by issuer. http: connects to them."""

    def __init__(self, http: HttpFactory, clock: Clock) -> None:
        self._http = http
        self._clock = clock
        self._known: dict[str, _Endpoints] = {}
        self._locks: dict[str, trio.Lock] = {}
        self._turns = defaultdict[str, FairLimiter[str]](lambda: FairLimiter(AT_ONCE))

    def forget(self) -> None:
        """Forget the documents and keys of all providers."""
        self._known.clear()

    async def look(self, provider: Registration) -> None:
        """Check that the provider can be reached and has what a sign-in needs. Raises ProviderDown."""
        await self._look_up(provider)

    async def address(self, provider: Registration, flow: Flow) -> str:
        """Return the address of the provider at which the person signs in. Raises ProviderDown."""
        known = await self._look_up(provider)
        challenge = base64(hashlib.sha256(flow.verifier.encode()).digest())
        parameters = {
            "response_type": "code",
            "client_id": provider.client_id,
            "redirect_uri": flow.redirect_uri,
            "scope": " ".join(provider.scopes),
            "state": flow.state,
            "nonce": flow.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            **flow.more,
        }
        return _with(known.authorization, parameters)

    async def claims(
        self, provider: Registration, flow: Flow, answer: Mapping[str, str], source: str
    ) -> tuple[Claims, str]:
        """Redeem the code of a sign-in. Return the checked claims of the ID token, and the token. answer: the
        parameters with which the browser has returned. source: the address of the browser.

        Raises Forbidden if the parameters do not belong to the sign-in. Raises Unauthenticated if the provider refuses
        it, or if its answer is not valid. Raises ProviderDown.
        """
        if not hmac.compare_digest(answer.get("state", "").encode(errors="replace"), flow.state.encode()):
            raise Forbidden(EXPIRED)
        if answer.get("iss", provider.issuer) != provider.issuer:  # RFC 9207
            raise refusal(provider, "the parameter iss is not the issuer of the provider")
        code = answer.get("code", "")
        if not 0 < len(code) <= MAX_CODE_LENGTH:
            raise refusal(provider, "the browser has returned without a code", REFUSED_PERSON)
        async with self._turns[provider.issuer].slot(source):
            known = await self._look_up(provider)
            token = await self._redeem(provider, known, code, flow)
            return await self._checked(provider, known, token, flow.nonce), token

    async def end_address(self, provider: Registration, id_token: str, back: str) -> str:
        """Return the address at which the person signs out at the provider. Return "" if the provider has none, or
        cannot be reached. back: the URL to which the browser returns."""
        try:
            known = await self._look_up(provider)
        except Refused:
            return ""
        parameters = {
            **({"id_token_hint": id_token} if id_token else {}),
            "client_id": provider.client_id,
            "post_logout_redirect_uri": back,
        }
        return _with(known.end_session, parameters) if known.end_session else ""

    # --- requests to the provider -----------------------------------------------------------------------------

    async def _redeem(self, provider: Registration, known: _Endpoints, code: str, flow: Flow) -> str:
        """Return the ID token for a code (RFC 6749 section 4.1.3)."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": flow.redirect_uri,
            "code_verifier": flow.verifier,
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
            raise _down(provider, error) from None
        if status != 200:
            reason = text_at(document, "error")[:40]
            if reason == "invalid_grant":
                raise refusal(provider, "the provider refuses the code: invalid_grant", REFUSED_CODE)
            raise _down(provider, f"the token endpoint answers HTTP {status} {reason!r}")
        return text_at(document, "id_token")

    async def _checked(self, provider: Registration, known: _Endpoints, token: str, nonce: str) -> Claims:
        """Return the claims of an ID token after all checks. A hostile provider chooses its keys, and the verification
        of a signature by a costly key takes 10 ms, so it runs in a worker thread."""
        from sallyport.outgoing.openid.id_token import KeyUnknown, TokenError, verified

        async def claims(known: _Endpoints) -> Claims:
            check = partial(
                verified,
                token,
                known.keys,
                issuer=provider.issuer,
                client_id=provider.client_id,
                nonce=nonce,
                now=self._clock() // SECOND,
            )
            return await trio.to_thread.run_sync(check, limiter=self._http.egress.handshakes)

        try:
            try:
                return await claims(known)
            except KeyUnknown:
                return await claims(await self._look_up(provider, newer_than=known.at + REFRESH_S))
        except TokenError as error:
            raise refusal(provider, str(error)) from None

    async def _look_up(self, provider: Registration, newer_than: int = 0) -> _Endpoints:
        """Return the data of a provider, from the cache or by requests to the provider.

        newer_than: a time in seconds. If it has passed, data from before this time are not used. Raises ProviderDown.
        """
        async with self._locks.setdefault(provider.issuer, trio.Lock()):
            now, known = self._clock() // SECOND, self._known.get(provider.issuer)
            age = math.inf if known is None or known.at > now else now - known.at  # the clock may have been set back
            if known is not None and known.failed and age < FAILED_S:
                raise _down(provider, known.failed, is_new=False)
            is_kept = known is not None and not known.failed and age < KEPT_S
            if known is not None and is_kept and not (known.at < newer_than <= now):
                return known
            try:
                known = await self._discovered(provider, now)
            except ProviderError as error:
                at = self._clock() // SECOND
                self._known[provider.issuer] = _Endpoints("", "", "", False, (), at, str(error))
                raise _down(provider, error) from None
            self._known[provider.issuer] = known
            return known

    async def _discovered(self, provider: Registration, now: int) -> _Endpoints:
        """Return what the discovery document has (OpenID Connect Discovery 1.0 section 4.3). Raises ProviderError."""
        from sallyport.outgoing.openid.id_token import keys_of

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
        read = partial(trio.to_thread.run_sync, keys_of, jwks, limiter=self._http.egress.handshakes)
        keys = await read() if status == 200 else ()
        if not keys:
            raise ProviderError("the provider has no signature keys (jwks_uri)")
        ways = document.get("token_endpoint_auth_methods_supported")
        in_body = isinstance(ways, list) and "client_secret_basic" not in ways and "client_secret_post" in ways
        return _Endpoints(urls[0], urls[1], end, in_body, keys, now)

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


def refusal(provider: Registration, reason: str, message: str = REFUSED_TOKEN) -> Unauthenticated:
    """Return the error for a sign-in that is not accepted. reason: for the log. message: for the person."""
    log.warning("identity_refused", provider=provider.name, reason=reason)
    return Unauthenticated(message)


def base64(octets: bytes) -> str:
    """Return octets in base64url without padding."""
    return urlsafe_b64encode(octets).decode().rstrip("=")


def _down(provider: Registration, error: Exception | str, *, is_new: bool = True) -> ProviderDown:
    """Return the error for a provider that cannot be used, and log the reason if it is new. Only the log says how to
    allow an address."""
    if is_new:
        reason = error.advice if isinstance(error, AddressNotAllowed) else str(error)
        log.warning("identity_provider_failed", provider=provider.name, error=reason)
    title = provider.title or provider.name
    return ProviderDown(f"{title} cannot be used now: sign in in another way, or try again later", str(error))


def _with(url: str, parameters: Mapping[str, str]) -> str:
    return f"{url}{'&' if '?' in url else '?'}{urlencode(parameters)}"
