"""Tests of revocation lists: which list is used, and what it says about a certificate."""

import pytest
import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.authorities.revocation.entries import (
    MAX_HEAD_SIZE,
    REMOVED,
    REVOKED,
    SERIAL,
    Entries,
    ListError,
    packed,
    pull_entries,
    split_list,
)
from sallyport.areas.authorities.revocation.lists import RevocationList, is_named, is_revoked, key_hash, read_list
from sallyport.areas.authorities.revocation.repo import parts_of, read_stored_list, stored_list
from tests.areas import SetClock
from tests.areas.authorities.revocation.issuer import DAY, LISTS, NOW, Issuer, point, scope, with_entries

CA = Issuer.new()
KEY = key_hash(CA.certificate)
US = SetClock().now


def read(octets: bytes, *issuers: Issuer) -> RevocationList:
    """Return a list of the authority of the tests."""
    return read_list(octets, tuple(each.certificate for each in issuers or (CA,)), SetClock().now)


@given(serials=st.sets(st.integers(1, 2**159 - 1), max_size=20), other=st.integers(1, 2**159 - 1))
def test_a_list_has_its_serial_numbers_and_no_other(serials: set[int], other: int) -> None:
    """Each serial number of a list is found, of any length; a number that is not on the list is not found."""
    found = read(CA.crl(*serials))
    assert all(is_revoked(each, found) for each in serials)
    assert is_revoked(other, found) == (other in serials)
    assert found.entries.count == len(serials)


def test_reasons_and_other_extensions_of_entries_are_read_over() -> None:
    """An entry with a reason and a date of invalidity counts as revoked, a hold too."""
    entry = x509.RevokedCertificateBuilder().serial_number(7).revocation_date(NOW)
    entry = entry.add_extension(x509.CRLReason(x509.ReasonFlags.certificate_hold), critical=False)
    entry = entry.add_extension(x509.InvalidityDate(NOW), critical=False)
    builder = x509.CertificateRevocationListBuilder().issuer_name(CA.certificate.subject).last_update(NOW)
    crl = builder.next_update(NOW + DAY).add_revoked_certificate(entry.build()).sign(CA.key, hashes.SHA256())
    assert is_revoked(7, read(crl.public_bytes(Encoding.DER)))


def test_the_table_of_entries_outlasts_the_store() -> None:
    """A list is the same after it was stored in parts and read again."""
    found = read(CA.crl(*range(1, 400), extensions=[(scope(full_name=[uri(LISTS)]), True)]))
    octets = b"".join(parts_of(found.entries))
    again = read_stored_list(stored_list(found), Entries.of(packed(octets), found.entries.count))
    assert again.entries.count == 399 and all(is_revoked(each, again) for each in range(1, 400))
    assert not is_revoked(400, again)
    assert (again.scope, again.number, again.next_update, again.sha256) == (
        found.scope, found.number, found.next_update, found.sha256,
    )  # fmt: skip


def uri(address: str) -> x509.UniformResourceIdentifier:
    """Return an address as a name in a certificate."""
    return x509.UniformResourceIdentifier(address)


