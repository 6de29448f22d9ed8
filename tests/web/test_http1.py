"""Tests of the sans-io parser of requests, and of the framing of answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.web.http1 import BrokenAnswer, Head, Malformed, Parser, ResponseFraming, common_head

LIMIT = 1024
GET = b"GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n"


def parser(octets: bytes) -> Parser:
    """Return a parser that was fed these octets."""
    made = Parser(LIMIT)
    made.feed(octets)
    return made


def head(method: str = "GET", version: bytes = b"1.1", *, keeps_alive: bool = True) -> Head:
    """Return the head of a request."""
    return Head(method, b"/", version, [], keeps_alive=keeps_alive)


def test_a_head_is_returned_once_it_is_complete() -> None:
    """If octets are fed one at a time, the head is complete only after the last one."""
    made = Parser(LIMIT)
    for octet in GET[:-1]:
        made.feed(bytes((octet,)))
        assert made.head() is None
    made.feed(GET[-1:])
    found = made.head()
    assert found is not None
    assert (found.method, found.target, found.headers) == ("GET", b"/a?b=c", [(b"host", b"x")])
    assert (made.body_due, made.held, found.keeps_alive) == (False, 0, True)


@pytest.mark.parametrize(
    ("octets", "status"),
    [
        pytest.param(b"GET / HTTP/1.1\nHost: x\n\n", 400, id="bare line feeds"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n", 400, id="one bare line feed"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\rA: b\r\n\r\n", 400, id="bare carriage return"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", 400, id="folded by a space"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n\tc\r\n\r\n", 400, id="folded by a tab"),
        pytest.param(b"\r\n" + GET, 400, id="empty first line"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"b" * LIMIT + b"\r\n\r\n", 431, id="long and complete"),
        pytest.param(b"GET /" + b"a" * LIMIT, 431, id="long and incomplete"),
        pytest.param(b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505, id="another version"),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
            id="two lengths",
        ),
        pytest.param(b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, id="chunks in HTTP/1.0"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501, id="unknown encoding"),
    ],
)
def test_an_ambiguous_head_is_refused(octets: bytes, status: int) -> None:
    """Each defect has its own status. A bare line feed is refused before the head is complete."""
    with pytest.raises(Malformed) as refused:
        parser(octets).head()
    assert refused.value.status == status


@pytest.mark.parametrize("end", [b"\r\n", b"\n"], ids=["good", "bare line feed"])
def test_a_head_in_pieces_is_parsed_like_a_whole_one(end: bytes) -> None:
    """The parser does not search octets twice, and misses nothing where two pieces meet."""
    octets = b"GET / HTTP/1.1\r\nHost: x" + end + b"A: b\r\n\r\n"
    results = set()
    for at in range(len(octets)):
        made, head = Parser(LIMIT), None
        try:
            for piece in (octets[:at], octets[at:], octets):
                made.feed(piece)
                head = made.head()
            results.add(str(head))
        except Malformed as error:
            results.add(str(error))
    assert len(results) == 1


def test_a_body_of_known_length_ends_where_the_next_request_begins() -> None:
    """Octets after the body are kept for the next head."""
    made = parser(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab")
    assert made.head() is not None
    assert (made.take_body(), made.body_due) == (b"ab", True)
    assert (made.take_body(), made.body_due) == (b"", True)
    made.feed(b"cd" + GET)
    assert (made.take_body(), made.body_due) == (b"cd", False)
    assert made.head() is not None


def test_chunks_are_joined_and_end_the_connection() -> None:
    """A chunked request is the last one of its connection. Octets after it are never parsed as a request."""
    made = parser(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;ext\r\nc\r\n")
    found = made.head()
    assert found is not None
    assert not found.keeps_alive
    assert (made.take_body(), made.body_due) == (b"abc", True)
    made.feed(b"0\r\n\r\n" + GET)
    assert (made.take_body(), made.body_due) == (b"", False)


def test_many_chunks_are_taken_in_several_calls() -> None:
    """Many chunks of one octet do not block the event loop."""
    made = parser(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 100)
    made.head()
    first = made.take_body()
    assert 0 < len(first) < 100
    assert len(first + made.take_body()) == 100


@pytest.mark.parametrize("chunk", [b"zz\r\n", b"-1\r\n", b"1\r\nxyz", b"1;" + b"a" * 2 * LIMIT])
def test_malformed_chunks_are_refused(chunk: bytes) -> None:
    """A chunk without a size, with a wrong end or with an extension that is too long is Malformed."""
    made = parser(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
    made.head()
    made.feed(chunk)
    with pytest.raises(Malformed):
        while made.take_body():
            pass


@pytest.mark.parametrize(
    ("octets", "keeps"),
    [
        (GET, True),
        (b"GET / HTTP/1.0\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: a, CLOSE\r\n\r\n", False),
    ],
)
def test_only_http_1_1_connections_are_kept_alive(octets: bytes, keeps: bool) -> None:
    """An HTTP/1.1 connection stays open unless the request has `Connection: close`.

    An HTTP/1.0 connection is closed.
    """
    found = parser(octets).head()
    assert found is not None
    assert found.keeps_alive is keeps


@given(st.binary(max_size=2 * LIMIT), st.integers(1, 100))
def test_any_octets_are_parsed_or_malformed(octets: bytes, step: int) -> None:
    """Octets from the network raise only Malformed."""
    made = Parser(LIMIT)
    try:
        for at in range(0, len(octets), step):
            made.feed(octets[at : at + step])
            if made.body_due:
                made.take_body()
            else:
                made.head()
    except Malformed:
        pass


def test_an_answer_of_known_length_keeps_the_connection() -> None:
    """The answer has a Content-Length."""
    answer = ResponseFraming(head())
    sent = answer.begin(200, [(b"content-length", b"2")]) + answer.piece(b"ab", more=False)
    assert sent.startswith(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ndate: ")
    assert sent.endswith(b"\r\n\r\nab")
    assert (answer.complete, answer.closes) == (True, False)


def test_an_answer_of_unknown_length_is_chunked() -> None:
    """Each piece is sent as a chunk, and the last chunk ends the body. An empty piece sends nothing."""
    answer = ResponseFraming(head())
    assert b"transfer-encoding: chunked" in answer.begin(200, [])
    pieces = [answer.piece(b"ab", more=True), answer.piece(b"", more=True), answer.piece(b"c", more=False)]
    assert pieces == [b"2\r\nab\r\n", b"", b"1\r\nc\r\n0\r\n\r\n"]


def test_an_answer_of_unknown_length_ends_an_http_1_0_connection() -> None:
    """HTTP/1.0 has no chunks, so that the body ends when the connection is closed."""
    answer = ResponseFraming(head(version=b"1.0", keeps_alive=False))
    assert b"connection: close" in answer.begin(200, [])
    assert answer.piece(b"ab", more=False) == b"ab"


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_an_answer_to_head_or_with_204_or_304_has_no_body(method: str, status: int) -> None:
    """If an answer must not have a body, the octets that the application sends are discarded."""
    answer = ResponseFraming(head(method))
    answer.begin(status, [(b"content-length", b"2")])
    assert answer.piece(b"ab", more=False) == b""


@pytest.mark.parametrize("body", [b"a", b"abc"], ids=["shorter", "longer"])
def test_a_body_of_another_length_is_broken(body: bytes) -> None:
    """A body that is shorter or longer than its Content-Length raises BrokenAnswer."""
    answer = ResponseFraming(head())
    answer.begin(200, [(b"content-length", b"2")])
    with pytest.raises(BrokenAnswer):
        answer.piece(body, more=False)


def test_a_header_with_a_line_break_is_broken() -> None:
    """A header value cannot start another header (response splitting)."""
    with pytest.raises(BrokenAnswer):
        ResponseFraming(head()).begin(200, [(b"location", b"/\r\nset-cookie: a=b")])


_NAMES = st.sampled_from(
    [
        b"Host",
        b"content-length",
        b"Connection",
        b"Transfer-Encoding",
        b"Expect",
        b"Upgrade",
        b"X-A",
        b"x-a",
        b"a!",
        b"a b",
    ]
)
_VALUES = st.sampled_from(
    [
        b"x",
        b"",
        b" 4 ",
        b"keep-alive",
        b"Close",
        b"chunked",
        b"100-continue",
        b"1\t2",
        b"\xe9",
        b"4,4",
        b"+4",
        b"9" * 20,
    ]
)
_LINES = st.lists(st.tuples(_NAMES, st.sampled_from([b":", b": ", b" :"]), _VALUES), max_size=4)


@given(
    st.sampled_from([b"GET", b"POST", b"get", b"G\xe9T", b""]),
    st.sampled_from([b"/", b"/a?b=c", b"*", b"http://x/", b"/\xe9", b"/a b", b"//x"]),
    st.sampled_from([b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"http/1.1"]),
    _LINES,
)
def test_a_common_head_is_parsed_like_h11(
    method: bytes, target: bytes, version: bytes, lines: list[tuple[bytes, bytes, bytes]]
) -> None:
    """The fast parser gives the same result as h11, or leaves the head to h11."""
    octets = b"\r\n".join([b" ".join((method, target, version)), b"Host: y", *(b"".join(line) for line in lines)])
    quick = common_head(octets + b"\r\n\r\n")
    if quick is not None:
        assert quick == Parser(LIMIT)._begin(octets + b"\r\n\r\n")


def test_a_usual_request_has_a_common_head() -> None:
    """The fast parser accepts a usual request with a JSON body."""
    sent = b"POST /a HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\nContent-Length: 2\r\nX-Authorization: t\r\n\r\n"
    found = common_head(sent)
    assert found is not None
    assert (found.content_length, found.headers[-1]) == (2, (b"x-authorization", b"t"))
