"""The checks of registrations and assertions (WebAuthn sections 7.1 and 7.2), without I/O.

fido2 decodes the messages, compares challenge, origin and rpId, checks the flags for user presence and user
verification, and verifies signatures. This module adds what fido2 leaves to its caller: the size of messages, the
permitted algorithms and keys, pages in foreign frames, the user handle, the backup flags, and the counter of
signatures.
"""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hmac import compare_digest
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from fido2 import cbor
from fido2.cose import ES256, RS256, CoseKey, EdDSA
from fido2.server import Fido2Server
from fido2.utils import websafe_encode
from fido2.webauthn import (
    AttestationConveyancePreference,
    AttestedCredentialData,
    AuthenticationResponse,
    AuthenticatorData,
    CollectedClientData,
    PublicKeyCredentialParameters,
    PublicKeyCredentialRpEntity,
    PublicKeyCredentialType,
    RegistrationResponse,
    UserVerificationRequirement,
)

from sallyport.areas.factors.passkeys.passkey import LIFE_US, MAX_CREDENTIAL_ID, TRANSPORTS, Passkey, RelyingParty
from sallyport.base.errors import Invalid
from sallyport.base.wire import JSON, Row

MAX_RESPONSE: Final = 8192
"""Maximum length of a browser's response in characters. Without an attestation it has about 1,000."""
NAME: Final = "Sallyport"
"""Name of the service in the dialogues of browsers."""
FIELD: Final = "credential"
"""Field of errors about a response."""
ALGORITHMS: Final[Sequence[type[CoseKey]]] = (EdDSA, ES256, RS256)
"""Permitted algorithms, the preferred one first: -8, -7 and -257."""
_REQUIRED: Final = UserVerificationRequirement.REQUIRED
_KEY_TYPES: Final = {EdDSA.ALGORITHM: 1, ES256.ALGORITHM: 2, RS256.ALGORITHM: 3}  # RFC 9053 section 7
_RSA_BITS: Final = range(2048, 4097)
_LABELS: Final = (1, 3, -1, -2, -3)  # kty, alg, and the parameters of the key
_TIMEOUT_MS: Final = LIFE_US // 1000
_MALFORMED: Final = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
    RecursionError,
    struct.error,
    UnsupportedAlgorithm,
)
"""What fido2 raises for octets that are no message."""


@dataclass(frozen=True, slots=True)
class NewCredential:
    """The credential of a registration. public_key: the COSE key in CBOR."""

    credential_id: bytes
    public_key: bytes
    sign_count: int
    backup_eligible: bool
    backed_up: bool
    transports: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Assertion:
    """A verified assertion. sign_count: the new counter. is_count_back: whether the counter did not grow, although the
    authenticator counts. Then the authenticator may have been cloned, and the assertion must not be accepted."""

    passkey: Passkey
    sign_count: int
    backed_up: bool
    is_count_back: bool


def creation_options(
    party: RelyingParty, challenge: bytes, user_handle: bytes, user_name: str, present: Sequence[Passkey]
) -> Row:
    """Return the options for `navigator.credentials.create` as JSON, with binary values in base64url. present: the
    person's passkeys. An authenticator that has one of them makes no second one."""
    return {
        "rp": {"id": party.id, "name": NAME},
        "user": {"id": websafe_encode(user_handle), "name": user_name, "displayName": user_name},
        "challenge": websafe_encode(challenge),
        "pubKeyCredParams": [{"type": "public-key", "alg": each.ALGORITHM} for each in ALGORITHMS],
        "timeout": _TIMEOUT_MS,
        "excludeCredentials": _descriptors(present),
        "authenticatorSelection": {
            "residentKey": "preferred",
            "requireResidentKey": False,
            "userVerification": "required",
        },
        "attestation": "none",
    }


def request_options(party: RelyingParty, challenge: bytes, allowed: Sequence[Passkey]) -> Row:
    """Return the options for `navigator.credentials.get` as JSON, with binary values in base64url. allowed: the
    person's passkeys."""
    return {
        "rpId": party.id,
        "challenge": websafe_encode(challenge),
        "timeout": _TIMEOUT_MS,
        "allowCredentials": _descriptors(allowed),
        "userVerification": "required",
    }


def _descriptors(passkeys: Sequence[Passkey]) -> list[JSON]:
    return [
        {"type": "public-key", "id": websafe_encode(each.credential_id), "transports": list[JSON](each.transports)}
        for each in passkeys
    ]


def registered(party: RelyingParty, challenge: bytes, response: str) -> NewCredential:
    """Return the credential of a registration (WebAuthn section 7.1). Raises Invalid.

    response: the browser's `RegistrationResponseJSON` as text.
    """
    with _refusing():
        message = _message(response)
        parsed = RegistrationResponse.from_dict(message)
        _check_page(parsed.response.client_data)
        data = _server(party).register_complete(_state(challenge), parsed)
        _check_backup(data)
        made = data.credential_data
        if made is None:
            raise ValueError("there is no credential")
        if parsed.raw_id != made.credential_id or not 1 <= len(made.credential_id) <= MAX_CREDENTIAL_ID:
            raise ValueError("the credential id is wrong")
        _check_key(made.public_key)
        return NewCredential(
            made.credential_id,
            cbor.encode({label: made.public_key[label] for label in _LABELS if label in made.public_key}),
            data.counter,
            data.is_backup_eligible(),
            data.is_backed_up(),
            _transports(message),
        )


