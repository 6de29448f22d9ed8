"""Ask the running service, or do it on the store where no service runs."""

import json
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from sallyport.base.command import JSON
from sallyport.base.config import Settings, load
from sallyport.base.errors import Refused, SallyportError, StartError

ANSWER_S = 60.0


class Told(SallyportError):
    """What the service refused, in its own words."""


@dataclass(frozen=True, slots=True)
class Connection:
    """How commands reach the service: the settings that it runs with."""

    config: Path | None

    def settings(self) -> Settings:
        """The settings of file and environment. ConfigError."""
        return load(self.config, os.environ)

    def call(self, command: str, **arguments: JSON) -> JSON:
        """Run a command of the service by name. Told, or another SallyportError: it was not done."""
        settings = self.settings()
        answer = _ask(settings, command, arguments)
        return _do(settings, command, arguments) if answer is None else _result(answer)

    def running(self) -> bool:
        """Whether a service answers on the socket of the data directory."""
        return _ask(self.settings(), "listen.senders", {}) is not None


def _result(answer: dict[str, JSON]) -> JSON:
    if "error" in answer:
        raise Told(str(answer["error"]))
    return answer.get("result")


def _ask(settings: Settings, command: str, arguments: dict[str, JSON]) -> dict[str, JSON] | None:
    """The service's answer, or None where none runs. StartError: it is there and does not answer."""
    path = settings.control_path
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(ANSWER_S)
        directory = -1
        try:
            directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
            # through the directory's descriptor, since a socket's address holds 107 octets only
            sock.connect(f"/proc/self/fd/{directory}/{path.name}")
        except (FileNotFoundError, ConnectionRefusedError):
            return None
        except OSError as error:
            raise StartError(f"{path}: {error.strerror}") from error
        finally:
            if directory >= 0:
                os.close(directory)
        try:
            sock.sendall(json.dumps({"command": command, "arguments": arguments}).encode() + b"\n")
            line = sock.makefile("rb").readline()
        except OSError as error:
            raise StartError(f"the running service does not answer: {error}") from error
    if not line:
        raise StartError("the running service closed the connection: only its own user and root may ask")
    answer: dict[str, JSON] = json.loads(line)
    return answer


def _do(settings: Settings, command: str, arguments: dict[str, JSON]) -> JSON:
    """Open the store and run the command in this process."""
    import trio

    from sallyport.app import opened
    from sallyport.listen.control import told

    async def run() -> JSON:
        async with opened(settings, os.environ) as app:
            try:
                return await app.commands.run(command, arguments)
            except Refused as error:
                raise Told(told(error)) from error

    return trio.run(run)
