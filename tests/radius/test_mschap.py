"""Tests of MS-CHAP with the test vectors of the RFCs, and with any attributes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.radius.attributes import push_vendor_attribute
from sallyport.radius.mschap import (
    MICROSOFT,
    MS_CHAP2_CPW,
    MS_CHAP2_RESPONSE,
    MS_CHAP_CHALLENGE,
    MS_CHAP_CPW_1,
    MS_CHAP_CPW_2,
    MS_CHAP_RESPONSE,
    MsChap1,
    MsChap2,
    NtKey,
    PasswordChange,
    Unusable,
    authenticator_response,
    challenge_response,
    des_key,
    md4,
    nt_hash,
    nt_hash_hash,
    peer_names,
    push_attempt,
    recognise,
)
from sallyport.radius.packet import ACCESS_REQUEST, SharedSecret, decode, encode_request
from tests.packets import access_request, opened

# RFC 2433 appendix B
CHALLENGE_1 = bytes.fromhex("102db5df085d3041")
HASH_1 = bytes.fromhex("fc156af7edcd6c0edde3337d427f4eac")
RESPONSE_1 = bytes.fromhex("4e9d3c8f9cfd385d5bf4d3246791956ca4c351ab409a3d61")
# RFC 2759 section 9.2
USER = b"User"
HASH_2 = bytes.fromhex("44ebba8d5312b8d611474411f56989ae")
HASH_HASH_2 = bytes.fromhex("41c00c584bd2d91c4017a2a12fa59f3f")
ATTEMPT_1 = MsChap1(3, CHALLENGE_1, RESPONSE_1)
ATTEMPT_2 = MsChap2(
    identifier=7,
    challenge=bytes.fromhex("5b5d7c7d7b3f2f3e3c2c602132262628"),
    peer_challenge=bytes.fromhex("21402324255e262a28295f2b3a337c7e"),
    response=bytes.fromhex("82309ecd8d708b5ea08faa3981cd83544233114a3d85d6df"),
)

VALUE_1 = bytes((3, 1)) + bytes(24) + RESPONSE_1
VALUE_2 = bytes((7, 0)) + ATTEMPT_2.peer_challenge + bytes(8) + ATTEMPT_2.response
CHANGES = {
    MS_CHAP_CPW_1: (bytes((5, 9)) + bytes(68), 8, 1),
    MS_CHAP_CPW_2: (bytes((6, 9)) + bytes(82), 8, 2),
    MS_CHAP2_CPW: (bytes((7, 9)) + bytes(66), 16, 3),
}
Values = dict[tuple[int, int], list[bytes]]


def offered(kind: int, value: bytes, challenge: bytes) -> Values:
    """Return the vendor attributes of a request."""
    return {(MICROSOFT, MS_CHAP_CHALLENGE): [challenge], (MICROSOFT, kind): [value]}


def test_rfc_2433() -> None:
    """The password of RFC 2433 appendix B gives the NT hash and the response that are in the RFC."""
    assert nt_hash(b"MyPw") == HASH_1
    assert challenge_response(CHALLENGE_1, HASH_1) == RESPONSE_1
    assert NtKey(HASH_1).made(ATTEMPT_1, b"whoever")


def test_rfc_2759() -> None:
    """The login of RFC 2759 section 9.2 gives the hashes, challenge, response and authenticator response that are in
    the RFC."""
    assert nt_hash(b"clientPass") == HASH_2
    assert nt_hash_hash(HASH_2) == NtKey(HASH_2).hash_hash == HASH_HASH_2
    assert ATTEMPT_2.nt_challenge(USER).hex() == "d02e4386bce91226"
    assert NtKey(HASH_2).made(ATTEMPT_2, USER)
    assert authenticator_response(ATTEMPT_2, HASH_HASH_2, USER) == b"S=407A5589115FD0D6209F510FE9C04566932CDA56"


@pytest.mark.parametrize(
    ("septets", "key"),
    [
        ("fc156af7edcd6c", "fd0b5b5e7f6e34d9"),
        ("0edde3337d427f", "0e6e796737ea08fe"),
        ("4eac0000000000", "4f57010101010101"),
    ],
)
def test_rfc_2759_des_keys(septets: str, key: str) -> None:
    """The DES keys of RFC 2759 section 9.3 have their parity bits."""
    assert des_key(bytes.fromhex(septets)).hex() == key


@given(password=st.text(max_size=64), other=st.text(max_size=64), challenge=st.binary(min_size=16, max_size=16))
def test_only_its_password_makes_a_response(password: str, other: str, challenge: bytes) -> None:
    """A response is right only for the password that made it."""
    for blank in (MsChap1(0, challenge[:8], b""), MsChap2(0, challenge, challenge[::-1], b"")):
        response = challenge_response(blank.nt_challenge(USER), nt_hash(password.encode()))
        attempt = blank._replace(response=response)
        assert NtKey(nt_hash(password.encode())).made(attempt, USER)
        assert NtKey(nt_hash(other.encode())).made(attempt, USER) == (other == password)


def test_the_name_is_a_part_of_version_2() -> None:
    """A response for one user name is wrong for another one, so that it cannot be used for the login of
    another user."""
    assert not NtKey(HASH_2).made(ATTEMPT_2, b"user")


def test_a_password_that_is_no_utf_8_is_windows_1252() -> None:
    """A password has the same hash in UTF-8 and in Windows-1252. A character beyond the BMP is two units of UTF-16."""
    assert nt_hash(b"caf\xe9") == nt_hash("café".encode()) != nt_hash(b"cafe")
    assert nt_hash(b"5 \x80") == nt_hash("5 €".encode())
    assert nt_hash("🔑".encode()).hex() == nt_hash(b"\xf0\x9f\x94\x91").hex() != nt_hash(b"\xf0\x9f\x94").hex()


@pytest.mark.parametrize(
    ("sent", "names"),
    [
        (b"bob", (b"bob",)),
        (b"CORP\\bob", (b"bob", b"CORP\\bob")),
        (b"bob@corp.example", (b"bob@corp.example", b"bob")),
        (b"CORP\\bob@x", (b"bob@x", b"CORP\\bob@x", b"bob")),
        (b"CORP\\", (b"CORP\\",)),
        (b"@corp", (b"@corp",)),
        (b"", (b"",)),
    ],
)
def test_names_that_a_client_may_have_hashed(sent: bytes, names: tuple[bytes, ...]) -> None:
    """Three names are tried: the name without the domain (RFC 2759 section 4), the name as it was sent, and the name
    without the realm. Each name is tried once, and an empty name is not tried."""
    assert peer_names(sent) == names


def test_each_kind_is_recognised_in_a_request() -> None:
    """Each kind of MS-CHAP attribute in Vendor-Specific is recognised as an attempt."""
    secret = SharedSecret(b"s3cret")
    for value, kind, attempt in ((VALUE_1, MS_CHAP_RESPONSE, ATTEMPT_1), (VALUE_2, MS_CHAP2_RESPONSE, ATTEMPT_2)):
        body = push_vendor_attribute(MICROSOFT, MS_CHAP_CHALLENGE, attempt.challenge)
        body += push_vendor_attribute(MICROSOFT, kind, value)
        request = decode(encode_request(ACCESS_REQUEST, 1, secret, body), secret)
        assert recognise(request.vendor_values()) == attempt


@pytest.mark.parametrize("kind", CHANGES)
def test_a_password_change_is_recognised(kind: int) -> None:
    """Each of the three kinds of password change is recognised with its version and the identifier for the answer."""
    value, size, version = CHANGES[kind]
    assert recognise(offered(kind, value, bytes(size))) == PasswordChange(9, version)


@pytest.mark.parametrize("values", [{}, {(MICROSOFT, MS_CHAP_CHALLENGE): [bytes(16)]}, {(9, 25): [VALUE_2]}])
def test_other_attributes_are_no_attempt(values: Values) -> None:
    """Without attributes there is no attempt.

    A challenge alone is no attempt either, nor is another vendor's attribute with the same number.
    """
    assert recognise(values) is None


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({(MICROSOFT, MS_CHAP2_RESPONSE): [VALUE_2]}, "0 MS-CHAP-Challenges"),
        (
            {(MICROSOFT, MS_CHAP2_RESPONSE): [VALUE_2], (MICROSOFT, MS_CHAP_CHALLENGE): [bytes(16)] * 2},
            "2 MS-CHAP-Challenges",
        ),
        (
            offered(MS_CHAP2_RESPONSE, VALUE_2, bytes(16)) | {(MICROSOFT, MS_CHAP_RESPONSE): [VALUE_1]},
            "MS-CHAP-Response beside MS-CHAP2-Response",
        ),
        (offered(MS_CHAP2_RESPONSE, VALUE_2[:-1], bytes(16)), "MS-CHAP2-Response of 49 octets"),
        (offered(MS_CHAP_RESPONSE, VALUE_1 + b"\0", bytes(8)), "MS-CHAP-Response of 51 octets"),
        (offered(MS_CHAP_RESPONSE, b"", bytes(8)), "MS-CHAP-Response of 0 octets"),
        (offered(MS_CHAP2_CPW, bytes(70), bytes(16)), "MS-CHAP2-CPW of 70 octets"),
        (offered(MS_CHAP_CPW_1, bytes(69), bytes(8)), "MS-CHAP-CPW-1 of 69 octets"),
        (offered(MS_CHAP_CPW_2, bytes(83), bytes(8)), "MS-CHAP-CPW-2 of 83 octets"),
        (
            offered(MS_CHAP2_RESPONSE, VALUE_2, bytes(8)),
            "MS-CHAP-Challenge of 8 octets beside MS-CHAP2-Response",
        ),
        (offered(MS_CHAP_RESPONSE, VALUE_1, bytes(16)), "MS-CHAP-Challenge of 16 octets beside MS-CHAP-Response"),
        (
            offered(MS_CHAP_RESPONSE, bytes((3, 0)) + VALUE_1[2:], bytes(8)),
            "a LAN Manager response, which is not supported",
        ),
    ],
)
def test_attempts_that_cannot_be_checked(values: Values, reason: str) -> None:
    """Wrong lengths, too many or too few attributes and LAN Manager responses are each refused with a reason."""
    assert recognise(values) == Unusable(reason)


@pytest.mark.torture
@given(
    st.dictionaries(
        st.tuples(st.just(MICROSOFT), st.sampled_from((1, 3, 4, 11, 25, 27))),
        st.lists(
            st.sampled_from((0, 1, 8, 16, 50, 68, 70, 84, 247)).flatmap(lambda n: st.binary(min_size=n, max_size=n))
        ),
    )
)
def test_any_attributes_are_recognised_or_refused(values: Values) -> None:
    """Any attributes are accepted or refused without an error. An attempt has the lengths that its check needs."""
    found = recognise(values)
    if isinstance(found, MsChap1 | MsChap2):
        assert (len(found.challenge), len(found.response)) == (16 if isinstance(found, MsChap2) else 8, 24)
        assert not NtKey(HASH_1).made(found, USER)


# RFC 1320 section A.5
DIGESTS = {
    b"": "31d6cfe0d16ae931b73c59d7e0c089c0",
    b"a": "bde52cb31de33e46245e05fbdbd6fb24",
    b"abc": "a448017aaf21d8525fc10ae87aa6729d",
    b"message digest": "d9130a8164549fe818874806e1c7014b",
    b"abcdefghijklmnopqrstuvwxyz": "d79e1c308aa5bbcdeea8ed63df412da9",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789": "043f8582f241db351ce627e153e7f0e4",
    b"1234567890" * 8: "e33b4ddc9c38f2199c3e7b164fcc0536",
}


@pytest.mark.parametrize(("message", "digest"), DIGESTS.items())
def test_rfc_1320(message: bytes, digest: str) -> None:
    """Each message of RFC 1320 section A.5 has the digest that is in the RFC."""
    assert md4(message).hex() == digest


def test_an_attempt_is_recognised_in_its_attributes() -> None:
    """What is written for an upstream server is the attempt of the client (RFC 2548 sections 2.1.1 and 2.3.2)."""
    request = opened(access_request(push_attempt(ATTEMPT_2)))
    assert recognise(request.vendor_values()) == ATTEMPT_2
