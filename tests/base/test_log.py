"""The configuration of the log."""

import io
import json
import logging
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from sallyport.base import log
from sallyport.base.trace import Trace, following


def test_a_used_logger_gets_a_new_configuration() -> None:
    """A logger that was used before the settings were read uses the new configuration from then on."""
    before = structlog.get_config()
    try:
        log.configure(form="json")
        logger = structlog.get_logger()
        logger.info("first")
        log.configure(form="text")
        with capture_logs() as logged:
            logger.info("second")
        assert [each["event"] for each in logged] == ["second"]
    finally:
        structlog.configure(**before)


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Configure the log as JSON, and return what it writes. Restore everything afterwards."""
    before, root = structlog.get_config(), logging.getLogger()
    kept = root.handlers[:], threading.excepthook, sys.unraisablehook, sys.excepthook
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    log.configure(form="json")
    try:
        yield written
    finally:
        log.set_level("info", {})
        logging.captureWarnings(capture=False)
        root.handlers[:], threading.excepthook, sys.unraisablehook, sys.excepthook = kept
        structlog.configure(**before)


def told(written: io.StringIO) -> list[dict[str, Any]]:
    """Return the events of the log."""
    return [json.loads(line) for line in written.getvalue().splitlines()]


def test_an_area_has_its_own_level(lines: io.StringIO) -> None:
    """The area is the folder of the module that logs. Another area has the level of the log."""
    log.set_level("warning", {"login": "debug", "store": "error"})
    for module in ("areas.login.second.service", "store.writer", "areas.mfa.service", "nodes"):
        for level in ("debug", "warning", "error"):
            name = {"__name__": f"sallyport.{module}"}
            exec(f"import structlog; structlog.get_logger().{level}('{module}')", name)  # noqa: S102
    assert [(each["event"].split(".")[-1], each["level"]) for each in told(lines)] == [
        ("service", "debug"), ("service", "warning"), ("service", "error"),
        ("writer", "error"),
        ("service", "warning"), ("service", "error"),
        ("nodes", "warning"), ("nodes", "error"),
    ]  # fmt: skip
    assert not log.is_silent("debug")
    assert [log.area_of(each) for each in ("sallyport.areas.did.keys", "sallyport.cli", "trio")] == ["did", "cli", ""]
    assert {"login", "store", "web"} < set(log.areas()) and "areas" not in log.areas()


def test_a_line_names_its_trace(lines: io.StringIO) -> None:
    """So does a message of a library. A line outside of a request names none. A field of the event takes precedence."""
    log.take_messages_of_libraries()
    with following(Trace("1" * 32, "2" * 16)):
        structlog.get_logger().info("first")
        logging.getLogger("a.library").warning("second")
        with following(Trace("1" * 32, "2" * 16, own_request_id="abc")):
            structlog.get_logger().info("third")
            structlog.get_logger().info("fourth", request_id=7)
    structlog.get_logger().info("last")
    found = [(each.get("trace_id"), each.get("request_id")) for each in told(lines)]
    assert found == [("1" * 32, None)] * 2 + [("1" * 32, "abc"), ("1" * 32, 7), (None, None)]


def test_messages_of_libraries_are_events(lines: io.StringIO) -> None:
    """A warning, an error with its exception, a warning of Python, and a message that cannot be formatted are one line
    each. Messages below a warning are not logged.
    """
    log.take_messages_of_libraries()
    library = logging.getLogger("a.library")
    library.info("not logged")
    library.warning("slow: %s\nsecond line", 7)
    library.warning("%d", "no number")
    try:
        raise ValueError("lost")
    except ValueError:
        library.exception("failed")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old call", DeprecationWarning, stacklevel=1)
    events = told(lines)
    assert [(each["event"], each["library"]) for each in events] == [
        ("library_warning", "a.library"),
        ("library_warning", "a.library"),
        ("library_error", "a.library"),
        ("library_warning", "py.warnings"),
    ]
    assert events[0]["message"] == "slow: 7\nsecond line" and events[1]["message"] == "%d"
    assert "ValueError: lost" in events[2]["exception"] and "old call" in events[3]["message"]


def test_an_exception_that_ends_the_process_is_an_event() -> None:
    """So does a crash of the event loop, with all its tracebacks in one line."""
    code = (
        "import trio; from sallyport.base import log\n"
        "log.configure(form='json'); log.take_messages_of_libraries()\n"
        "async def fail():\n raise ValueError('of a task')\n"
        "async def main():\n"
        " async with trio.open_nursery() as nursery:\n"
        "  nursery.start_soon(fail); nursery.start_soon(fail)\n"
        "trio.run(main)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    (event,) = [json.loads(line) for line in done.stderr.splitlines()]
    assert (done.returncode, event["event"], event["where"]) == (1, "exception_not_caught", "the main thread")
    assert event["exception"].count("ValueError: of a task") == 2


def test_a_lost_exception_is_an_event(lines: io.StringIO) -> None:
    """An exception that ends a thread is logged with its traceback."""
    log.take_messages_of_libraries()

    def fail() -> None:
        raise ValueError("in a thread")

    thread = threading.Thread(target=fail, name="reader")
    thread.start()
    thread.join()
    (event,) = told(lines)
    assert (event["event"], event["where"]) == ("exception_not_caught", "thread reader")
    assert "ValueError: in a thread" in event["exception"]
