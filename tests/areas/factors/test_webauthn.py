"""The checks of registrations and assertions, with published vectors, and with messages that are wrong in one point."""

import json
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.factors.passkeys import webauthn
from sallyport.areas.factors.passkeys.passkey import Passkey, RelyingParty, relying_party
from sallyport.areas.factors.passkeys.webauthn import MAX_RESPONSE, asserted, creation_options, registered
from sallyport.base.errors import Conflict, Invalid
from tests.areas.factors import authenticator as soft
from tests.areas.factors.authenticator import BE, BS, EDDSA, ES256, HOST, ORIGIN, RS256, UP, UV, Authenticator

PARTY = RelyingParty(HOST, ORIGIN)
CHALLENGE = bytes(range(32))
CREATE: dict[str, Any] = creation_options(PARTY, CHALLENGE, b"handle" * 4, "ann", ())
GET = {"challenge": soft.in_base64(CHALLENGE)}

# W3C, Web Authentication level 3, section 16: the examples none.ES256, packed.RS256, none.ES256.long-credential-id and
# none.ES256.crossOrigin.
EXAMPLE = RelyingParty("example.org", "https://example.org")
ES256_CHALLENGE = bytes.fromhex("00c30fb78531c464d2b6771dab8d7b603c01162f2fa486bea70f283ae556e130")
ES256_ID = bytes.fromhex("f91f391db4c9b2fde0ea70189cba3fb63f579ba6122b33ad94ff3ec330084be4")
ES256_DATA = bytes.fromhex(
    "bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b559000000008446ccb9ab1db374750b2367ff6f3a1f0020"
    "f91f391db4c9b2fde0ea70189cba3fb63f579ba6122b33ad94ff3ec330084be4"
    "a5010203262001215820afefa16f97ca9b2d23eb86ccb64098d20db90856062eb249c33a9b672f26df61"
    "225820930a56b87a2fca66334b03458abf879717c12cc68ed73290af2e2664796b9220"
)
RS256_CHALLENGE = bytes.fromhex("bea8f0770009bd57f2c0df6fea9f743a27e4b61bbe923c862c7aad7a9fc8e4a6")
RS256_ID = bytes.fromhex("992a18acc83f67533600c1138a4b4c4bd236de13629cf025ed17cb00b00b74df")
RS256_MODULUS = ((2**1279 - 1) * (2**2203 - 1)).to_bytes(436, "big")  # the two smallest Mersenne primes that are large
RS256_DATA = (
    bytes.fromhex("bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b55d00000000")
    + bytes.fromhex("428f8878298b9862a36ad8c7527bfef20020")
    + RS256_ID
    + soft.cbor({1: 3, 3: RS256, -1: RS256_MODULUS, -2: b"\1\0\1"})
)
_GET = (
    "7b2274797065223a22776562617574686e2e676574222c226368616c6c656e6765223a22"  # {"type":"webauthn.get","challenge":"
)
_ORIGIN = "222c226f726967696e223a2268747470733a2f2f6578616d706c652e6f7267222c2263726f73734f726967696e223a"
LONG_KEY = bytes.fromhex(
    "a50102032620012158203b8176b7504489cc593046d7988abb7905a742de6ac2cdc748a873c663e90cb1"
    "2258201436d5edc9a75f23999eef9d5950a5c2455514ee1014084720f841a06b828a11"
)
LONG_CHALLENGE = bytes.fromhex("ef1deba56dce48f674a447ccf63b9599258ce87648e5c396f2ef0ca1da460e3b")
LONG_PAGE = bytes.fromhex(
    f"{_GET}377833727057334f53505a307045664d396a75566d53574d36485a4935634f573875384d6f647047446a73{_ORIGIN}66616c73657d"
)
LONG_DATA = bytes.fromhex("bfabc37432958b063360d3ad6461c9c4735ae7f8edd46592a5e0f01452b2e4b50d00000000")
LONG_SIGNATURE = bytes.fromhex(
    "304502203ecef83fb12a0cae7841055f9f87103a99fd14b424194bbf06c4623d3ee6e3fd"
    "022100d2ace346db262b1374a6b70faa51f518a42ddca13a4125ce6f5052a75bac9fb6"
)
FRAME_CHALLENGE = bytes.fromhex("876aa517ba83fdee65fcffdbca4c84eeae5d54f8041a1fc85c991e5bbb273137")
FRAME_PAGE = bytes.fromhex(
    f"{_GET}6832716c463771445f65356c5f505f62796b7945377135645650674547685f49584a6b655737736e4d5463{_ORIGIN}747275652c"
    "22657874726144617461223a22636c69656e74446174614a534f4e206d617920626520657874656e6465642077697468206164646974696f"
    "6e616c206669656c647320696e20746865206675747572652c207375636820617320746869733a2039327063545644304162792d71346474"
    "6d6a36656667227d"
)
FRAME_SIGNATURE = bytes.fromhex(
    "3046022100eb12fcf23b12764c0f122e22371fab92e283879fd798f38ee1841c951b6e40e7"
    "022100c76237ff9db77b3c56f30837cda6a09acfa2e915544e609c0733b1184036d1cf"
)
LATER = "clientDataJSON may be extended with additional fields in the future, such as this: BkQeDjdcTBrXBiAwJTLE5Q"


