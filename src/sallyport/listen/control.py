"""The command line's socket: one JSON object a line asks, one answers.

    {"command": "domain.list", "arguments": {}}
    {"result": [...]}    or    {"error": "no domain corp", "status": 404}

It lies in the data directory with mode 0600, and the peer must be the service's own user or root (SO_PEERCRED): who
may open the store may ask. Messages are bounded; a peer that is silent or does not read is closed.
"""

import json
import os
import pwd
import socket
import struct
from contextlib import suppress
from pathlib import Path

import structlog
import trio

from sallyport.base.actor import Actor, acting_as
from sallyport.base.command import Commands
from sallyport.base.errors import Invalid, Refused, SallyportError, StartError
from sallyport.base.ids import new_error_id
from sallyport.base.wire import JSON

MAX_MESSAGE = 16 << 20
LONG = 1 << 16
SILENCE_S = 60.0

log = structlog.get_logger()


async def serve_control(
    path: Path, commands: Commands, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Answer commands until cancelled. StartError: the socket cannot be made."""
    listener = trio.SocketListener(_listen(path))
    try:
        async with trio.open_nursery() as nursery:
            task_status.started()

            async def answer(stream: trio.SocketStream) -> None:
                await _converse(stream, commands)

            await trio.serve_listeners(answer, [listener], handler_nursery=nursery)
    finally:
        path.unlink(missing_ok=True)


def _listen(path: Path) -> trio.socket.SocketType:
    path.unlink(missing_ok=True)  # of a process that was killed; the data directory's lock says there is no other
    sock = trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        _bind(sock, path)
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from error
    finally:
        os.umask(mask)
    sock.listen(16)
    return sock


def _bind(sock: trio.socket.SocketType, path: Path) -> None:
    """Bind, also where the path is longer than the 107 octets that a socket's address holds."""
    raw = socket.socket(fileno=os.dup(sock.fileno()))
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        raw.bind(f"/proc/self/fd/{directory}/{path.name}" if len(os.fsencode(path)) > 100 else str(path))
    finally:
        os.close(directory)
        raw.close()


async def _converse(stream: trio.SocketStream, commands: Commands) -> None:
    """Answer a peer's commands, however long they take. One that is silent, or does not read, is closed."""
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
                with acting_as(Actor("command line", user_name(user))):
                    answer = await _answer(commands, line)
                with trio.fail_after(SILENCE_S):
                    await stream.send_all(json.dumps(answer).encode() + b"\n")


def _peer(stream: trio.SocketStream) -> int:
    """The user id of the program at the other end."""
    credentials = stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", credentials)
    return int(user)


def user_name(user_id: int) -> str:
    """A user of this machine by name; by number where it has none."""
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)


async def _line(stream: trio.SocketStream, pending: bytearray) -> bytes | None:
    while (end := pending.find(b"\n")) < 0:
        received = await stream.receive_some()
        if not received or len(pending) + len(received) > MAX_MESSAGE:
            return None
        pending += received
    line = bytes(pending[:end])
    del pending[: end + 1]
    return line


async def _answer(commands: Commands, line: bytes) -> dict[str, JSON]:
    try:
        asked = json.loads(line)
        name, arguments = asked["command"], asked["arguments"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {"error": "not a command", "status": 400}
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return {"error": "not a command", "status": 400}
    try:
        if len(line) > LONG:  # thousands of rows, which logins would wait for
            ready = await trio.to_thread.run_sync(commands.ready, name, arguments)
        else:
            ready = commands.ready(name, arguments)
        return {"result": await ready()}
    except Refused as error:
        return {"error": told(error), "status": error.status}
    except SallyportError as error:
        return {"error": str(error), "status": 503}
    except Exception:
        error_id = new_error_id()
        log.exception("a command failed", command=name, error_id=error_id)
        return {"error": f"internal error {error_id}, see the log of the service", "status": 500}


def told(error: Refused) -> str:
    """Return an error in one line: its message, then each wrong field with a message of its own."""
    text = str(error)
    fields = error.fields if isinstance(error, Invalid) else ()
    return "; ".join([text, *(f"{each.field}: {each.message}" for each in fields if each.message != text)])
