"""The log: one event per line on standard error, as JSON, or as coloured text on a terminal.

All modules log through `structlog.get_logger()`. This module sets the format and the level of the log. It also sets
whether the log contains the names of people, or pseudonyms instead. The level and the pseudonyms can be changed while
the process runs. All settings of the log are global, like structlog's configuration. Messages of libraries become
events of the log too.
"""

import hashlib
import hmac
import io
import logging
import pkgutil
import sys
import threading
from collections.abc import Mapping
from functools import cache
from json import JSONEncoder
from typing import Final, Literal, TextIO, TypeAlias, cast

import structlog

from sallyport.base import trace
from sallyport.base.clock import iso, now_us
from sallyport.base.text import is_coloured

LEVELS: Final = ("debug", "info", "warning", "error")
Format: TypeAlias = Literal["auto", "json", "text"]
_RANKS: Final = {name.lower(): rank for name, rank in logging.getLevelNamesMapping().items()}
IDENTITIES: Final = frozenset({"user", "station"})
"""Keys of log fields that identify a person or a person's device."""


class _Lossy(io.TextIOBase):
    """A stream that never raises an error. If the disk is full or the pipe is closed, the line is lost."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        try:  # noqa: SIM105  each line comes this way
            self._stream.write(text)
        except (OSError, ValueError):  # a closed stream raises ValueError
            pass
        return len(text)

    def flush(self) -> None:
        try:  # noqa: SIM105  called once more when the interpreter has taken its modules apart
            self._stream.flush()
        except (OSError, ValueError):
            pass


class Pseudonyms:
    """Pseudonyms of names: short keyed hashes. Equal names have equal hashes. Without the key, nobody can compute the
    hash of a guessed name."""

    def __init__(self, key: bytes) -> None:
        self._key = hmac.digest(key, b"sallyport identities in logs", hashlib.sha256)

    def of(self, name: str) -> str:
        """Return the pseudonym of a name. Return "" for an empty name."""
        return "#" + hmac.digest(self._key, name.encode(), hashlib.sha256).hex()[:16] if name else ""


class _Manner:
    """The settings of the log that can be changed while the process runs."""

    def __init__(self) -> None:
        self.level = "info"
        self.levels: Mapping[str, str] = {}
        self.pseudonyms: Pseudonyms | None = None

    @property
    def lowest(self) -> int:
        """The rank of the lowest level that any area logs."""
        return min(map(_rank, (self.level, *self.levels.values())))

    def filter(
        self, _logger: structlog.typing.WrappedLogger, method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        """Drop events below the level, and replace names by pseudonyms. This method is a structlog processor."""
        if _rank(method) < _rank(self.levels.get(_area_of_caller(), self.level) if self.levels else self.level):
            raise structlog.DropEvent
        if self.pseudonyms is not None:
            for key in IDENTITIES & event.keys():
                event[key] = self.pseudonyms.of(str(event[key]))
        return event


_manner = _Manner()
_encode: Final = JSONEncoder(default=repr).encode
_processors: list[structlog.typing.Processor] = []
"""The processors of all loggers. `configure` changes this list in place, because existing loggers refer to this
list."""


def _rank(method: str) -> int:
    return _RANKS.get(method.lower(), logging.ERROR)


def _area_of_caller() -> str:
    """Return the area of the module that logs: `login` for sallyport.areas.login, and `store` for sallyport.store."""
    frame = sys._getframe(1)
    while (module := str(frame.f_globals["__name__"])).startswith("structlog.") or module == __name__:
        if frame.f_back is None:
            return ""
        frame = frame.f_back
    return area_of(module)


@cache
def area_of(module: str) -> str:
    """Return the area of a module, or "" for a module of another program."""
    program, _, rest = module.partition(".")
    return rest.removeprefix("areas.").partition(".")[0] if program == "sallyport" else ""


def areas() -> list[str]:
    """Return the names of all areas."""
    root = sys.modules["sallyport"].__path__
    found = [*pkgutil.iter_modules(root), *pkgutil.iter_modules([f"{path}/areas" for path in root])]
    return sorted({each.name for each in found if each.ispkg} - {"areas"})


class _Libraries(logging.Handler):
    """The handler of messages of libraries, which log through Python's own module `logging`."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
        except Exception:
            text = str(record.msg)  # a library's mistake in its message must not stop the caller
        told = {"library": record.name, "message": text, "exc_info": record.exc_info or None}
        if record.levelno >= logging.ERROR:
            structlog.get_logger().error("library_error", **told)
        else:
            structlog.get_logger().warning("library_warning", **told)


