"""Tests of multipart/form-data (RFC 7578): parts of a body that arrives in pieces, and malformed bodies."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.base.errors import Invalid
from sallyport.web.upload import Begin, End, FormParser


def body(*parts: tuple[str, bytes]) -> bytes:
    """Return a form with these parts. Each part is given with the parameters of its header."""
    whole = b"".join(
        f"--x\r\nContent-Disposition: form-data; {head}\r\nContent-Type: text/plain\r\n\r\n".encode() + octets + b"\r\n"
        for head, octets in parts
    )
    return whole + b"--x--\r\nafter"


def read(octets: bytes, *cuts: int) -> list[tuple[Begin, bytes]]:
    """Return the parts of a body that is fed in pieces. Raise Invalid if the body is malformed or incomplete."""
    parser, found, held = FormParser("multipart/form-data; boundary=x"), list[tuple[Begin, bytes]](), bytearray()
    ends = sorted(min(cut, len(octets)) for cut in cuts)
    begin: Begin | None = None
    for start, end in zip((0, *ends), (*ends, len(octets)), strict=True):
        for event in parser.feed(octets[start:end]):
            if isinstance(event, Begin):
                begin, held = event, bytearray()
            elif isinstance(event, End):
                assert begin is not None
                found.append((begin, bytes(held)))
            else:
                held += event
    if not parser.complete:
        raise Invalid("cut off")
    return found


@given(st.binary(max_size=300), st.lists(st.integers(0, 600), max_size=9))
def test_any_file_is_read_from_any_pieces(octets: bytes, cuts: list[int]) -> None:
    """The content is unchanged wherever the body is cut, unless it contains the boundary."""
    octets = octets.replace(b"\r\n--x", b"")
    whole = body(("name=a", b"1"), ('name="file"; filename="a \\"b\\".ldif"', octets))
    assert read(whole, *cuts) == [(Begin("a", None), b"1"), (Begin("file", 'a "b".ldif'), octets)]


@given(
    st.lists(st.sampled_from([b"--x", b"--", b"\r\n", b"\r\n\r\n", b"content-disposition: form-data; name=a", b"q"]))
)
def test_any_octets_are_read_or_refused(pieces: list[bytes]) -> None:
    with suppress(Invalid):
        assert isinstance(read(b"".join(pieces)), list)


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary=", "a; boundary=" + "x" * 71])
def test_a_content_type_without_a_valid_boundary_is_refused(kind: str) -> None:
    """A missing, empty or too long boundary is Invalid."""
    with pytest.raises(Invalid):
        FormParser(kind)


@pytest.mark.parametrize(
    ("kind", "boundary"),
    [
        ('multipart/form-data; charset=utf-8; Boundary="a b"', b"a b"),
        ("multipart/form-data;boundary=--abc", b"--abc"),
    ],
    ids=["quoted", "plain"],
)
def test_a_boundary_is_found_among_other_parameters(kind: str, boundary: bytes) -> None:
    """The boundary may be quoted. The name of the parameter is case-insensitive."""
    parser = FormParser(kind)
    parser.feed(b"--" + boundary + b"--\r\n")
    assert parser.complete


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(
            b"".join(b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n' for _ in range(33)), id="33 parts"
        ),
        pytest.param(b'--x\r\nContent-Disposition: form-data; name="' + b"a" * 5000 + b'"\r\n\r\n', id="long header"),
        pytest.param(b"--x\r\n" + b"A: b\r\n" * 9 + b"\r\n", id="nine headers"),
        pytest.param(b"--x\r\nContent-Disposition: attachment; name=a\r\n\r\n", id="no form-data"),
        pytest.param(b"--x\r\nContent-Disposition: form-data\r\n\r\n", id="no name"),
        pytest.param(b"before\r\n--x\r\nContent-Disposition: form-data; name=a\r\n\r\n", id="preamble"),
        pytest.param(b"--x\r\nContent-Disposition: form-data; name=\xff\r\n\r\n", id="a name that is no UTF-8"),
    ],
)
def test_a_form_beyond_the_limits_is_refused(form: bytes) -> None:
    """The number of parts is limited, and so are the number and the length of their headers."""
    with pytest.raises(Invalid):
        FormParser("multipart/form-data; boundary=x").feed(form)
