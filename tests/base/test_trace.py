"""Traces: what is read of the headers of a request, and what tasks inherit."""

import re

import pytest
import trio

from sallyport.base.trace import Trace, current, following, new_trace, parse_traceparent, received

ID, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GOOD = f"00-{ID}-{PARENT}-01"


@pytest.mark.parametrize(
    ("value", "parsed"),
    [
        (GOOD, (ID, True)),
        (f"00-{ID}-{PARENT}-00", (ID, False)),
        (f"00-{ID}-{PARENT}-fe", (ID, False)),
        (f"00-{ID}-{PARENT}-03", (ID, True)),
        (f"01-{ID}-{PARENT}-01", (ID, True)),
        (f"cc-{ID}-{PARENT}-01-what-the-future-brings", (ID, True)),
        (f"cc-{ID}-{PARENT}-01.what", None),
        (f"{GOOD}-more", None),
        (f"ff-{ID}-{PARENT}-01", None),
        (f"00-{'0' * 32}-{PARENT}-01", None),
        (f"00-{ID}-{'0' * 16}-01", None),
        (GOOD.upper(), None),
        (f" {GOOD}", None),
        (f"{GOOD}\n", None),
        (f"00-{ID[:-1]}-{PARENT}-01", None),
        (f"00-{ID}-{PARENT}-1", None),
        (f"00-{ID}-{PARENT}", None),
        (f"00-{ID}-{PARENT}-0g", None),
        ("00" * 5000, None),
        ("", None),
    ],
)
def test_a_traceparent_is_parsed_strictly(value: str, parsed: tuple[str, bool] | None) -> None:
    """The cases are those of W3C Trace Context, sections 3.2.2 and 4.3, among them those of its test suite."""
    assert parse_traceparent(value.encode()) == parsed


def test_a_trace_goes_on() -> None:
    """The trace id and the flag are those of the caller. The span is new, so that calls to others name this service."""
    trace = received([(b"host", b"x"), (b"traceparent", GOOD.encode())])
    assert (trace.id, trace.is_sampled, trace.request_id) == (ID, True, ID)
    header = trace.header(is_sampled=False)
    assert re.fullmatch(f"00-{ID}-[0-9a-f]{{16}}-01", header) and PARENT not in header


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"traceparent", b"nonsense")],
        [(b"traceparent", GOOD.encode()), (b"traceparent", GOOD.encode())],
        [(b"tracestate", b"vendor=data")],
    ],
    ids=["none", "malformed", "two", "only a state"],
)
def test_a_request_without_a_usable_trace_begins_one(headers: list[tuple[bytes, bytes]]) -> None:
    """The trace is new each time. It is sampled only if this service exports its spans."""
    traces = [received(headers), received(headers)]
    assert len({ID, *(each.id for each in traces)}) == 3
    for is_sampled in (False, True):
        form = f"00-[0-9a-f]{{32}}-[0-9a-f]{{16}}-0{is_sampled:d}"
        assert all(re.fullmatch(form, each.header(is_sampled=is_sampled)) for each in traces)


@pytest.mark.parametrize(
    ("value", "is_taken"),
    [("a-B_9.c", True), ("x" * 64, True), ("x" * 65, False), ("", False), ("a b", False), ("a\x1b[31m", False),
     ('a"}', False), ("é", False), ("a\n", False)],
)  # fmt: skip
def test_an_id_of_the_caller_must_be_harmless(value: str, is_taken: bool) -> None:
    """An id that is too long, or that could forge a line of a log, is ignored."""
    trace = received([(b"x-request-id", value.encode())])
    assert trace.request_id == (value if is_taken else trace.id)
    assert received([(b"x-request-id", b"a")] * 2).own_request_id == ""


async def test_tasks_inherit_the_trace() -> None:
    """A task that is started in the block has the trace, in a thread too. A task that outlives its cause has none."""
    found: list[Trace | None] = []

    async def task() -> None:
        found.append(await trio.to_thread.run_sync(current))

    async with trio.open_nursery() as nursery:
        with following(trace := new_trace()):
            nursery.start_soon(task)
            with following(None):
                nursery.start_soon(task)
    assert sorted(found, key=str) == sorted([None, trace], key=str) and current() is None
