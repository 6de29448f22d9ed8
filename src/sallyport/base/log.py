"""The log: one event a line on standard error, JSON, or coloured text on a terminal.

Areas log through `structlog.get_logger()`; this module only says how it looks.
"""

import io
import logging
import sys
from contextlib import suppress
from typing import TextIO, cast

import structlog


class _Lossy(io.TextIOBase):
    """A stream whose failure is nobody's: a line that a full disk or a closed pipe does not take is lost, and the
    service goes on."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        with suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        try:  # noqa: SIM105  called once more when the interpreter has taken its modules apart
            self._stream.flush()
        except OSError:
            pass


def configure(*, level: str = "info", json: bool | None = None) -> None:
    """Set up structlog for the process. json: None means JSON unless standard error is a terminal."""
    readable = sys.stderr.isatty() if json is None else not json
    renderer = _readable() if readable else _json()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _Lossy(sys.stderr))),
        cache_logger_on_first_use=True,
    )


def _readable() -> list[structlog.typing.Processor]:
    """For a terminal. Traces are plain: the default shows local variables, and with them passwords."""
    return [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]


def _json() -> list[structlog.typing.Processor]:
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(sort_keys=False)]


def logger() -> structlog.typing.FilteringBoundLogger:
    """A logger for the command line; areas take theirs from structlog."""
    bound: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    return bound
