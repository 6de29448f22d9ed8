"""The other worker processes of the service. Some data exists only in the memory of a worker. Other workers request it
over the worker's control socket."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import trio

from sallyport.base.wire import JSON

ANSWER_S: Final = 5.0
MAX_ANSWER_SIZE: Final = 64 << 20
"""Maximum length of an answer, in octets. The metrics of a worker are the longest answer."""


def socket_of(control: Path, number: int) -> Path:
    """Return the path of a worker's own control socket. control: the path of the service's control socket."""
    return control.with_name(f"{control.name}.{number}")


class Siblings:
    """The other worker processes. paths: the path of each worker's control socket; the key is the number of the worker.
    own: the number of this worker."""

    def __init__(self, paths: Mapping[int, Path], own: int = 0) -> None:
        self._paths = {number: path for number, path in paths.items() if number != own}
        self.own = own

    def __bool__(self) -> bool:
        return bool(self._paths)

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of the other workers."""
        return frozenset(self._paths)

    async def ask(self, command: str, **arguments: JSON) -> dict[int, JSON]:
        """Run a command in each other worker. Return the results by worker number. A worker that does not answer in
        time is left out."""
        asked = json.dumps({"command": command, "arguments": arguments}).encode() + b"\n"
        results: dict[int, JSON] = {}

        async def ask_one(number: int, path: Path) -> None:
            with trio.move_on_after(ANSWER_S):
                answer = json.loads(await _exchange(path, asked) or b"{}")
                if "result" in answer:
                    results[number] = answer["result"]

        async with trio.open_nursery() as nursery:
            for each in self._paths.items():
                nursery.start_soon(ask_one, *each)
        return results


async def _exchange(path: Path, line: bytes) -> bytes:
    """Send a line to a worker, and return the line with which the worker answers. If the worker has closed the
    connection, return an empty result."""
    answer = bytearray()
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        # the path leads through the directory's descriptor, because a socket address holds only 107 octets
        async with await trio.open_unix_socket(f"/proc/self/fd/{directory}/{path.name}") as stream:
            await stream.send_all(line)
            while not answer.endswith(b"\n") and len(answer) < MAX_ANSWER_SIZE:
                received = await stream.receive_some()
                if not received:
                    return b""
                answer += received
    except (OSError, trio.BrokenResourceError):
        return b""
    finally:
        os.close(directory)
    return bytes(answer)
