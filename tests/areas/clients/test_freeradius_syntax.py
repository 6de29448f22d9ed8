"""Tests of the syntax of clients.conf: lines, quotes, comments and braces.

The tests in tests/peers compare with FreeRADIUS.
"""

import re
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.clients.freeradius import findings, read
from sallyport.areas.clients.freeradius_tree import MAX_SECTIONS
from sallyport.base.errors import ClientsFileError
from sallyport.base.secret import Secret

from .conf import client, only, write

WORDS = "client |client a {|ipaddr|secret|netmask|192.0.2.1|templates |clients.conf|if (|:=|+=|${|${x}|$ENV{|x = "
DIRECTIVES = "$INCLUDE |$-INCLUDE |$TEMPLATE |$INCLUDE ./"
TOKENS = [*"{}=,;#'\"`\\ \n\t$/*\xe9", *WORDS.split("|"), *DIRECTIVES.split("|"), "\\\n", "\r\n"]


@pytest.mark.parametrize(
    ("written", "octets"),
    [
        ("plain", b"plain"),
        ("a#b", b"a#b"),
        ("a #b", b"a"),
        ("a}b{", b"a}b{"),
        ("a;b=c", b"a;b=c"),
        ("a,b", b"a"),
        ('a"b', b'a"b'),
        (r"a\nb\\c\101", rb"a\nb\\c\101"),
        ("/a}", b"/a}"),
        ("$x$$", b"$x$$"),
        ("%{x}", b"%{x}"),
        ("=x", b"=x"),
        ('"a b # c"', b"a b # c"),
        ('"a b" # c', b"a b"),
        ('"a b"# c', b"a b"),
        (r'"a\"b"', b'a"b'),
        (r'"a\'b"', rb"a\'b"),
        (r'"a\\b"', rb"a\\b"),
        (r'"a\\\"b"', rb'a\\"b'),
        (r'"\101\n\t\q"', rb"\101\n\t\q"),
        (r"'a\'b'", b"a'b"),
        (r"'a\"b\n'", rb"a\"b\n"),
        ("'${x}$ENV{Y}'", b"${x}$ENV{Y}"),
        (r"`a\`b`", b"a`b"),
        ('"a\xe9\xff\x01"', b"a\xe9\xff\x01"),
        ("'\xa0\x85'", b"\xa0\x85"),
        ('"ab\\\n  cd"', b"ab  cd"),
        ("ab\\\ncd", b"abcd"),
        ("ab\\\r\ncd\r", b"abcd"),
        ('"ab\\"\\\n    cd"', b'ab"cd'),
    ],
)
def test_a_secret_has_the_octets_that_freeradius_reads(tmp_path: Path, written: str, octets: bytes) -> None:
    """A secret has the same value as in FreeRADIUS, with quotes, escapes, comments, commas and continuation lines."""
    assert only(tmp_path, client(secret=written)).secret.reveal() == octets


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('client a {\nsecret = "abc\n}', 2, "a quote is not closed"),
        ("client a {\nsecret = 'abc\\'\n}", 2, "a quote is not closed"),
        ("\nclient a {\nsecret = abc }\n}", 4, "there is no open section for this }"),
        ("}", 1, "there is no open section for this }"),
        ("client a {\nipaddr = ::1\n", 1, "the section is not closed in its file"),
        ("client a\n{\n}", 1, "an = or a section is expected"),
        ("client a b {\n}", 1, "an = or a section is expected"),
        ("client `a` {\n}", 1, "an = or a section is expected"),
        ("client a {\nsecret = abc def\n}", 2, "a comma or the end of the line is expected"),
        ('client a {\nsecret = "abc"def\n}', 2, "a comma or the end of the line is expected"),
        ("client a {\nsecret = ab\xe9\n}", 2, "a comma or the end of the line is expected"),
        ("client a {\nsecret == abc\n}", 2, "== is not expected after a name here"),
        ("client a {\nsecret += abc\n}", 2, "+= is not expected after a name here"),
        ("client a {\nipaddr =*\n}", 2, "=* is not expected after a name here"),
        ("client a {\nfoo }\n}", 2, "} is not expected after a name here"),
        ("client a {\nsecret = a${b\n}", 2, "a reference is not closed"),
        ("client 'a${b}' {\n}", 1, "the reference '${b}' names no item"),
        ("x = 1 \\\n", 1, "the last line of the file ends with a backslash"),
        ("x = " + "y" * 8190, 1, "the line is too long"),
        (f"x = {'y' * 5000}\nz = ${{x}}${{x}}\n", 2, "a value is longer than"),
        ("$INCLUDE\n", 1, "$INCLUDE must be followed by a name"),
        ("$INCLUDE missing\n", 1, "cannot read"),
        ("$INCLUDE missing/\n", 1, "cannot read"),
        ("$-INCLUDE missing/\n", 1, "cannot read"),
        ("$INCLUDE ${missing}\n", 1, "the reference '${missing}' names no item"),
        ("$INCLUDE .\n", 1, "is not a file"),
        ("$INCLUDE clients.conf\n", 1, "includes itself"),
        ("x = 1\n$TEMPLATE t\n", 2, "no template of this name is defined"),
        ("server {\nif (x = '{'\n}\n", 2, "the condition is not followed by a section"),
        ("a {\n" * (MAX_SECTIONS + 1), MAX_SECTIONS + 1, f"nested more than {MAX_SECTIONS} deep"),
    ],
)
def test_a_syntax_error_names_its_line(tmp_path: Path, text: str, line: int, what: str) -> None:
    """The error names the file, the line and the mistake."""
    path = write(tmp_path, text)
    with pytest.raises(ClientsFileError, match=re.escape(f"{path}:{line}: ")) as caught:
        read(path)
    assert what in str(caught.value)


