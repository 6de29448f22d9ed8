"""Requests to an LDAP server, as octets."""

import pytest

from sallyport.areas.directory.reading.requests import (
    element,
    encoded_filter,
    message,
    page_control,
    policy_control,
    search,
    simple_bind,
    start_tls,
)
from sallyport.areas.directory.reading.search import checked, escaped


@pytest.mark.parametrize(
    ("text", "octets"),
    [
        pytest.param("(cn=ann)", "a309 0402636e 0403616e6e", id="equal"),
        pytest.param("(cn=)", "a306 0402636e 0400", id="equal to nothing"),
        pytest.param("(cn=*)", "8702636e", id="present"),
        pytest.param("(cn=a*)", "a409 0402636e 3003 800161", id="beginning"),
        pytest.param("(cn=*a)", "a409 0402636e 3003 820161", id="end"),
        pytest.param("(cn=a*b*c*d)", "a412 0402636e 300c 800161 810162 810163 820164", id="parts"),
        pytest.param("(cn=*a*)", "a409 0402636e 3003 810161", id="any"),
        pytest.param("(n>=1)", "a506 04016e 040131", id="greater"),
        pytest.param("(n<=1)", "a606 04016e 040131", id="less"),
        pytest.param("(n~=1)", "a806 04016e 040131", id="approximate"),
        pytest.param("(a:1.2:=3)", "a90b 8103312e32 820161 830133", id="rule"),
        pytest.param("(a:dn:=3)", "a909 820161 830133 8401ff", id="with the DN"),
        pytest.param("(:dn:1.2:=3)", "a90b 8103312e32 830133 8401ff", id="rule without an attribute"),
        pytest.param("(a:dn:1.2:=3)", "a90e 8103312e32 820161 830133 8401ff", id="all parts"),
        pytest.param("(a:=3)", "a906 820161 830133", id="extensible equal"),
        pytest.param("(!(a=1))", "a208 a306 040161 040131", id="not"),
        pytest.param("(&)", "a000", id="true"),
        pytest.param("(|(a=1)(&(b=*)(c=2)))", "a115 a306 040161 040131 a00b 870162 a306 040163 040132", id="nested"),
        pytest.param("(a=\\2a\\28\u00e9)", "a309 040161 04042a28c3a9", id="escapes and UTF-8"),
        pytest.param("(a;lang-de=b=c)", "a310 0409613b6c616e672d6465 0403623d63", id="options and an equals sign"),
    ],
)
def test_filters(text: str, octets: str) -> None:
    """A filter is encoded as RFC 4511 section 4.5.1.7 says."""
    assert encoded_filter(checked(text)).hex() == octets.replace(" ", "")


@pytest.mark.parametrize("text", ["(&(a=1) (b=2))", "(& (a=1)(b=2) )", "(&(a=1)  (b=2))"])
def test_blanks_between_the_parts_of_a_filter(text: str) -> None:
    """A filter of a login may have blanks between its parts. No part is left out."""
    assert encoded_filter(text) == encoded_filter("(&(a=1)(b=2))")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "a=1",
            "(a=1",
            "(a=1))",
            "(a=1)(b=2)",
            "(a)",
            "(=1)",
            "(a=\\zz)",
            "(a=\\2)",
            "(a=1\\",
            "(&(a=1)b=2)",
            "(&(a=1)",
        ),
        *(
            "(!)",
            "(!(a=1)(b=2))",
            "(&(a=1)())",
            "(a=(b=1))",
            "(" * 200 + "a=1" + ")" * 200,
            "(!" * 200 + "(a=1)" + ")" * 200,
        ),
    ],
)
def test_what_is_no_filter_is_refused(text: str) -> None:
    """A text that is no filter is never sent in part, because the rest of a filter may restrict who can log in."""
    with pytest.raises(ValueError, match=r"filter|substring|hex"):
        encoded_filter(text)


@pytest.mark.parametrize("value", ["*()\\\0", "\u00e9\u4e2d", "", "a*b", "\\2a"])
def test_an_escaped_value_is_sent_as_it_is(value: str) -> None:
    """A name that a user has typed is a value, whatever characters it has."""
    expected = element(0xA3, element(0x04, b"uid"), element(0x04, value.encode()))
    assert encoded_filter(checked(f"(uid={escaped(value)})")) == expected


def test_long_elements() -> None:
    """The length has as many octets as it needs."""
    assert element(0x04, b"x" * 127)[:2].hex() == "047f"
    assert element(0x04, b"x" * 128)[:3].hex() == "048180"
    assert element(0x04, b"x" * 256)[:4].hex() == "04820100"


def test_requests() -> None:
    """The requests are those of RFC 4511, with version 3 and without aliases."""
    assert message(1, start_tls()).hex() == "301d02010177188016" + b"1.3.6.1.4.1.1466.20037".hex()
    assert message(1, simple_bind("cn=a", "pw")).hex() == "30120201016 00d0201030404636e3d61 80027077".replace(" ", "")
    found = search("dc=a", "(cn=*)", ["cn", "sn"], whole_tree=True, most=2)
    expected = "6323 040464633d61 0a0102 0a0100 020102 020100 010100 8702636e 3008 0402636e 0402736e"
    assert found.hex() == expected.replace(" ", "")
    assert message(128, b"\x42\x00")[:6].hex() == "300602020080"


def test_controls() -> None:
    """A page has its size and the cookie of the page before. Neither control is critical."""
    assert message(2, b"\x42\x00", policy_control())[7:9].hex() == "a01d"
    value = element(0x04, bytes.fromhex("3008 020200c8 0402 6162"))
    assert page_control(200, b"ab") == element(0x30, element(0x04, b"1.2.840.113556.1.4.319"), value)
