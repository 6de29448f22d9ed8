"""LDIF (RFC 2849): the examples of the RFC, input in chunks of any size, and malformed input."""

from base64 import b64encode
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.directory.entry.ldif import (
    MAX_LINES,
    MAX_STEPS,
    Deletion,
    EntryContent,
    LdifError,
    LdifParser,
    LdifStep,
    Modification,
    Record,
    Renaming,
)

EXAMPLES = b"""version: 1
dn: cn=Barbara Jensen, ou=Product Development, dc=airius, dc=com
objectclass: top
objectclass: person
cn: Barbara Jensen
cn;lang-en:: QmFicw==
description:Babs is a big sailing fan, and travels extensively in sea
 rch of perfect sailing conditions.
title:  Product Manager, Rod and Reel Division

# Delete an existing entry
dn: cn=Robert Jensen, ou=Marketing, dc=airius, dc=com
changetype: delete

dn: cn=Paul Jensen, ou=Product Development, dc=airius, dc=com
control: 1.2.3 false
changetype: modrdn
newrdn: cn=Paula Jensen
deleteoldrdn: 1
newsuperior: ou=Accounting, dc=airius, dc=com

dn: cn=Paula Jensen, ou=Product Development, dc=airius, dc=com
changetype: modify
add: postaladdress
postaladdress: 123 Anystreet $ Sunnyvale, CA $ 94086
-
delete: description
-
replace: telephonenumber
telephonenumber: +1 408 555 1234
telephonenumber: +1 408 555 5678
-
"""


def read(octets: bytes, *cuts: int) -> list[Record]:
    """Return all records of a file that arrives in chunks. cuts: the offsets at which the chunks are cut."""
    parser, found = LdifParser(), list[Record]()
    ends = sorted(min(cut, len(octets)) for cut in cuts)
    for start, end in zip((0, *ends), (*ends, len(octets)), strict=True):
        found += parser.feed(octets[start:end])
    return [*found, *parser.close()]


def test_the_examples_of_the_rfc_are_read() -> None:
    """The records of the examples are read: content, deletions, renamings and modifications, with folded lines, base64
    and attribute options.
    """
    content, deletion, renaming, modification = read(EXAMPLES)
    assert isinstance(content, EntryContent) and content.line == 2
    assert content.raw.attributes["cn"] == (b"Barbara Jensen", b"Babs")
    assert content.raw.attributes["description"][0].endswith(b"in search of perfect sailing conditions.")
    assert content.raw.attributes["title"] == (b"Product Manager, Rod and Reel Division",)
    assert deletion == Deletion(12, "cn=Robert Jensen, ou=Marketing, dc=airius, dc=com")
    paul = "cn=Paul Jensen, ou=Product Development, dc=airius, dc=com"
    assert renaming == Renaming(15, paul, "cn=Paula Jensen", True, "ou=Accounting, dc=airius, dc=com")
    assert isinstance(modification, Modification)
    assert [(step, name, len(values)) for step, name, values in modification.steps] == [
        (LdifStep.ADD, "postaladdress", 1),
        (LdifStep.DELETE, "description", 0),
        (LdifStep.REPLACE, "telephonenumber", 2),
    ]  # fmt: skip


@given(st.lists(st.integers(0, len(EXAMPLES)), max_size=8), st.booleans())
def test_any_chunks_give_the_same_records(cuts: list[int], carriage: bool) -> None:
    """The records depend neither on how the file is split into chunks nor on its line endings."""
    octets = EXAMPLES.replace(b"\n", b"\r\n") if carriage else EXAMPLES
    assert read(octets, *cuts) == read(EXAMPLES)


@given(st.binary(max_size=400))
def test_any_octets_are_read_or_refused(octets: bytes) -> None:
    """Any octets are read, or they raise an error with the number of a line in the file."""
    try:
        read(octets)
    except LdifError as error:
        assert 1 <= error.line <= octets.count(b"\n") + 1


@given(st.lists(st.sampled_from(EXAMPLES.split(b"\n")), max_size=30), st.sampled_from([b"\n", b"\n ", b"\n\n"]))
def test_valid_lines_in_any_order_are_read_or_refused(lines: list[bytes], between: bytes) -> None:
    """Valid lines in any order are read, or they raise LdifError and nothing else."""
    with suppress(LdifError):
        assert isinstance(read(between.join(lines)), list)


@given(st.binary(max_size=200), st.integers(1, 76))
def test_any_value_survives_base64_and_folding(value: bytes, width: int) -> None:
    text = b"photo:: " + b64encode(value)
    folded = b"\n ".join([text[at : at + width] for at in range(0, len(text), width)])
    (found,) = read(b"dn: cn=x\n" + folded + b"\n")
    assert isinstance(found, EntryContent) and found.raw.attributes["photo"] == (value,)


@pytest.mark.parametrize(
    "octets",
    [
        b"dn: cn=x\nchangetype: delete\ncn: x\n", b"dn: cn=x\nchangetype: modify\ncn: x\n",
        b"dn: cn=x\nchangetype: modify\nadd: cn\n-\n", b"dn: cn=x\nchangetype: modify\nadd: cn\nsn: x\n-\n",
        b"dn: cn=x\nchangetype: modrdn\nnewrdn: cn=y\n",
        b"dn: cn=x\nchangetype: modrdn\nnewrdn: cn=y\ndeleteoldrdn: 2\n",
        b"dn: cn=x\ncontrol: 1.2 true\nchangetype: delete\n", b" folded\n", b"dn: cn=x\ncn: a\ndn: cn=y\n",
        b"dn: cn=x\n1cn: a\n", b"dn:: ////\ncn: x\n", b"dn: cn=x\n-\n",
    ],
)  # fmt: skip
def test_malformed_records_are_refused(octets: bytes) -> None:
    """A malformed record is refused, and the error names its line."""
    with pytest.raises(LdifError, match=r"line \d+: "):
        read(octets)


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_a_byte_order_mark_is_ignored(cut: int) -> None:
    """A byte order mark at the start of the file is ignored, because some editors write it."""
    assert read(b"\xef\xbb\xbf" + EXAMPLES, cut) == read(EXAMPLES)


def test_the_number_of_lines_of_an_entry_is_limited() -> None:
    """An entry may have at most MAX_LINES lines, because short lines take far more memory than space in the file."""
    head, more = b"\n\ndn: cn=x\n", (MAX_LINES - 1) * b"a:\n"
    (whole,) = read(head + more)
    assert isinstance(whole, EntryContent) and len(whole.raw.attributes["a"]) == MAX_LINES - 1
    with pytest.raises(LdifError, match=r"^line 3: the entry that begins here has more than 500,000 lines"):
        read(head + more + b"a:\n")


def test_the_number_of_parts_of_a_modification_is_limited() -> None:
    """A modification may have at most MAX_STEPS parts, because each part reads all members of a group while logins
    wait.
    """
    part = b"add: member\nmember: cn=x\n-\n"
    head = b"dn: cn=ops,dc=x\nchangetype: modify\n"
    (whole,) = read(head + MAX_STEPS * part)
    assert isinstance(whole, Modification) and len(whole.steps) == MAX_STEPS
    with pytest.raises(LdifError, match=r"^line 3003: a modification has at most 1,000 parts"):
        read(head + (MAX_STEPS + 1) * part)
