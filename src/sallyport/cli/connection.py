"""Send requests to the running service, or run them on the store if none runs."""

import json
import os
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from sallyport.base.config import DEFAULT_FILE, Settings, load
from sallyport.base.errors import FieldError, Invalid, NotFound, Refused, StartError
from sallyport.base.wire import JSON, Row

if TYPE_CHECKING:
    from sallyport.cli.local import Local

ANSWER_S = 60.0
COPY_S = 3600.0  # a backup or a restore takes as long as the disk does
IN_MEMORY = frozenset({"listen.senders", "log.level"})
"""Commands about the memory of a running service; they need one."""


class Connection:
    """A connection to the service of a data directory. settings: replace those of `config` and the environment."""

    def __init__(self, config: Path | None = None, *, settings: Settings | None = None) -> None:
        self._config = config
        self._settings = settings
        self._local: Local | None = None

    @property
    def file(self) -> Path | None:
        """Return the settings file; None if there is none."""
        default = Path(DEFAULT_FILE)
        return self._config or (default if default.exists() else None)

    def settings(self) -> Settings:
        """Return the settings of file and environment, read once. ConfigError."""
        if self._settings is None:
            self._settings = load(self._config, os.environ)
        return self._settings

    def read(self) -> Settings:
        """Read the settings of file and environment again. ConfigError."""
        return load(self._config, os.environ)

    def call(self, asked: Row) -> JSON:
        """Run a request of the control socket. SallyportError: it failed, with the service's message."""
        if self._local is None:
            answer = self._ask(asked)
            if answer is not None:
                return _result(answer)
            if asked.get("command") in IN_MEMORY:
                raise StartError(f"no service runs in {self.settings().data_dir}: only a running one knows")
            # The whole service, which takes half a second to import; with a running one it is not needed.
            from sallyport.cli.local import Local

            self._local = Local(self.settings(), os.environ)
        return self._local.call(asked)

    def _ask(self, asked: Row) -> Row | None:
        """Return the running service's answer; None if none runs. StartError: it does not answer."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(COPY_S if str(asked.get("command")).startswith("db.") else ANSWER_S)
            if not _connect(sock, self.settings().control_path):
                return None
            try:
                sock.sendall(json.dumps(asked).encode() + b"\n")
                line = sock.makefile("rb").readline()
            except OSError as error:
                raise StartError(f"the running service does not answer: {error}") from error
        if not line:
            raise StartError("the running service gave no answer: only its own user and root may ask")
        answer: Row = json.loads(line)
        return answer

    def process_id(self) -> int | None:
        """Return the process id of the running service, or None. StartError: it cannot be reached."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            if not _connect(sock, self.settings().control_path):
                return None
            credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        process_id: int = struct.unpack("3i", credentials)[0]
        return process_id

    def close(self) -> None:
        """Close the store if it was opened."""
        if self._local is not None:
            self._local.close()
            self._local = None


def _result(answer: Row) -> JSON:
    if "error" in answer:
        message, fields = str(answer["error"]), answer["fields"]
        if isinstance(fields, list) and fields:
            wrong = [each for each in fields if isinstance(each, dict)]
            raise Invalid(message, tuple(FieldError(str(each["field"]), str(each["message"])) for each in wrong))
        kind = NotFound if answer["status"] == NotFound.status else Refused
        raise kind(message)
    return answer.get("result")


def _connect(sock: socket.socket, path: Path) -> bool:
    """Connect to the service's socket. False: none runs."""
    try:
        directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StartError(f"{path.parent}: {error.strerror}") from error
    try:
        # through the directory's descriptor, since a socket's address holds 107 octets only
        sock.connect(f"/proc/self/fd/{directory}/{path.name}")
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from error
    finally:
        os.close(directory)
    return True
