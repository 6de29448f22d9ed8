"""Tests of salt-encrypted values: encryption and decryption, an independent implementation, the two hops of a proxy,
and any octets."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyrad.packet import AuthPacket

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import pull_attributes, pull_vendor_attributes, push_attribute, push_vendor_attribute
from sallyport.radius.packet import SharedSecret
from sallyport.radius.password import hide_blocks, reveal_blocks
from sallyport.radius.salted import AS_PASSWORD, HIDDEN, SALTED, Hiding, hidden_places, rehide, without_hidden
from sallyport.radius.values import Attribute, DataType

UPSTREAM = SharedSecret(b"of the upstream"), bytes(range(16))
NAS = SharedSecret(b"of the NAS"), bytes(range(16, 32))
TUNNEL_PASSWORD, MICROSOFT, ARUBA = 69, 311, 14823
KEYS = st.binary(max_size=239)


def hop(of: tuple[SharedSecret, bytes]) -> Hiding:
    """Return the encryption of one reply."""
    return Hiding(*of)


@given(KEYS)
def test_an_encrypted_key_is_decrypted(clear: bytes) -> None:
    """An encrypted key is decrypted unchanged.

    It consists of a salt with its high bit set and complete blocks, and fits into an attribute.
    """
    hidden = hop(NAS).hide(clear)
    assert hop(NAS).reveal(hidden) == clear
    assert hidden[0] & 0x80
    assert len(hidden) % 16 == 2
    assert len(push_vendor_attribute(MICROSOFT, 16, hidden)) <= 255


@given(KEYS)
def test_encryption_is_compatible_with_pyrad(clear: bytes) -> None:
    """pyrad decrypts the values that the codec encrypts, and the codec decrypts those of pyrad."""
    secret, authenticator = NAS
    theirs = AuthPacket(secret=secret.octets, authenticator=authenticator)
    theirs.request_authenticator = authenticator
    assert theirs.SaltDecrypt(hop(NAS).hide(clear)) == clear
    assert hop(NAS).reveal(theirs.SaltCrypt(clear)) == clear


def test_salts_of_a_packet_differ() -> None:
    """The values of one packet have different salts."""
    hiding = hop(NAS)
    assert len({hiding.hide(b"key")[:2] for _ in range(0x8000)}) == 0x8000


def test_a_key_over_239_octets_is_not_encrypted() -> None:
    """A key over 239 octets raises an error, because RADIUS cannot carry it."""
    with pytest.raises(ValueError, match="240 octets"):
        hop(NAS).hide(bytes(240))


@pytest.mark.parametrize("size", [0, 1, 2, 16, 17, 19, 33, 35])
def test_a_value_of_a_wrong_length_is_refused(size: int) -> None:
    """An encrypted value must contain a salt and at least one block."""
    with pytest.raises(PacketError, match=f"invalid length {size}"):
        hop(NAS).reveal(bytes(size))


@pytest.mark.parametrize(("inside", "size"), [(16, 16), (255, 16), (32, 32)])
def test_a_length_past_the_blocks_is_refused(inside: int, size: int) -> None:
    """An inner length that is longer than the blocks is refused.

    A wrong secret nearly always produces such a length.
    """
    secret, authenticator = NAS
    salt = b"\x80\x01"
    value = salt + hide_blocks(bytes((inside,)) + bytes(size - 1), secret, authenticator + salt)
    with pytest.raises(PacketError, match=f"has {size - 1} octets but the length {inside}"):
        hop(NAS).reveal(value)


@given(send=KEYS, password=KEYS, tag=st.integers(0, 0x1F), keys=st.binary(min_size=32, max_size=32))
def test_a_proxy_encrypts_for_the_next_hop(send: bytes, password: bytes, tag: int, keys: bytes) -> None:
    """The NAS can decrypt the values of the upstream server.

    Tags are kept, and all other attributes stay unchanged and in order.
    """
    upstream = hop(UPSTREAM)
    plain = push_attribute(18, b"welcome") + push_vendor_attribute(9, 16, b"no key of Microsoft's")
    given_by_it = (
        plain
        + push_vendor_attribute(MICROSOFT, 16, upstream.hide(send))
        + push_attribute(TUNNEL_PASSWORD, bytes((tag,)) + upstream.hide(password))
        + push_vendor_attribute(MICROSOFT, 12, hide_blocks(keys, *UPSTREAM))
        + plain
    )
    passed_on = rehide(given_by_it, hop(UPSTREAM), hop(NAS))
    assert len(passed_on) == len(given_by_it)
    assert passed_on.startswith(plain)
    assert passed_on.endswith(plain)
    found = list(pull_attributes(passed_on))
    assert hop(NAS).reveal(pull_vendor_attributes(found[2][1])[1][0][1]) == send
    assert (found[3][1][0], hop(NAS).reveal(found[3][1][1:])) == (tag, password)
    assert reveal_blocks(pull_vendor_attributes(found[4][1])[1][0][1], *NAS) == keys


def test_keys_together_in_one_vendor_attribute() -> None:
    """Several keys in one Vendor-Specific attribute stay together with its other attributes.

    Each key gets its own salt.
    """
    upstream = hop(UPSTREAM)
    inside = push_attribute(16, upstream.hide(b"send")) + push_attribute(7, bytes(4))
    value = MICROSOFT.to_bytes(4) + inside + push_attribute(17, upstream.hide(b"receive"))
    passed_on = rehide(push_attribute(26, value), hop(UPSTREAM), hop(NAS))
    ((_, together),) = pull_attributes(passed_on)
    vendor, ((send, first), policy, (receive, second)) = pull_vendor_attributes(together)
    assert (vendor, send, policy, receive) == (MICROSOFT, 16, (7, bytes(4)), 17)
    assert (hop(NAS).reveal(first), hop(NAS).reveal(second)) == (b"send", b"receive")
    assert first[:2] != second[:2]


def test_a_tunnel_password_without_a_tag() -> None:
    """A Tunnel-Password without a tag is recognised by its length."""
    passed_on = rehide(push_attribute(TUNNEL_PASSWORD, hop(UPSTREAM).hide(b"open")), hop(UPSTREAM), hop(NAS))
    assert hop(NAS).reveal(passed_on[2:]) == b"open"


def test_a_dictionary_marks_encrypted_attributes() -> None:
    """Attributes that a dictionary marks as encrypted are encrypted again too.

    Those of the RFCs are encrypted again whatever a dictionary contains.
    """
    passphrase = Attribute("Aruba-MPSK-Passphrase", ARUBA, 44, DataType.OCTETS, encrypt=SALTED)
    part = Attribute("Part", ARUBA, 45, DataType.OCTETS, encrypt=SALTED, parent="Whole")
    wrong = Attribute("MS-CHAP-MPPE-Keys", MICROSOFT, 12, DataType.OCTETS, encrypt=SALTED)
    ascend = Attribute("Ascend-Send-Secret", 529, 214, DataType.STRING, encrypt=3)
    places = hidden_places([passphrase, part, wrong, ascend, Attribute("Class", 0, 25, DataType.OCTETS)])
    assert places == {**HIDDEN, (ARUBA, 44): SALTED}
    assert places[MICROSOFT, 12] == AS_PASSWORD
    octets = push_vendor_attribute(ARUBA, 44, hop(UPSTREAM).hide(b"open"))
    assert rehide(octets, hop(UPSTREAM), hop(NAS)) == octets
    ((_, value),) = pull_attributes(rehide(octets, hop(UPSTREAM), hop(NAS), places))
    assert hop(NAS).reveal(value[6:]) == b"open"


def test_encrypted_attributes_are_left_out() -> None:
    """The encrypted attributes of the RFCs are removed, at any place in a Vendor-Specific attribute.

    If a dictionary is given, its encrypted attributes are removed too.
    """
    places = {**HIDDEN, (ARUBA, 44): SALTED}
    plain = push_attribute(25, b"class") + push_vendor_attribute(ARUBA, 1, b"role")
    second = push_attribute(26, ARUBA.to_bytes(4) + push_attribute(1, b"role") + push_attribute(44, b"hidden"))
    keys = push_attribute(TUNNEL_PASSWORD, b"hidden") + push_vendor_attribute(MICROSOFT, 16, b"hidden")
    assert without_hidden(plain + second + keys) == plain + second
    assert without_hidden(plain + second + keys + push_vendor_attribute(ARUBA, 44, b"hidden"), places) == plain


@pytest.mark.parametrize(
    "attributes",
    [
        push_vendor_attribute(MICROSOFT, 16, b""),
        push_vendor_attribute(MICROSOFT, 17, bytes(20)),
        push_vendor_attribute(MICROSOFT, 12, bytes(24)),
        push_vendor_attribute(MICROSOFT, 12, b""),
        push_attribute(TUNNEL_PASSWORD, bytes(3)),
        b"\x12",
        b"\x12\x01",
        b"\x12\x09abc",
    ],
)
def test_a_malformed_reply_is_refused(attributes: bytes) -> None:
    """An encrypted value that cannot be decrypted is refused, and so is an attribute of a wrong length."""
    with pytest.raises(PacketError):
        rehide(attributes, hop(UPSTREAM), hop(NAS))


@pytest.mark.torture
@given(
    st.lists(
        st.tuples(
            st.sampled_from((18, 26, TUNNEL_PASSWORD)),
            st.sampled_from((b"", b"\0\0\x01\x37\x10")),
            st.binary(max_size=60),
        )
    )
)
def test_any_attributes_are_encrypted_again_or_refused(attributes: list[tuple[int, bytes, bytes]]) -> None:
    """Any attributes are encrypted again or raise PacketError.

    The result is never longer, so that it fits into the answer.
    """
    octets = b"".join(push_attribute(kind, head + value) for kind, head, value in attributes)
    with suppress(PacketError):
        assert len(rehide(octets, hop(UPSTREAM), hop(NAS))) <= len(octets)


def test_which_attributes_are_always_encrypted() -> None:
    """The keys of a session and passwords of tunnels are never sent in the clear."""
    assert HIDDEN == {(0, 69): SALTED, (311, 12): AS_PASSWORD, (311, 16): SALTED, (311, 17): SALTED}
