"""Distinguished names: parsing and normalization."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.directory.entry.dn import MAX_SIZE, escaped, lies_below, moved, normalized, pairs_of, parsed
from sallyport.base.errors import Invalid

VALUES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
TYPES = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,8}|[0-9](\.[0-9]{1,3}){1,3}", fullmatch=True)


@pytest.mark.parametrize(
    ("dn", "names"),
    [  # RFC 4514 section 4
        ("UID=jsmith,DC=example,DC=net", [[("uid", "jsmith")], [("dc", "example")], [("dc", "net")]]),
        (
            "OU=Sales+CN=J.  Smith,DC=example,DC=net",
            [[("ou", "Sales"), ("cn", "J.  Smith")], [("dc", "example")], [("dc", "net")]],
        ),
        (
            r"CN=James \"Jim\" Smith\, III,DC=example,DC=net",
            [[("cn", 'James "Jim" Smith, III')], [("dc", "example")], [("dc", "net")]],
        ),
        (r"CN=Before\0dAfter,DC=example,DC=net", [[("cn", "Before\rAfter")], [("dc", "example")], [("dc", "net")]]),
        ("1.3.6.1.4.1.1466.0=#04024869", [[("1.3.6.1.4.1.1466.0", "Hi")]]),
        (r"CN=Lu\C4\8Di\C4\87", [[("cn", "Lučić")]]),
        ("", []),
        (" ", []),
        ("2.5.4.3=a,OID.2.5.4.11=b,commonName=c", [[("cn", "a")], [("ou", "b")], [("cn", "c")]]),
        ('cn="Comma, the" ; dc = example', [[("cn", "Comma, the")], [("dc", "example")]]),
        (r"cn=\ a\ ,dc=b", [[("cn", " a ")], [("dc", "b")]]),
        (r"cn=a\\ ,dc=b", [[("cn", "a\\")], [("dc", "b")]]),
        (r"cn=\#1,dc=b", [[("cn", "#1")], [("dc", "b")]]),
        ("cn=a#b=c,dc=b", [[("cn", "a#b=c")], [("dc", "b")]]),
        ("cn=,dc=b", [[("cn", "")], [("dc", "b")]]),
        (r"CN=off\0ADEL:1f,CN=Deleted Objects", [[("cn", "off\nDEL:1f")], [("cn", "Deleted Objects")]]),
    ],
)
def test_a_name_is_split_into_its_parts(dn: str, names: list[list[tuple[str, str]]]) -> None:
    """The examples of RFC 4514 are split into their parts, and so are names in the spelling of older programs."""
    assert parsed(dn) == names


@pytest.mark.parametrize(
    "dn",
    [
        "ann", ",", "cn=a,", ",cn=a", "cn=a,,dc=b", "cn", "=a", "1=a", "1..2=a", "c n=a", "cn=a\0b", "cn=a\\",
        "cn=\\zz", "cn=#0", "cn=#zz", "cn=#", "cn=#05001234", "cn=#0402ffff", "cn=\\ff",
        'cn="a', 'cn="a"b', "cn=a<b", "cn=\ud800", "cn=" + "a" * MAX_SIZE, "cn=a+", "cn=é\\c3", "ü=a",
    ],
)  # fmt: skip
def test_text_that_is_not_a_name_is_refused(dn: str) -> None:
    """Text that is not a name raises Invalid."""
    with pytest.raises(Invalid):
        parsed(dn)
    with pytest.raises(Invalid):
        normalized(dn)
    assert list(pairs_of(dn)) == []


@pytest.mark.parametrize(
    "same",
    [
        ("CN=Ann  Lee,DC=Example", "cn=ann lee, dc=example", "2.5.4.3= Ann Lee ;dc=EXAMPLE", 'cn="ANN LEE",dc=example'),
        ("ou=a+cn=b,dc=c", "CN=B+OU=A,DC=C"),
        (r"cn=a\2cb", r"cn=a\,b", 'cn="a,b"'),
        ("cn=Straße", "cn=STRASSE"),
        ("cn=ﬁt", "cn=fit"),
        ("cn=Jo\u0308rg", "cn=J\u00f6rg"),
        (r"cn=\20a\20", "cn=a"),
        ("cn=#0c026162", "cn=AB"),
    ],
)
def test_equal_names_have_one_normalized_form(same: tuple[str, ...]) -> None:
    """All spellings of a name have the same normalized form."""
    assert len({normalized(dn) for dn in same}) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cn=a,dc=b", "cn=a+dc=b"),
        (r"cn=a\,dc=b", "cn=a,dc=b"),
        ("cn=a\\+ou=b", "cn=a+ou=b"),
        ("cn=a", "ou=a"),
        ("cn=a b", "cn=ab"),
        (r"cn=\#04024869", "cn=#04024869"),
        (r"cn=a\\,dc=b", r"cn=a\\\,dc=b"),
    ],
)
def test_different_names_have_different_normalized_forms(one: str, other: str) -> None:
    """A separator inside of a value is not read as a separator between parts, so different names have different
    normalized forms.
    """
    assert normalized(one) != normalized(other)


@given(st.text(max_size=60))
def test_any_text_is_a_name_or_is_refused(dn: str) -> None:
    """Any text is a name, or it raises Invalid and nothing else. Normalizing a name a second time changes nothing."""
    try:
        once = normalized(dn)
    except Invalid:
        return
    assert normalized(once) == once


@given(st.lists(st.tuples(TYPES, VALUES), min_size=1, max_size=5))
def test_any_value_survives_escaping(pairs: list[tuple[str, str]]) -> None:
    """When a value is escaped and parsed again, it is the same as before."""
    dn = ",".join(f"{name}={escaped(value)}" for name, value in pairs)
    assert [value for _, value in pairs_of(dn)] == [value for _, value in pairs]
    assert normalized(dn) == normalized(normalized(dn))


@pytest.mark.parametrize(
    ("dn", "above", "to", "expected"),
    [
        ("uid=a,ou=b,dc=x", "ou=b,dc=x", "ou=c,o=y", "uid=a,ou=c,o=y"),
        ("UID=a+CN=b\\, c, OU = B ,dc=X", "OU=b, dc=x", "ou=c,dc=x", "uid=a+cn=b\\, c,ou=c,dc=x"),
        ('cn="d,ou=b",ou=e,ou=b,dc=x', "ou=b,dc=x", "ou=c", "cn=d\\,ou\\=b,ou=e,ou=c"),
        ("ou=b,dc=x", "ou=b,dc=x", "", None),
        ("cn=a\\,ou\\=b\\,dc\\=x,dc=y", "ou=b,dc=x", "", None),
        ("uid=a,ou=bb,dc=x", "b,dc=x", "", None),
        ("no name", "ou=b,dc=x", "", None),
    ],
)
def test_an_entry_below_another_moves_with_it(dn: str, above: str, to: str, expected: str | None) -> None:
    """When an entry is moved, the names of the entries below it change, whatever their spelling is. Other names stay
    the same.
    """
    try:
        over = normalized(above)
    except Invalid:
        over = above
    assert lies_below(dn, over) == (expected is not None)
    if expected is not None:
        assert moved(dn, above, to) == expected
