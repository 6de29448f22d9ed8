"""Tests of the method of an Access-Request, and of the fields of PAP and CHAP."""

import pytest

from sallyport.radius.packet import SharedSecret
from sallyport.radius.password import Method, chap_holds, hides_garbage, method_of, sent_chap, sent_password
from tests.packets import SECRET, access_request, attributes, chap, mschap1, mschap2, opened, pap

EAP = attributes(EAP_MESSAGE=bytes((2, 1, 0, 5, 1)))


@pytest.mark.parametrize(
    ("datagram", "method"),
    [
        pytest.param(pap("ann", "hello"), Method.PAP, id="User-Password"),
        pytest.param(chap("ann", "hello"), Method.CHAP, id="CHAP-Password"),
        pytest.param(access_request(EAP), Method.EAP, id="EAP-Message"),
        pytest.param(mschap1("ann", "hello"), Method.MSCHAP, id="MS-CHAP-Response"),
        pytest.param(mschap2("ann", "hello"), Method.MSCHAP2, id="MS-CHAP2-Response"),
        pytest.param(access_request(b""), Method.NONE, id="no credentials"),
    ],
)
def test_the_method_of_a_request(datagram: bytes, method: str) -> None:
    """The attribute that contains the credentials determines the method."""
    assert method_of(opened(datagram)) == method


def test_a_password_in_clear() -> None:
    """The User-Password is decrypted with the secret (RFC 2865 section 5.2)."""
    assert sent_password(opened(pap("ann", "hello")), SharedSecret(SECRET)) == b"hello"


def test_a_chap_challenge_may_be_the_authenticator() -> None:
    """Without a CHAP-Challenge the Request Authenticator is the challenge (RFC 2865 section 5.3)."""
    value, challenge = sent_chap(opened(chap("ann", "hello")))
    assert chap_holds(value, b"hello", challenge)


def test_a_chap_challenge_of_its_own() -> None:
    """If CHAP-Challenge is present, it is the challenge instead of the Request Authenticator."""
    value, challenge = sent_chap(opened(chap("ann", "hello", b"challenge")))
    assert challenge == b"challenge" and chap_holds(value, b"hello", challenge)


def test_a_password_of_another_secret_is_garbage() -> None:
    """The password of an unsigned request shows that the secret is wrong. A signed request proves that it is right. A
    request without a password shows nothing."""
    secret, other = SharedSecret(SECRET), SharedSecret(b"another secret")
    unsigned = opened(pap("ann", "hello", signed=False))
    assert [hides_garbage(unsigned, each) for each in (secret, other)] == [False, True]
    assert not hides_garbage(opened(pap("ann", b"\x07\xff")), secret)
    assert [
        hides_garbage(opened(pap("ann", each, signed=False)), secret)
        for each in (b"a\x7f", b"a\x1f", b"\xff", "\u00e4 ")
    ] == [True, True, True, False]
    assert not hides_garbage(opened(chap("ann", "hello", signed=False)), secret)
