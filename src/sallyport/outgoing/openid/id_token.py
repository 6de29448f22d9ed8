"""The check of an ID token (OpenID Connect Core 1.0 section 3.1.3.7), without I/O.

Only signatures by a key of the provider are accepted. `none` and the algorithms with a shared secret are not in the
list of algorithms. A key that the token itself contains or names by a URL is never used.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from joserfc import jws, jwt
from joserfc.errors import ClaimError, InvalidClaimError, JoseError
from joserfc.jwk import ECKey, RSAKey, import_key
from joserfc.jwt import JWTClaimsRegistry

from sallyport.base.errors import SallyportError

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
LEEWAY_S: Final = 60
"""Maximum difference between the clocks of the provider and of this service, in seconds."""
OLDEST_S: Final = 600
"""Maximum age of a token in seconds. The token is fetched directly after the person has signed in."""
MAX_LENGTH: Final = 64 << 10
MAX_SUBJECT_LENGTH: Final = 255
MAX_KEYS: Final = 64
MAX_GROUPS: Final = 2000
MAX_METHODS: Final = 32
MAX_NAME_LENGTH: Final = 64
_MODULUS: Final = range(342, 1367)
"""Length of the modulus of an RSA key in base64url: from 2048 to 8192 bits."""

Key = RSAKey | ECKey


class TokenError(SallyportError):
    """An ID token is not acceptable. The message is for the log, and contains no value of the token."""


class KeyUnknown(TokenError):
    """No known key of the provider has signed the token. The provider may have new keys."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A person at an identity provider. issuer, subject: together they identify the person. name: a name to show. The
    person may change the name. id_token: the token, for the sign-out at the provider."""

    issuer: str
    subject: str
    name: str
    groups: frozenset[str]
    id_token: str


def keys_of(document: Mapping[str, object]) -> tuple[Key, ...]:
    """Return the signature keys of a JWK set (RFC 7517). All other keys are ignored."""
    listed = document.get("keys")
    found: list[Key] = []
    for each in listed[:MAX_KEYS] if isinstance(listed, list) else []:
        if not isinstance(each, dict) or each.get("kty") not in ("RSA", "EC") or each.get("use", "sig") != "sig":
            continue
        if each["kty"] == "RSA" and len(str(each.get("n", ""))) not in _MODULUS:
            continue
        public = {
            name: value for name, value in each.items() if name in ("kty", "kid", "alg", "n", "e", "crv", "x", "y")
        }
        try:
            key = import_key(public)
        except (JoseError, ValueError, TypeError, KeyError):
            continue
        if isinstance(key, RSAKey | ECKey):
            found.append(key)
    return tuple(found)


class _Claims(JWTClaimsRegistry):
    """The rules for the claims of an ID token that joserfc does not have."""

    def validate_iat(self, value: object) -> None:
        super().validate_iat(value)
        if isinstance(value, int | float) and value < self.now - OLDEST_S - self.leeway:
            raise InvalidClaimError("iat", "The token is too old")

    def validate_sub(self, value: object) -> None:
        super().validate_sub(value)
        if isinstance(value, str) and (len(value) > MAX_SUBJECT_LENGTH or not value.isprintable()):
            raise InvalidClaimError("sub")


def verified(
    token: str, keys: Sequence[Key], *, issuer: str, client_id: str, nonce: str, now: int
) -> Mapping[str, object]:
    """Return the claims of an ID token after all checks. now: the time in seconds. Raises TokenError."""
    claims = _signed(token, keys)
    audience = claims.get("aud")
    rules = _Claims(
        now,
        LEEWAY_S,
        iss={"essential": True, "value": issuer},
        aud={"essential": True, "value": client_id},
        azp={"essential": isinstance(audience, list) and len(audience) > 1, "value": client_id},
        nonce={"essential": True, "value": nonce},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
    )
    try:
        rules.validate(claims)
    except ClaimError as error:
        advice = "; compare the clocks of the provider and this service" if error.claim in ("exp", "iat", "nbf") else ""
        raise TokenError(f"{error.claim} of the token is not acceptable: {error.description}{advice}") from None
    return claims


def check_time(claims: Mapping[str, object], since: int, *, is_required: bool) -> None:
    """Check that the person has signed in since a time, and not in an earlier session with the provider. since: the
    time in seconds. is_required: whether the token must have `auth_time`. Raises TokenError."""
    at = claims.get("auth_time")
    if at is None and not is_required:
        return
    if not isinstance(at, int | float) or isinstance(at, bool):
        raise TokenError("the token has no auth_time: let the provider send it, or set the field authTime to optional")
    if at < since - LEEWAY_S:
        raise TokenError("the person has not signed in again: auth_time of the token is too old")


def check_methods(claims: Mapping[str, object], *, amr: Collection[str], acr: Collection[str]) -> None:
    """Check how the person has signed in. amr: the methods of which one must be in the token (RFC 8176); empty for any.
    acr: the accepted authentication context classes; empty for any. Raises TokenError."""
    if amr and not methods_of(claims) & frozenset(amr):
        raise TokenError("the person has signed in without the demanded methods (amr)")
    if acr and _text(claims, "acr") not in acr:
        raise TokenError("the person has signed in with another authentication context class (acr) than demanded")


def methods_of(claims: Mapping[str, object]) -> frozenset[str]:
    """Return the authentication methods of a token (RFC 8176)."""
    given = claims.get("amr")
    listed = given if isinstance(given, list) else [given]
    return frozenset(each for each in listed[:MAX_METHODS] if isinstance(each, str))


def identity(claims: Mapping[str, object], token: str, *, groups_claim: str, name_claim: str) -> Identity:
    """Return the person of checked claims. Raises TokenError if the groups are not usable."""
    issuer, subject = _text(claims, "iss"), _text(claims, "sub")
    omitted = claims.get("_claim_names")
    if isinstance(omitted, dict) and groups_claim in omitted:
        raise TokenError("the person has too many groups for a token: let the provider send only assigned groups")
    given = claims.get(groups_claim, [])
    groups = [given] if isinstance(given, str) else given
    if not isinstance(groups, list) or len(groups) > MAX_GROUPS:
        raise TokenError(f"the claim of groups is no list of at most {MAX_GROUPS} groups")
    shown = "".join(each for each in _text(claims, name_claim) if each.isprintable()).strip()[:MAX_NAME_LENGTH]
    members = frozenset(each for each in groups if isinstance(each, str))
    return Identity(issuer, subject, shown or subject[:MAX_NAME_LENGTH], members, token)


def _signed(token: str, keys: Sequence[Key]) -> dict[str, object]:
    """Return the claims of a token that one of the keys has signed."""
    if len(token) > MAX_LENGTH:
        raise TokenError("the token is too long")
    try:
        header = jws.extract_compact(token.encode()).headers()
    except (JoseError, ValueError, TypeError, RecursionError):
        raise TokenError("the token is malformed") from None
    algorithm, kid = header.get("alg"), header.get("kid")
    if algorithm not in ALGORITHMS:
        raise TokenError("the algorithm of the signature is not accepted")
    for key in keys:
        if (kid is not None and key.get("kid") not in (None, kid)) or key.get("alg") not in (None, algorithm):
            continue
        try:
            return jwt.decode(token, key, algorithms=[algorithm]).claims
        except (JoseError, ValueError, RecursionError):
            continue
    raise KeyUnknown("no key of the provider has signed the token")


def _text(claims: Mapping[str, object], name: str) -> str:
    value = claims.get(name)
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""