def asserted(party: RelyingParty, challenge: bytes, response: str, passkeys: Sequence[Passkey]) -> Assertion:
    """Return the verified assertion of one of a person's passkeys (WebAuthn section 7.2). Raises Invalid.

    response: the browser's `AuthenticationResponseJSON` as text.
    """
    with _refusing():
        parsed = AuthenticationResponse.from_dict(_message(response))
        _check_page(parsed.response.client_data)
        used = next((each for each in passkeys if each.credential_id == parsed.raw_id and each.usable(party.id)), None)
        if used is None:
            raise ValueError("the passkey is not one of this person")
        handle = parsed.response.user_handle
        if handle and not compare_digest(handle, used.user_handle):
            raise ValueError("the passkey belongs to another person")
        key = CoseKey.parse(_stored_key(used))
        stored = AttestedCredentialData.create(bytes(16), used.credential_id, key)
        _server(party).authenticate_complete(_state(challenge), [stored], parsed)
        data = parsed.response.authenticator_data
        _check_backup(data)
        if data.is_backup_eligible() != used.backup_eligible:
            raise ValueError("the flag for backups has changed")
        back = bool(data.counter or used.sign_count) and data.counter <= used.sign_count
        return Assertion(used, data.counter, data.is_backed_up(), back)


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn every error about a response into Invalid. The message names the check that has failed."""
    try:
        yield
    except Invalid:
        raise
    except _MALFORMED as error:
        text = str(error) if type(error) is ValueError else "it is malformed"
        raise Invalid.about(f"the passkey was not accepted: {text[:100]}", FIELD) from None


def _message(response: str) -> Mapping[str, object]:
    if len(response) > MAX_RESPONSE:
        raise Invalid.about(f"must have at most {MAX_RESPONSE} characters", FIELD)
    message = json.loads(response)
    if not isinstance(message, dict):
        raise TypeError
    message.pop("clientExtensionResults", None)  # no extension is requested
    message.pop("authenticatorAttachment", None)
    return message


def _server(party: RelyingParty) -> Fido2Server:
    server = Fido2Server(
        PublicKeyCredentialRpEntity(id=party.id, name=NAME),
        attestation=AttestationConveyancePreference.NONE,
        verify_origin=lambda origin: origin == party.origin,
    )
    server.allowed_algorithms = [
        PublicKeyCredentialParameters(type=PublicKeyCredentialType.PUBLIC_KEY, alg=each.ALGORITHM)
        for each in ALGORITHMS
    ]
    return server


def _state(challenge: bytes) -> Mapping[str, object]:
    return {"challenge": websafe_encode(challenge), "user_verification": _REQUIRED}


def _check_page(page: CollectedClientData) -> None:
    """Refuse a page in a frame of a foreign page. Its viewer does not see which page asks for the passkey."""
    if page.cross_origin is not False:
        raise ValueError("the page is in a foreign frame")


def _check_backup(data: AuthenticatorData) -> None:
    if data.is_backed_up() and not data.is_backup_eligible():
        raise ValueError("the flags for backups contradict each other")


def _check_key(key: CoseKey) -> None:
    """Refuse a key of an algorithm that was not offered, and a key that cannot be used or is costly to use."""
    if key.ALGORITHM not in _KEY_TYPES or key.get(1) != _KEY_TYPES[key.ALGORITHM]:
        raise ValueError("the algorithm of the key is not supported")
    if key.ALGORITHM == RS256.ALGORITHM and (_bits(key[-1]) not in _RSA_BITS or len(key[-2]) > 4):
        raise ValueError("an RSA key must have 2048 to 4096 bits, and a short exponent")
    if key.ALGORITHM == ES256.ALGORITHM and (len(key[-2]), len(key[-3])) != (32, 32):
        raise ValueError("the point of the key must be uncompressed")
    with suppress(InvalidSignature):
        key.verify(b"", bytes(64))  # raises another error if the key cannot be used


def _bits(number: bytes) -> int:
    return int.from_bytes(number, "big").bit_length()


def _stored_key(passkey: Passkey) -> Mapping[int, object]:
    key = cbor.decode(passkey.public_key)
    if not isinstance(key, Mapping):
        raise TypeError
    return key


def _transports(message: Mapping[str, object]) -> tuple[str, ...]:
    """Return the known transports of a registration, each once. They are hints for browsers only."""
    response = message.get("response")
    given = response.get("transports") if isinstance(response, Mapping) else None
    return tuple(each for each in TRANSPORTS if isinstance(given, list) and each in given)