def passkey_of(made: webauthn.NewCredential, handle: bytes = b"handle" * 4) -> Passkey:
    """Return the stored passkey of a registration."""
    flags = (made.backup_eligible, made.backed_up, made.transports, 1, None)
    return Passkey(1, 1, "ann", "phone", HOST, handle, made.credential_id, made.public_key, made.sign_count, *flags)


def enrolled(device: Authenticator) -> Passkey:
    """Register a passkey."""
    return passkey_of(registered(PARTY, CHALLENGE, device.create(CREATE)))


def compact(kind: str, challenge: bytes, **more: object) -> bytes:
    """Return clientDataJSON of the examples, which has no spaces."""
    page = json.loads(soft.client_data(kind, soft.in_base64(challenge), "https://example.org", **more))
    return json.dumps(page, separators=(",", ":")).encode()


def test_the_vector_of_rs256() -> None:
    """The registration is accepted: 3,482 bits, with user verification, and synchronised."""
    page = compact("webauthn.create", RS256_CHALLENGE)
    assert page.hex().startswith(
        "7b2274797065223a22776562617574686e2e637265617465222c226368616c6c656e6765223a2276716a77"
    )
    made = registered(EXAMPLE, RS256_CHALLENGE, soft.registration(RS256_ID, page, RS256_DATA))
    assert (made.credential_id, made.sign_count, made.backup_eligible, made.backed_up) == (RS256_ID, 0, True, True)
    assert made.public_key == RS256_DATA[-len(made.public_key) :]


def test_the_vector_of_es256_has_no_user_verification() -> None:
    """Origin, challenge and rpId of the registration are right, and the missing user verification is the reason."""
    page = compact("webauthn.create", ES256_CHALLENGE, extraData=LATER)
    with pytest.raises(Invalid, match="User Verified flag not set"):
        registered(EXAMPLE, ES256_CHALLENGE, soft.registration(ES256_ID, page, ES256_DATA))


def test_the_vector_of_an_assertion() -> None:
    """The signature of the example is accepted for its key, with a credential id of 1,023 octets. With one bit changed,
    it is not."""
    made = webauthn.NewCredential(bytes(1023), LONG_KEY, 0, True, False, ())
    stored = replace(passkey_of(made), rp_id="example.org")
    answer = soft.assertion(bytes(1023), LONG_PAGE, LONG_DATA, LONG_SIGNATURE)
    found = asserted(EXAMPLE, LONG_CHALLENGE, answer, [stored])
    assert (found.sign_count, found.backed_up, found.is_count_back) == (0, False, False)
    wrong = LONG_SIGNATURE[:-1] + bytes([LONG_SIGNATURE[-1] ^ 1])
    with pytest.raises(Invalid, match="Invalid signature"):
        asserted(EXAMPLE, LONG_CHALLENGE, soft.assertion(bytes(1023), LONG_PAGE, LONG_DATA, wrong), [stored])


def test_the_vector_of_a_page_in_a_frame() -> None:
    """The frame of a foreign page is the reason for the refusal."""
    answer = soft.assertion(b"x", FRAME_PAGE, LONG_DATA, FRAME_SIGNATURE)
    with pytest.raises(Invalid, match="foreign frame"):
        asserted(EXAMPLE, FRAME_CHALLENGE, answer, [])