TWIN = Issuer.new()
REFUSED = {
    "another authority's": (Issuer.new("Other CA").crl(), "not a certificate of this authority: CN=Other"),
    "one of the same name and another key": (TWIN.crl(), "not signed by its issuer's key"),
    "one that is not valid yet": (CA.crl(since=NOW + DAY, until=NOW + 2 * DAY), "not valid yet"),
    "an indirect one": (CA.crl(extensions=[(scope(indirect_crl=True), True)]), "an indirect list"),
    "one of some reasons": (
        CA.crl(extensions=[(scope(only_some_reasons=frozenset({x509.ReasonFlags.key_compromise})), True)]),
        "for some reasons only",
    ),
    "one of attribute certificates": (
        CA.crl(extensions=[(scope(only_contains_attribute_certs=True), True)]),
        "attribute certificates",
    ),
    "one with an unknown critical extension": (
        CA.crl(extensions=[(x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\5\0"), True)]),
        r"unknown critical extension \(1.2.3.4\)",
    ),
    "one that is cut off": (CA.crl(1, 2)[:-1], "truncated"),
    "one with more octets": (CA.crl(1, 2) + b"\0", "not a certificate revocation list in DER"),
    "a page": (b"<html>404</html>", "not a certificate revocation list in DER|truncated"),
    "nothing": (b"", "truncated"),
    "no list in PEM": (b"-----BEGIN X509 CRL-----\nM!==\n-----END X509 CRL-----\n", "in PEM"),
}  # fmt: skip


@pytest.mark.parametrize(("octets", "why"), REFUSED.values(), ids=REFUSED)
def test_a_list_is_refused(octets: bytes, why: str) -> None:
    """A list that this service must not use, or cannot use, is refused with the reason."""
    with pytest.raises(ListError, match=why):
        read(octets)


def test_a_changed_list_is_refused() -> None:
    """A list with one changed octet in an entry is refused, because its signature does not match."""
    octets = bytearray(CA.crl(0x1122334455667788))
    at = octets.index(bytes.fromhex("1122334455667788"))
    octets[at] ^= 1
    with pytest.raises(ListError, match="not signed"):
        read(bytes(octets))


def test_an_authority_that_may_not_sign_lists_signs_none() -> None:
    """A certificate without the key usage cRLSign signs no list."""
    other = Issuer.new(signs_lists=False)
    with pytest.raises(ListError, match="not signed"):
        read(other.crl(), other)


def test_the_signer_is_found_by_its_key() -> None:
    """Of two authorities with one name, the one whose key has signed the list is its issuer."""
    found = read(TWIN.crl(1), CA, TWIN)
    assert found.issuer_key == key_hash(TWIN.certificate) != KEY
    certificate = CA.issue(serial=1)
    assert not found.covers(certificate, KEY) and found.covers(certificate, found.issuer_key)


def test_a_list_in_pem_is_read() -> None:
    """A list in PEM is read as one in DER."""
    crl = x509.load_der_x509_crl(CA.crl(5))
    assert is_revoked(5, read(crl.public_bytes(Encoding.PEM)))


def test_a_list_says_nothing_outside_its_scope() -> None:
    """A list of users' certificates is not about authorities, and one of other distribution points not about a
    certificate of this one."""
    user, of_ca = CA.issue(lists=[point(LISTS)]), CA.subordinate().certificate
    users = read(CA.crl(extensions=[(scope(only_contains_user_certs=True), True)]))
    authorities = read(CA.crl(extensions=[(scope(only_contains_ca_certs=True), True)]))
    here = read(CA.crl(extensions=[(scope(full_name=[uri(LISTS)]), True)]))
    elsewhere = read(CA.crl(extensions=[(scope(full_name=[uri("http://pki.example.test/2.crl")]), True)]))
    assert users.covers(user, KEY) and not users.covers(of_ca, KEY)
    assert authorities.covers(of_ca, KEY) and not authorities.covers(user, KEY)
    assert here.covers(user, KEY) and not elsewhere.covers(user, KEY)
    assert not here.covers(CA.issue(), KEY)


def test_a_delta_list_changes_the_complete_list() -> None:
    """A delta list adds and removes certificates. It applies only to a list of its base number or later, and of the
    same scope."""
    complete = read(CA.crl(1, 2, number=10))
    delta = read(CA.crl(3, number=12, base=9, removed=[2]))
    assert complete.takes_delta(delta)
    assert [is_revoked(each, complete, delta, US) for each in (1, 2, 3, 4)] == [True, False, True, False]
    after = delta.next_update  # an expired delta list still revokes, but removes nothing
    assert [is_revoked(each, complete, delta, after) for each in (1, 2, 3, 4)] == [True, True, True, False]
    assert delta.entries.find(3) == REVOKED and delta.entries.find(2) == REMOVED
    assert not complete.takes_delta(read(CA.crl(3, number=12, base=11)))
    assert not complete.takes_delta(read(CA.crl(3, number=10, base=9)))
    other_scope = [(scope(only_contains_user_certs=True), True)]
    assert not complete.takes_delta(read(CA.crl(3, number=12, base=9, extensions=other_scope)))


def test_an_older_list_does_not_replace_a_newer_one() -> None:
    """The CRL number decides; without numbers, the time does."""
    new, old = read(CA.crl(number=3, since=NOW - 2 * DAY)), read(CA.crl(number=2))
    assert new.may_replace(old, US) and not old.may_replace(new, US)
    late, early = read(CA.crl(number=None)), read(CA.crl(number=None, since=NOW - 2 * DAY))
    assert late.may_replace(early, US) and not early.may_replace(late, US)


@given(st.binary(max_size=300))
def test_any_octets_are_a_list_or_refused(octets: bytes) -> None:
    """No octets raise anything but ListError."""
    for each in (octets, b"\x30\x82" + len(octets).to_bytes(2) + octets):
        try:
            parts = split_list(each)
            list(pull_entries(parts.entries))
        except ListError:
            pass
        with pytest.raises(ListError):
            read(each)


@given(at=st.integers(0, 300), octet=st.integers(0, 255))
def test_a_list_with_any_changed_octet_is_refused_or_the_same(at: int, octet: int) -> None:
    """Each change of an octet is found by the signature, or was none."""
    octets = bytearray(CHANGED)
    at %= len(octets)
    octets[at] = octet
    if bytes(octets) != CHANGED:
        with pytest.raises(ListError):
            read(bytes(octets))


CHANGED = CA.crl(1, 2, 3, 2**150)


def test_colliding_serial_numbers_take_no_longer_to_find() -> None:
    """A serial number that is part of two neighbouring entries is not found."""
    inside = int.from_bytes((b"\1" * SERIAL + REVOKED + b"\2" * SERIAL)[10 : 10 + SERIAL])
    table = Entries.of([REVOKED + b"\1" * SERIAL, REVOKED + b"\2" * SERIAL], 0)
    assert table.find(inside) is None and table.find(int.from_bytes(b"\2" * SERIAL)) == REVOKED


def test_a_weak_hash_is_refused() -> None:
    """A list whose signature uses a short hash is refused."""
    with pytest.raises(ListError, match="weak hash"):
        read(CA.crl(algorithm=hashes.SHA224()))


async def test_a_list_of_20_mib_does_not_hold_the_event_loop() -> None:
    """While a worker thread reads half a million entries, other tasks run, and the table has 21 octets for each."""
    whole = with_entries(CA, CA.crl(5), (1 << 120 | each for each in range(430_000)))
    assert len(whole) > 19 * 1024 * 1024
    passes, found = 0, list[RevocationList]()

    async def count_passes() -> None:
        nonlocal passes
        while not found:
            await trio.lowlevel.checkpoint()
            passes += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count_passes)
        found.append(await trio.to_thread.run_sync(read, whole))
    assert found[0].entries.count == 430_000 and found[0].entries.octets < 10 * 1024 * 1024
    assert is_revoked(1 << 120 | 77, found[0]) and not is_revoked(77, found[0])
    assert passes > 20


def test_a_number_that_is_too_long_is_refused() -> None:
    """A CRL number of more than 20 octets cannot be stored as a decimal number."""
    assert read(CA.crl(number=(1 << 160) - 1)).number == (1 << 160) - 1
    with pytest.raises(ListError, match="more than 20 octets"):
        read(CA.crl(number=1 << 160))
    with pytest.raises(ListError, match="more than 20 octets"):
        read(CA.crl(number=2, base=1 << 16_000))


def test_a_long_head_is_refused() -> None:
    """A list without its entries has at most 64 KiB, before `cryptography` reads it."""
    long = x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), bytes(MAX_HEAD_SIZE))
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a") for _ in range(MAX_HEAD_SIZE // 10)])
    for octets in (CA.crl(extensions=[(long, False)]), CA.crl(name=name)):
        with pytest.raises(ListError, match="more than 64 KiB"):
            split_list(octets)


def test_a_long_issuer_is_not_read() -> None:
    """The issuer is compared by its octets before the signature is verified; only a short name is read."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a") for _ in range(1000)])
    with pytest.raises(ListError, match=r"a name of \d+ octets"):
        read(CA.crl(name=name))

    def unread() -> x509.Name:
        raise AssertionError

    assert not is_named(CA.certificate, bytes(4096), unread)
    assert split_list(CA.crl(1)).issuer == CA.certificate.subject.public_bytes()


def test_another_list_of_the_authority_does_not_replace_a_list() -> None:
    """A list of another key, scope or kind is signed too, but says less. If the list has expired, one of another key
    or scope replaces it, for an authority with a new key."""
    complete = read(CA.crl(1, number=1))
    authorities = read(CA.crl(number=2, extensions=[(scope(only_contains_ca_certs=True), True)]))
    twin, delta = read(TWIN.crl(number=2), CA, TWIN), read(CA.crl(number=2, base=1))
    after = complete.next_update
    assert not any(each.may_replace(complete, US) for each in (authorities, twin, delta))
    assert [each.may_replace(complete, after) for each in (authorities, twin, delta)] == [True, True, False]