@pytest.mark.parametrize(("octets", "what"), [(b"\xef\xbb\xbfclient", "byte order mark"), (b"a\0b", "a NUL octet")])
def test_octets_that_hide_sections_are_refused(tmp_path: Path, octets: bytes, what: str) -> None:
    """FreeRADIUS ignores the text after a NUL or a byte order mark. Such a file is ambiguous and is refused."""
    with pytest.raises(ClientsFileError, match=what):
        read(write(tmp_path, octets))


@pytest.mark.parametrize(
    "text",
    [
        "client a { ipaddr = ::1, secret = x }",
        "client a {ipaddr=::1,secret=x,}",
        "client a { # {\nipaddr = ::1 # }\nsecret = x } # {",
        "client a {\r\nipaddr = ::1\r\nsecret = x\r\n}\r\n",
        "\tclient\ta{\n\v\fipaddr\t=\t::1\n\tsecret := x\n};\n",
        "client a {\nipaddr = ::1\nlimit { max = 1\n}\nupdate { a += b\n c !* ANY }\nsecret = x\n},",
        "# client b { \\\nclient a {\nipaddr = ::1\nsecret = x # \\\n more\n}\n\\\n",
        "home_server b {\nsecret = y\n}\nlisten {\nipaddr = *\n}\nclient a {\nfoo\nsecret=x\nfoo,x,y\nipaddr=::1\n}",
        'server {\nif ("%{a}" =~ /\\/{2}/ && (\'{\' != "}")) {\n`x {`\n%{x:{}\n} elsif (1) { ok\n}\n}\n'
        'map m "{" {\nx = y\n}\nclient a {\nipaddr = ::1\nsecret = x\n}\n',
    ],
)
def test_the_layout_does_not_matter(tmp_path: Path, text: str) -> None:
    """Braces, commas, comments, other sections and line ends are accepted wherever FreeRADIUS accepts them."""
    entry = only(tmp_path, text)
    assert (entry.name, str(entry.addresses), entry.secret) == ("a", "::1/128", Secret(b"x"))


@given(
    st.one_of(st.binary(max_size=200), st.lists(st.sampled_from(TOKENS)).map(lambda t: "".join(t).encode("latin-1")))
)
def test_any_octets_are_read_or_refused(octets: bytes) -> None:
    """Whatever a file contains, the parser raises only ClientsFileError."""
    with TemporaryDirectory() as folder, suppress(ClientsFileError):
        findings(read(write(Path(folder), octets)))


@given(st.binary(min_size=1, max_size=60).filter(lambda octets: not set(octets) & set(b"\0\n\\'")))
def test_a_quoted_secret_keeps_its_octets(octets: bytes) -> None:
    """Between single quotes every octet is literal, except NUL, line feed, backslash and the quote."""
    with TemporaryDirectory() as folder:
        text = b"client a {\nipaddr = ::1\nsecret = '" + octets + b"'\n}\n"
        assert only(Path(folder), text).secret == Secret(octets)
