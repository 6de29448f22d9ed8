"""The Unix socket of the command line. Each request and each answer is one line with a JSON object.

    {"path": "/ad/PreviewEnforcement", "body": {"days": 7}, "domain": "corp"}
    {"result": {...}}    or    {"error": "no domain corp", "status": 404}

The socket is in the data directory, with mode 0600. The peer process must belong to the service's own user or to root
(SO_PEERCRED), because these users can open the store anyway. The length of a message is limited. A peer that sends
nothing, or does not read its answers, is disconnected.
"""

import json
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias

import structlog
import trio

from sallyport.base.errors import FieldError, Invalid, Refused, SallyportError, StartError
from sallyport.base.secret import new_error_id
from sallyport.base.trace import following, new_trace
from sallyport.host.owner import user_name

MAX_MESSAGE = 16 << 20
MAX_OPERATION = 2 << 20
"""Maximum length in octets of a message with an API operation. The API itself accepts bodies of 1 MiB. On this socket,
non-ASCII text is escaped, and therefore longer."""
MAX_VALUES = 500_000
"""Maximum number of commas and opening brackets in a message. An import of 50,000 clients has 400,000. Without the
limit, a message with five million empty objects blocked the event loop for 5 s."""
LARGE = 64 << 10
"""Messages with at least this length, in octets, are parsed in a thread, to keep the event loop free."""
SILENCE_S = 60.0
MAX_WAITING = 128
"""Maximum number of connections that wait to be accepted. Further connections fail at once."""

Run: TypeAlias = Callable[[Mapping[str, object], str], Awaitable[bytes]]
"""A function that runs a request for a user of this machine, and returns the result as JSON. It raises
SallyportError."""

log = structlog.get_logger()


async def serve_control(path: Path, run: Run, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Create the socket, and answer requests until cancelled. Raises StartError if the socket cannot be created."""
    sock = listen(path)
    try:
        await serve_socket(sock, run, task_status=task_status)
    finally:
        path.unlink(missing_ok=True)


async def serve_socket(
    sock: socket.socket, run: Run, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Answer requests on a listening socket until cancelled. Then close the socket."""
    with closing(sock):
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock))
        async with trio.open_nursery() as nursery:
            task_status.started()

            async def answer(stream: trio.SocketStream) -> None:
                await _converse(stream, run)

            await trio.serve_listeners(answer, [listener], handler_nursery=nursery)


def listen(path: Path) -> socket.socket:
    """Return a listening, non-blocking Unix socket with mode 0600. Raises StartError if it cannot be created."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    mask = os.umask(0o177)
    try:
        path.unlink(
            missing_ok=True
            # a killed process may have left a socket; this process has the lock of the data directory, so no other
            # process is running
        )
        _bind(sock, path)
    except OSError as error:
        sock.close()
        raise StartError(
            f"cannot make the control socket {path}: {error.strerror or error}; set SALLYPORT_DATA_DIR to a directory "
            f"of user {user_name(os.geteuid())} on a file system with Unix sockets"
        ) from error
    finally:
        os.umask(mask)
    sock.listen(MAX_WAITING)
    return sock


def _bind(sock: socket.socket, path: Path) -> None:
    """Bind the socket to a path, even if the path is longer than the 107 octets that a socket address can hold."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        sock.bind(f"/proc/self/fd/{directory}/{path.name}" if len(os.fsencode(path)) > 100 else str(path))
    finally:
        os.close(directory)


async def _converse(stream: trio.SocketStream, run: Run) -> None:
    """Answer the requests of a peer. The work on a request may take any time. A peer is disconnected if it sends
    nothing, or does not read its answers."""
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
        async with stream:
            user = _peer(stream)
            if user not in {0, os.geteuid()}:
                return
            pending = bytearray()
            while True:
                with trio.fail_after(SILENCE_S):
                    line = await _line(stream, pending)
                if line is None:
                    return
                excess = _excess(line)
                with following(new_trace()):
                    answer = _error(excess, 413) if excess else await _answer(run, line, user_name(user))
                with trio.fail_after(SILENCE_S):
                    await stream.send_all(answer + b"\n")


def _peer(stream: trio.SocketStream) -> int:
    """Return the user id of the peer process."""
    credentials = stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", credentials)
    return int(user)


async def _line(stream: trio.SocketStream, pending: bytearray) -> bytes | None:
    """Return the next line, or None at the end of the stream. If a line is too long, it is cut. The cut line is still
    longer than MAX_MESSAGE octets, so that the caller can refuse it."""
    while (end := pending.find(b"\n")) < 0:
        received = await stream.receive_some()
        if not received:
            return None
        if len(pending) > MAX_MESSAGE:  # read on, since the peer reads no answer before it has sent the whole line
            del pending[MAX_MESSAGE + 1 :]
        pending += received
    line = bytes(pending[:end])
    del pending[: end + 1]
    return line


def _excess(line: bytes) -> str:
    """Return the reason why a message is too large, or an empty text if it is not too large."""
    if len(line) > MAX_MESSAGE:
        return f"a message has at most {MAX_MESSAGE >> 20} MiB"
    values = sum(map(line.count, (b",", b"[", b"{")))
    return f"the message has over {MAX_VALUES} values" if values > MAX_VALUES else ""


async def _answer(run: Run, line: bytes, user: str) -> bytes:
    asked = _parsed(line) if len(line) < LARGE else await trio.to_thread.run_sync(_parsed, line)
    if not isinstance(asked, dict):
        return _error("a JSON object is required", 400)
    if "path" in asked and len(line) > MAX_OPERATION:
        return _error(f"an operation takes at most {MAX_OPERATION >> 20} MiB", 413)
    try:
        return b'{"result": ' + await run(asked, user) + b"}"
    except Refused as error:
        return _error(in_one_line(error), error.status, error.fields if isinstance(error, Invalid) else ())
    except SallyportError as error:
        return _error(str(error), 503)
    except Exception:
        error_id = new_error_id()
        log.exception("control_request_failed", request=asked.get("path", asked.get("command")), error_id=error_id)
        return _error(f"internal error {error_id}, see the log of the service", 500)


def _parsed(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _error(message: str, status: int, fields: Sequence[FieldError] = ()) -> bytes:
    wrong = [asdict(each) for each in fields]
    return json.dumps({"error": message, "status": status, "fields": wrong}).encode()


def in_one_line(error: Refused) -> str:
    """Return the message of an error and the messages of its wrong fields, all in one line."""
    text = str(error)
    fields = error.fields if isinstance(error, Invalid) else ()
    return "; ".join([text, *(each.about(each.field) for each in fields if each.message != text)])
