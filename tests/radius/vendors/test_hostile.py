"""Tests that identify() and medium() return a result for every request that decode() accepts."""

from typing import Final

from hypothesis import assume, given
from hypothesis import strategies as st

from sallyport.base.errors import PacketError
from sallyport.radius.attributes import push_attribute, push_vendor_attribute
from sallyport.radius.packet import ACCESS_REQUEST, Request, decode, encode_request
from sallyport.radius.vendors import MEDIA, PRODUCTS, UNKNOWN, identify, medium
from tests.radius.vendors.captures import NAMES, SECRET, capture, octets_of, packet

VENDORS: Final = (0, 9, 11, 311, 2011, 2636, 3076, 12356, 14122, 14179, 14823, 14988, 25053, 25461, 29464, 29671, 99999)
LOOKED_AT: Final = (4, 5, 6, 7, 30, 31, 32, 33, 44, 61, 66, 77, 87, 95, 186, 187, 188)
SCRAPS: Final = sorted(
    {value for name in NAMES for kind in LOOKED_AT for value in capture(name).request().values(kind)}
    | {value for name in NAMES for values in capture(name).request().vendor_values().values() for value in values}
)

values = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(SCRAPS),
    st.builds(lambda scrap, end: scrap[:end], st.sampled_from(SCRAPS), st.integers(0, 20)),
    st.builds(lambda scrap, tail: (scrap + tail)[:240], st.sampled_from(SCRAPS), st.binary(max_size=5)),
    st.text(max_size=20).map(lambda text: text.encode("utf-8", "surrogatepass")[:200]),
)
attributes = st.one_of(
    st.builds(push_attribute, st.sampled_from(LOOKED_AT), values),
    st.builds(push_vendor_attribute, st.sampled_from(VENDORS), st.integers(0, 255), values),
    st.builds(push_attribute, st.just(26), st.binary(max_size=60)),
    st.builds(push_attribute, st.integers(0, 255), st.binary(max_size=60)),
)
sources = st.one_of(st.ip_addresses().map(str), st.text(max_size=20), st.just("fe80::1%eth0"))


def opened(octets: bytes) -> Request:
    """Return a request with these attributes, if the codec accepts it."""
    try:
        return decode(encode_request(ACCESS_REQUEST, 1, SECRET, octets), SECRET)
    except PacketError:
        assume(False)
        raise


def assert_sane(request: Request, source: str) -> None:
    """Assert that a result can be displayed everywhere."""
    identity = identify(request, source=source)
    for finding in (identity.forwarder, identity.nas):
        if finding is not None:
            assert finding.product in PRODUCTS
            assert finding.evidence
            assert all(line.isprintable() and line.isascii() and line for line in finding.evidence)
    assert identity.forwarded or identity.forwarder is None
    assert 33 in request.first or not identity.forwarded
    assert medium(request) in {*MEDIA.values(), UNKNOWN}


@given(st.lists(attributes, max_size=20), sources)
def test_any_attributes_give_a_result(parts: list[bytes], source: str) -> None:
    """Random attributes, wrong lengths, octets that are not UTF-8 and malformed vendor attributes never raise
    an error."""
    assert_sane(opened(b"".join(parts)), source)


@given(st.sampled_from(NAMES), st.lists(attributes, max_size=6), sources)
def test_a_known_packet_with_hostile_attributes_gives_a_result(name: str, parts: list[bytes], source: str) -> None:
    own = octets_of(capture(name).less("Acct-Status-Type").lines)
    assert_sane(opened(b"".join([*parts[:3], own, *parts[3:]])), source)


def test_a_packet_full_of_vendor_attributes_gives_a_result() -> None:
    """A packet with the maximum number of attributes, all of one vendor, gives a result."""
    full = packet(*[f"Attr-26.2636.{number} = 0x00" for number in range(1, 190)])
    assert_sane(full.request(), full.source)