def take_messages_of_libraries() -> None:
    """Log warnings and errors of libraries, and exceptions that end a thread or the process, as events from now on.
    Without this, Python writes them to standard error as plain lines."""
    root = logging.getLogger()
    root.handlers[:] = [_Libraries(logging.WARNING)]
    logging.captureWarnings(capture=True)
    sys.excepthook = lambda _kind, error, _trace: _lost(error, "the main thread")
    threading.excepthook = lambda args: _lost(args.exc_value, f"thread {args.thread and args.thread.name}")
    sys.unraisablehook = lambda args: _lost(args.exc_value, str(args.err_msg or "a deleted object"))


def _lost(error: BaseException | None, where: str) -> None:
    structlog.get_logger().error("exception_not_caught", where=where, exc_info=error)


def _name_trace(
    _logger: structlog.typing.WrappedLogger, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Add the trace of the request or login in which the event happens, and the caller's own X-Request-Id."""
    if (of := trace.current()) is not None:
        event.setdefault("trace_id", of.id)
        if of.own_request_id:
            event.setdefault("request_id", of.own_request_id)
    return event


def _stamp(
    _logger: structlog.typing.WrappedLogger, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    event["timestamp"] = iso(now_us())
    return event


def configure(*, level: str = "info", form: Format = "auto") -> None:
    """Set up structlog for the process. form: see `set_format`."""
    _manner.level = level
    set_format(form)
    structlog.configure(
        processors=_processors,
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=structlog.WriteLoggerFactory(cast(TextIO, _Lossy(sys.stderr))),
        cache_logger_on_first_use=True,
    )


def set_format(form: Format) -> None:
    """Log JSON or text. `auto` means text if standard error is a terminal, and otherwise JSON."""
    is_text = sys.stderr.isatty() if form == "auto" else form == "text"
    _processors[:] = [
        structlog.contextvars.merge_contextvars,
        _manner.filter,
        _name_trace,
        structlog.processors.add_log_level,
        _stamp,
        *(_readable() if is_text else _json()),
    ]


def is_json() -> bool:
    """Return whether this process logs JSON."""
    return _processors[-1:] == [_as_json]


def set_level(level: str, of_areas: Mapping[str, str] | None = None) -> None:
    """Set the lowest level of all loggers. level: one of LEVELS. of_areas: the levels of single areas; None keeps the
    present ones."""
    _manner.level = level
    if of_areas is not None:
        _manner.levels = of_areas


def level() -> str:
    """Return the lowest level that is logged."""
    return _manner.level


def is_silent(level: str) -> bool:
    """Return whether events of this level are dropped."""
    return _rank(level) < _manner.lowest


def pseudonyms() -> Pseudonyms | None:
    """Return the pseudonyms that the log uses. Return None if the log contains names."""
    return _manner.pseudonyms


def hide_identities(pseudonyms: Pseudonyms | None) -> None:
    """Replace the names of users and stations by pseudonyms from now on. Pass None to log the names again."""
    _manner.pseudonyms = pseudonyms


def _readable() -> list[structlog.typing.Processor]:
    """Return the processors for a terminal. Tracebacks contain no local variables, because these may contain passwords.
    structlog's default would show them."""
    return [
        structlog.dev.ConsoleRenderer(colors=is_coloured(sys.stderr), exception_formatter=structlog.dev.plain_traceback)
    ]


def _json() -> list[structlog.typing.Processor]:
    return [structlog.processors.format_exc_info, _as_json]


def _as_json(_logger: structlog.typing.WrappedLogger, _method: str, event: structlog.typing.EventDict) -> str:
    return _encode(event)


def logger() -> structlog.typing.FilteringBoundLogger:
    """Return a logger for the command line. All other code uses `structlog.get_logger()`."""
    bound: structlog.typing.FilteringBoundLogger = structlog.get_logger()
    return bound