@pytest.mark.parametrize("algorithm", [ES256, EDDSA, RS256])
def test_each_algorithm(algorithm: int) -> None:
    """A passkey is registered, and its assertion is accepted. An assertion of the same key for another page is not."""
    device = Authenticator(algorithm, flags=UP | UV | BE | BS)
    stored = enrolled(device)
    found = asserted(PARTY, CHALLENGE, device.get(GET), [stored])
    assert (found.passkey, found.sign_count, found.backed_up, found.is_count_back) == (stored, 0, True, False)
    answer = json.loads(device.get(GET))
    answer["response"]["signature"] = json.loads(device.get({"challenge": "AA"}))["response"]["signature"]
    with pytest.raises(Invalid, match="Invalid signature"):
        asserted(PARTY, CHALLENGE, json.dumps(answer), [stored])


Change = Callable[[Authenticator], object]
WRONG: dict[str, tuple[Change, str]] = {
    "another origin": (lambda device: setattr(device, "origin", "https://vpn.example.com"), "origin"),
    "a subdomain": (lambda device: setattr(device, "origin", "https://x.vpn.example.org"), "origin"),
    "another port": (lambda device: setattr(device, "origin", f"{ORIGIN}:8443"), "origin"),
    "plain HTTP": (lambda device: setattr(device, "origin", "http://vpn.example.org"), "origin"),
    "another host": (lambda device: setattr(device, "host", "example.org"), "RP ID"),
    "nobody present": (lambda device: setattr(device, "flags", UV), "User Present"),
    "no verification": (lambda device: setattr(device, "flags", UP), "erified flag not set"),
    "impossible backup": (lambda device: setattr(device, "flags", UP | UV | BS), "contradict"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_response_that_is_wrong_in_one_point(case: str) -> None:
    """Neither a registration nor an assertion is accepted."""
    change, text = WRONG[case]
    device = Authenticator()
    stored = enrolled(device)
    change(device)
    for check in (
        lambda: registered(PARTY, CHALLENGE, device.create(CREATE)),
        lambda: asserted(PARTY, CHALLENGE, device.get(GET), [stored]),
    ):
        with pytest.raises(Invalid, match=text) as refused:
            check()
        assert refused.value.fields[0].field == "credential"


def test_an_assertion_for_another_purpose() -> None:
    """The challenge, the type, the frame, the person and the flag for backups are compared."""
    device = Authenticator()
    stored = enrolled(device)
    other = replace(stored, user_handle=b"another" * 4)
    for answer, passkey, text in (
        (device.get({"challenge": soft.in_base64(secrets.token_bytes(32))}), stored, "Wrong challenge"),
        (device.get(GET, kind="webauthn.create"), stored, "Incorrect type"),
        (device.get(GET, crossOrigin=True), stored, "foreign frame"),
        (device.get(GET, crossOrigin="false"), stored, "foreign frame"),
        (device.get(GET), other, "another person"),
        (device.get(GET), replace(stored, rp_id="old.example.org"), "not one of this person"),
        (device.get(GET), replace(stored, backup_eligible=True), "has changed"),
        (Authenticator().get(GET), stored, "not one of this person"),
    ):
        with pytest.raises(Invalid, match=text):
            asserted(PARTY, CHALLENGE, answer, [passkey])
    with pytest.raises(Invalid, match="foreign frame"):
        registered(PARTY, CHALLENGE, device.create(CREATE, crossOrigin=True))


@pytest.mark.parametrize(("stored", "sent", "back"), [(0, 0, False), (0, 1, False), (5, 6, False), (5, 5, True),
                                                      (5, 4, True), (5, 0, True)])  # fmt: skip
def test_the_counter_of_signatures(stored: int, sent: int, back: bool) -> None:
    """A counter that does not grow is reported, unless the authenticator does not count."""
    device = Authenticator()
    passkey = replace(enrolled(device), sign_count=stored)
    device.count = sent
    assert asserted(PARTY, CHALLENGE, device.get(GET), [passkey]).is_count_back is back


def _es(**more: Any) -> dict[int, Any]:
    return soft.cose(soft.new_key(ES256)) | {int(name.replace("m", "-")): value for name, value in more.items()}


KEYS: dict[str, dict[int, Any]] = {
    "an algorithm that was not offered": _es() | {3: -35},
    "an unknown algorithm": _es() | {3: -99},
    "no algorithm": {1: 2, -1: 1},
    "a key type of another algorithm": _es() | {1: 3},
    "a point that is not on the curve": _es() | {-2: bytes(32)},
    "a long coordinate": _es() | {-2: bytes(33)},
    "another curve": _es() | {-1: 2},
    "a number instead of octets": _es() | {-2: 7},
    "a short RSA key": {1: 3, 3: RS256, -1: soft.rsa_key().private_numbers().p.to_bytes(128, "big"), -2: b"\1\0\1"},
    "a short RSA key with zeros": {1: 3, 3: RS256, -1: bytes(128) + b"\xff" * 128, -2: b"\1\0\1"},
    "a long RSA key": {1: 3, 3: RS256, -1: b"\xff" * 513, -2: b"\1\0\1"},
    "a long exponent": soft.cose(soft.rsa_key()) | {-2: b"\1" * 256},
    "a short Ed25519 key": {1: 1, 3: EDDSA, -1: 6, -2: bytes(31)},
}


@pytest.mark.parametrize("case", KEYS)
def test_a_key_that_is_not_accepted(case: str) -> None:
    """A key of another algorithm, a costly key, and a key that cannot be used are refused at the registration."""
    with pytest.raises(Invalid, match="the passkey was not accepted"):
        registered(PARTY, CHALLENGE, Authenticator(public=KEYS[case]).create(CREATE))


def test_only_the_key_itself_is_stored() -> None:
    """Further members of a COSE key are not stored."""
    device = Authenticator(public=_es() | {2: b"kid", -70: b"x" * 500})
    assert len(enrolled(device).public_key) == 77


@pytest.mark.parametrize(("size", "accepted"), [(0, False), (1, True), (1023, True), (1024, False)])
def test_the_length_of_a_credential_id(size: int, accepted: bool) -> None:
    """A credential id has 1 to 1,023 octets."""
    device = Authenticator(credential_id=bytes(size))
    if accepted:
        assert len(enrolled(device).credential_id) == size
    else:
        with pytest.raises(Invalid):
            enrolled(device)


HOSTILE = [
    "", "[]", "null", "1", "{}", '{"rawId": "AA"}', '{"rawId": 7, "response": 7}', '{"response": {}}', "[" * 8000,
    '{"rawId": "AA", "response": {"clientDataJSON": "AA", "attestationObject": "AA"}}', "{" * 100, "\ud800", "9" * 8000,
]  # fmt: skip


@pytest.mark.parametrize("answer", HOSTILE)
def test_what_is_no_response(answer: str) -> None:
    """A text that is no response is refused in words, and never raises another error."""
    with pytest.raises(Invalid):
        registered(PARTY, CHALLENGE, answer)
    with pytest.raises(Invalid):
        asserted(PARTY, CHALLENGE, answer, [])


def test_a_long_response() -> None:
    """The length is checked before the text is read."""
    with pytest.raises(Invalid, match="at most 8192"):
        registered(PARTY, CHALLENGE, " " * (MAX_RESPONSE + 1))


@pytest.mark.parametrize("octets", [b"\x81" * 5000, b"\x9b" + b"\xff" * 8, b"\xa1\x81\x01\x01", b"\xbb" + b"\xff" * 8])
def test_hostile_cbor(octets: bytes) -> None:
    """Deep nesting, huge lengths and keys of maps that are lists are refused."""
    page = soft.client_data("webauthn.create", soft.in_base64(CHALLENGE), ORIGIN)
    answer = json.loads(soft.registration(b"x", page, b""))
    answer["response"]["attestationObject"] = soft.in_base64(octets)
    with pytest.raises(Invalid):
        registered(PARTY, CHALLENGE, json.dumps(answer))


@given(st.binary(max_size=300))
def test_any_authenticator_data_is_accepted_or_refused(octets: bytes) -> None:
    """No octets raise anything but Invalid."""
    page = soft.client_data("webauthn.create", soft.in_base64(CHALLENGE), ORIGIN)
    with pytest.raises(Invalid):
        registered(PARTY, CHALLENGE, soft.registration(b"x", page, octets))


@pytest.mark.parametrize(
    ("url", "host", "origin"),
    [
        ("https://vpn.example.org", "vpn.example.org", "https://vpn.example.org"),
        ("https://VPN.example.org:443/base", "vpn.example.org", "https://vpn.example.org"),
        ("https://localhost:8443", "localhost", "https://localhost:8443"),
    ],
)
def test_the_relying_party_follows_public_url(url: str, host: str, origin: str) -> None:
    """The origin is spelled as browsers spell it."""
    assert relying_party(url) == RelyingParty(host, origin)


@pytest.mark.parametrize("url", ["", "http://vpn.example.org", "https://192.0.2.1", "https://[2001:db8::1]:8443"])
def test_settings_without_passkeys(url: str) -> None:
    """Browsers know no passkeys for plain HTTP and for addresses."""
    with pytest.raises(Conflict, match="public_url"):
        relying_party(url)
