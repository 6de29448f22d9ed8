"""A minimal OpenID Connect provider on loopback, which signs in everybody at once. It checks the client, the redirect
URI and PKCE, and accepts each code only once. A test can let it answer as a hostile provider would.

async with providing(clock) as provider:
    back = await provider.visit(address)                 # what a browser would do; returns where it is led to
"""

import hmac
import json
from base64 import b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import urlencode

import httpx
from joserfc.jwk import ECKey
from joserfc.jws import JWSRegistry

from tests.areas.mfa.web import Call, Reply, WebServer, serving

CLIENT = "sallyport"
SECRET = "a secret & more: of the client"


def new_key(kid: str = "first") -> ECKey:
    """Return a new private key."""
    return ECKey.generate_key("P-256", {"kid": kid})


@dataclass
class Provider:
    """The provider. clock: the time in seconds. claims: the claims that it changes in each ID token; None removes a
    claim. document: the same for its discovery document. header: the same for the header of the
    ID token. signer: another key of the ID token, a secret for HS256, or b"" for no signature. codes:
    the parameters of the sign-in of each code. ended: the parameters of each sign-out.
    """

    clock: Callable[[], int]
    issuer: str = ""
    subject: str = "4f1c"
    name: str = "Ann Example"
    groups: list[str] = field(default_factory=lambda: ["netops"])
    key: ECKey = field(default_factory=new_key)
    claims: dict[str, object] = field(default_factory=dict)
    document: dict[str, object] = field(default_factory=dict)
    header: dict[str, object] = field(default_factory=dict)
    signer: ECKey | bytes | None = None
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    ended: list[dict[str, str]] = field(default_factory=list)
    server: WebServer | None = None

    async def answer(self, call: Call) -> Reply:
        """Answer a request."""
        if call.path == "/.well-known/openid-configuration":
            return Reply(200, _changed(self._document(), self.document))
        if call.path == "/keys":
            return Reply(200, {"keys": [self.key.as_dict(private=False)]})
        if call.path == "/authorize":
            return self._authorize(call.parameters)
        if call.path == "/token":
            return self._token(call)
        if call.path == "/end":
            self.ended.append(call.parameters)
            return Reply(302, {}, {"Location": call.parameters["post_logout_redirect_uri"]})
        return Reply(404, {})

    async def visit(self, address: str) -> str:
        """Return the address to which the provider leads a browser."""
        async with httpx.AsyncClient() as browser:
            answer = await browser.get(address)
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    def _document(self) -> dict[str, object]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "end_session_endpoint": f"{self.issuer}/end",
            "code_challenge_methods_supported": ["S256"],
        }

    def _authorize(self, asked: dict[str, str]) -> Reply:
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = f"code {len(self.codes)}"
        self.codes[code] = asked
        parameters = urlencode({"code": code, "state": asked["state"], "iss": self.issuer})
        return Reply(302, {}, {"Location": f"{asked['redirect_uri']}?{parameters}"})

    def _token(self, call: Call) -> Reply:
        name, _, secret = b64decode(call.headers["authorization"].removeprefix("Basic ")).decode().partition(":")
        if (name, httpx.QueryParams(f"s={secret}")["s"]) != (CLIENT, SECRET):
            return Reply(401, {"error": "invalid_client"})
        given = call.parameters
        asked = self.codes.get(given["code"], {})
        self.codes[given["code"]] = {}
        verified = _base64(sha256(given["code_verifier"].encode()).digest())
        if asked.get("code_challenge") != verified or asked.get("redirect_uri") != given["redirect_uri"]:
            return Reply(400, {"error": "invalid_grant"})
        return Reply(200, {"token_type": "Bearer", "access_token": "-", "id_token": self._id_token(asked["nonce"])})

    def _id_token(self, nonce: str) -> str:
        now = self.clock()
        own = {"iss": self.issuer, "aud": CLIENT, "sub": self.subject, "nonce": nonce, "iat": now, "exp": now + 300}
        claims = _changed({**own, "name": self.name, "groups": self.groups}, self.claims)
        header = {"alg": "ES256", "kid": self.key.kid, **self.header}
        text = ".".join(_base64(json.dumps(each).encode()) for each in (header, claims))
        return f"{text}.{_base64(self._signature(text.encode()))}"

    def _signature(self, octets: bytes) -> bytes:
        if isinstance(self.signer, bytes):
            return hmac.digest(self.signer, octets, "sha256") if self.signer else b""
        return JWSRegistry.algorithms["ES256"].sign(octets, self.signer or self.key)


def _changed(own: Mapping[str, object], changes: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in {**own, **changes}.items() if value is not None}


def _base64(octets: bytes) -> str:
    return urlsafe_b64encode(octets).decode().rstrip("=")


@asynccontextmanager
async def providing(clock: Callable[[], int]) -> AsyncIterator[Provider]:
    """Run a provider until the block ends."""
    provider = Provider(clock)
    async with serving(provider.answer) as server:
        provider.issuer, provider.server = f"http://127.0.0.1:{server.port}", server
        yield provider
