"""Tests of answers to MS-CHAP: successes and errors, with the test vectors of the RFCs."""

from hashlib import sha1

import pytest

from sallyport.radius.attributes import pull_attributes, pull_vendor_attributes
from sallyport.radius.mschap import MICROSOFT, MsChap1, MsChap2, PasswordChange
from sallyport.radius.mschap_reply import (
    ENCRYPTION,
    ErrorCode,
    master_key,
    push_error,
    push_mppe_keys,
    push_success,
    start_key,
)
from sallyport.radius.packet import SharedSecret
from sallyport.radius.password import reveal_blocks
from sallyport.radius.salted import Hiding
from tests.radius.test_mschap import ATTEMPT_1, ATTEMPT_2, CHALLENGE_1, HASH_HASH_2, USER

SECRET = SharedSecret(b"s3cret")
AUTHENTICATOR = bytes(range(16))
CHALLENGE = bytes(range(0xA0, 0xB0))
SEND_KEY = bytes.fromhex("8b7cdc149b993a1ba118cb153f56dccb")


def pulled(octets: bytes) -> list[tuple[int, bytes]]:
    """Return the Microsoft attributes of a reply, in order."""
    found: list[tuple[int, bytes]] = []
    for kind, value in pull_attributes(octets):
        vendor, pairs = pull_vendor_attributes(value)
        assert (kind, vendor) == (26, MICROSOFT)
        found += pairs
    return found


def hiding() -> Hiding:
    """Return the encryption of the reply in these tests."""
    return Hiding(SECRET, AUTHENTICATOR)


def test_rfc_3079_keys() -> None:
    """The login of RFC 3079 section 3.5.3 gives the master key and the send key that are in the RFC."""
    master = master_key(HASH_HASH_2, ATTEMPT_2.response)
    assert master.hex() == "fdece3717a8c838cb388e527ae3cdd31"
    assert start_key(master, sent=True) == SEND_KEY
    assert start_key(master, sent=False) != SEND_KEY


def test_success_of_version_2() -> None:
    """A success of MS-CHAPv2 has the proof with the identifier of the attempt, and one key for each direction of the
    NAS."""
    octets = push_success(ATTEMPT_2, HASH_HASH_2, USER, hiding())
    (proof, receive, send) = pulled(octets)
    assert proof == (26, b"\x07S=407A5589115FD0D6209F510FE9C04566932CDA56")
    master = master_key(HASH_HASH_2, ATTEMPT_2.response)
    assert (receive[0], hiding().reveal(receive[1])) == (17, start_key(master, sent=False))
    assert (send[0], hiding().reveal(send[1])) == (16, SEND_KEY)


def test_success_of_version_1() -> None:
    """A success of MS-CHAP has the hash of the NT hash, from which the session key of RFC 3079 section 2.5.3 is
    derived."""
    octets = push_success(ATTEMPT_1, HASH_HASH_2, USER, hiding())
    (keys,) = pulled(octets)
    assert (keys[0], len(keys[1])) == (12, 32)
    clear = reveal_blocks(keys[1], SECRET, AUTHENTICATOR)
    assert clear == bytes(8) + HASH_HASH_2 + bytes(8)
    session = sha1(clear[8:24] * 2 + CHALLENGE_1).digest()[:16]
    assert session.hex() == "a8947850cfc0acc1d1789fb62ddcddb0"


def test_the_encryption() -> None:
    """The client may encrypt, with keys of 40 or 128 bits: policy 1 and types 6."""
    assert pulled(ENCRYPTION) == [(7, bytes((0, 0, 0, 1))), (8, bytes((0, 0, 0, 6)))]


def test_keys_of_eap_are_carried_whole() -> None:
    """Keys of 32 octets, which EAP makes, are sent unchanged."""
    receive, send = pulled(push_mppe_keys(bytes(range(32)), bytes(range(32, 64)), hiding()))
    assert (hiding().reveal(receive[1]), hiding().reveal(send[1])) == (bytes(range(32)), bytes(range(32, 64)))


@pytest.mark.parametrize(
    ("attempt", "code", "retry", "message", "text"),
    [
        (ATTEMPT_2, ErrorCode.AUTHENTICATION_FAILURE, True, "no", f"E=691 R=1 C={CHALLENGE.hex()} V=3 M=no"),
        (ATTEMPT_2, ErrorCode.ACCOUNT_DISABLED, False, "", f"E=647 R=0 C={CHALLENGE.hex()} V=3"),
        (ATTEMPT_1, ErrorCode.AUTHENTICATION_FAILURE, True, "no", "E=691 R=1 C=a0a1a2a3a4a5a6a7 V=2"),
        (PasswordChange(7, 3), ErrorCode.CHANGING_PASSWORD, False, "é", f"E=709 R=0 C={CHALLENGE.hex()} V=3 M=é"),
        (PasswordChange(7, 2), ErrorCode.CHANGING_PASSWORD, False, "no", "E=709 R=0 C=a0a1a2a3a4a5a6a7 V=2"),
    ],
)
def test_an_error(
    attempt: MsChap1 | MsChap2 | PasswordChange, code: ErrorCode, retry: bool, message: str, text: str
) -> None:
    """An error has the identifier of the attempt and the text of its RFC.

    In MS-CHAP the challenge has 8 octets, and there is no message.
    """
    octets = push_error(attempt, code, retry=retry, challenge=CHALLENGE, message=message)
    assert pulled(octets) == [(2, bytes((attempt.identifier,)) + text.encode())]


def test_a_message_fits_or_is_refused() -> None:
    """A message of a hundred octets always fits. A longer message raises ValueError and is not cut."""
    assert pulled(push_error(ATTEMPT_2, ErrorCode.PASSWORD_EXPIRED, challenge=CHALLENGE, message="m" * 100))
    with pytest.raises(ValueError, match="octets"):
        push_error(ATTEMPT_2, ErrorCode.PASSWORD_EXPIRED, challenge=CHALLENGE, message="m" * 200)


def test_a_short_challenge_is_refused() -> None:
    """A challenge that is shorter than in the RFC is refused, because the client could not try again."""
    with pytest.raises(ValueError, match="challenge has 8 octets"):
        push_error(ATTEMPT_2, ErrorCode.PASSWORD_EXPIRED, challenge=CHALLENGE_1)
