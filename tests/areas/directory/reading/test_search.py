"""Search filters: how they are checked before they are sent, how they are combined, and how values are escaped."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.directory.reading.search import MAX_DEPTH, MAX_LENGTH, all_of, checked, either, escaped
from sallyport.base.errors import Invalid


@pytest.mark.parametrize(
    "pattern",
    [  # RFC 4515 section 4, and common variants
        "(cn=Babs Jensen)",
        "(!(cn=Tim Howes))",
        "(&(objectClass=Person)(|(sn=Jensen)(cn=Babs J*)))",
        "(o=univ*of*mich*)",
        "(seeAlso=)",
        "(cn:caseExactMatch:=Fred Flintstone)",
        "(cn:=Betty Rubble)",
        "(sn:dn:2.4.6.8.10:=Barney Rubble)",
        "(o:dn:=Ace Industry)",
        "(:1.2.3:=Wilma Flintstone)",
        "(:DN:2.4.6.8.10:=Dino)".replace("DN", "dn"),
        r"(o=Parens R Us \28for all your parenthetical needs\29)",
        r"(cn=*\2A*)",
        r"(filename=C:\5cMyFile)",
        "(sn=Lu\\c4\\8di\\c4\\87)",
        "(1.3.6.1.4.1.1466.0=\\04\\02\\48\\69)",
        "(&)",
        "(|)",
        "(memberOf:1.2.840.113556.1.4.1941:=CN=Staff,DC=corp,DC=example)",
        "(!(userAccountControl:1.2.840.113556.1.4.803:=2))",
        "(uSNChanged>=4711)",
        "(cn~=ann)",
        "(cn;lang-de=Jörg)",
    ],
)
def test_a_filter_is_accepted_unchanged(pattern: str) -> None:
    """A filter in the syntax of RFC 4515 is accepted. Only the white space around it is removed."""
    assert checked(f" {pattern} ") == pattern


def test_parentheses_may_be_left_out() -> None:
    """The parentheses of a filter with a single item may be omitted."""
    assert checked("objectClass=person") == "(objectClass=person)"


@pytest.mark.parametrize(
    "pattern",
    [
        "", "()", "(", ")", "(cn)", "(cn=a", "cn=a)", "(cn=a))", "(cn=a)(cn=b)", "(&(cn=a)", "(!(cn=a)(cn=b))", "(!)",
        r"(cn=\)", r"(cn=\4)", r"(cn=\zz)", "(cn=a\0b)", "(=a)", "(cn>a)", "(cn>=a*)", "(c n=a)", "(cn=(a))", "( cn=a)",
        "(:=a)", "(&(cn=a) (cn=b))", "(é=a)", "(" * 5000, "(!" * (MAX_DEPTH + 2) + "(a=b)" + ")" * (MAX_DEPTH + 2),
        "(cn=" + "a" * MAX_LENGTH + ")",
    ],
)  # fmt: skip
def test_an_invalid_filter_is_refused(pattern: str) -> None:
    with pytest.raises(Invalid, match="must be an LDAP filter"):
        checked(pattern)


@given(st.text(max_size=80))
def test_any_text_is_accepted_or_refused(pattern: str) -> None:
    """Any text is accepted, or it raises Invalid and nothing else. An accepted text stays one filter when it is put
    into another filter.
    """
    try:
        once = checked(pattern)
    except Invalid:
        return
    assert checked(all_of(once, either(once, "(a=b)"))) == f"(&{once}(|{once}(a=b)))"


@given(st.text(max_size=40))
def test_an_escaped_value_stays_a_value(value: str) -> None:
    """An escaped value is never read as filter syntax."""
    pattern = f"(cn={escaped(value)})"
    assert checked(pattern) == pattern
    assert pattern.count("(") == pattern.count(")") == 1
