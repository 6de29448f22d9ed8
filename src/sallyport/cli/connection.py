"""Requests to the running service. If no service is running, the requests run on the store in this process."""

import json
import os
import re
import socket
import struct
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from sallyport.base.errors import Absent, FieldError, Invalid, Locked, NotFound, Refused, StartError
from sallyport.base.wire import JSON, Row
from sallyport.cli.handover import handed_over
from sallyport.cli.installation import NOTHING_HERE, Installation, places
from sallyport.host.owner import denied
from sallyport.settings.master_key import given_keys
from sallyport.settings.settings import Settings
from sallyport.store.data_folder import check_lock

if TYPE_CHECKING:
    from sallyport.cli.local import Local

ANSWER_S = 60.0
LONG_ANSWER_S = 3600.0
LONG: Final = ("db.", "configuration.apply", "/ad/CompareShadowLogins")
"""The beginnings of what may take minutes: a backup on a slow disk, a plan of many objects, a report of 200,000 logins.
They get LONG_ANSWER_S instead of ANSWER_S."""
IN_MEMORY = frozenset({"listen.senders", "log.level", "settings.reload"})
"""Commands that read or change the memory of the running service. They fail if no service runs."""
MIGRATE: Final = "db.migrate"
RESTORE: Final = "db.restore"
PATIENCE: Final[Mapping[type[StartError], float]] = MappingProxyType({Absent: 3.0, Locked: 20.0})
"""Seconds for which an error is retried. After Absent, a starting service may appear. After Locked, a service or
command may soon release the lock."""
AGAIN_S: Final = 0.05
LOCKED: Final = "it does not answer commands: if it is just starting, try again in a moment; otherwise stop it"
"""The end of the error message if another process holds the lock of the data directory."""
READING: Final = re.compile(
    r"[./](get|list|preview|search|validate|fetch|show|export|jobs?$|forwarders|weaknesses|owners|senders|sessions$|identities$|domain$"
    r"|kinds$|state$|groups_by_sid$)"
    r"|(?<!set)(list|users|detail|history|(agent|presentation)status)$",
    re.IGNORECASE,
)
"""A pattern of the names of operations and commands that change nothing."""

ReachedT = TypeVar("ReachedT")


def patiently(
    turn: Callable[[], ReachedT],
    patience: Mapping[type[StartError], float] = PATIENCE,
    *,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> ReachedT:
    """Call a function until it succeeds, and return its result.

    patience: for each kind of error, the longest time of the repetition in seconds. After this time, the error is
    raised. Errors other than Absent and Locked are raised at once.
    """
    began = now()
    while True:
        try:
            return turn()
        except (Absent, Locked) as error:
            if now() - began >= patience[type(error)]:
                raise
        sleep(AGAIN_S)


def _silent(_: str) -> None:
    """Print nothing."""


class Connection:
    """A connection to the installation that `config`, the environment and the working directory select.

    settings: the settings of the installation, if they are already known. note: a function that prints a line for the
    user.
    """

    def __init__(
        self, config: Path | None = None, *, settings: Settings | None = None, note: Callable[[str], None] = _silent
    ) -> None:
        self._config = config
        self._found = None if settings is None else Installation(settings, is_callers=True)
        self._note = note
        self._noted: set[str] = set()
        self._local: Local | None = None

    @property
    def file(self) -> Path | None:
        """Return the path of the settings file. Return None if there is no settings file. Raises StartError."""
        return self._installation().file

    def settings(self) -> Settings:
        """Return the settings of the installation. Raises Absent, ConfigError, StartError."""
        return self._installation().settings

    def read(self) -> Settings:
        """Return the settings that `serve` would use, even if there is no installation yet. Raises ConfigError,
        StartError."""
        found = places(self._config, os.environ)
        if found.passed_over:  # the caller may rely on the settings in these files
            raise StartError("; ".join(found.passed_over))
        return found.places[0].settings

    def call(self, asked: Row) -> JSON:
        """Run a request of the control socket, and return the answer. Raises SallyportError with the service's message
        if the request fails."""
        try:
            reached = self._local or patiently(partial(self._reach, asked))
        except Locked as error:
            raise Locked(f"{error}; {LOCKED}") from None
        name = str(asked.get("path", asked.get("command")))
        if not self._installation().is_callers and not READING.search(name):
            self._tell(f"using the installation in {self._installation()}")
        if isinstance(reached, socket.socket):
            with reached:
                return handed_over(lambda row: _result(_answer(reached, row)), asked, self._installation().settings)
        return handed_over(reached.call, asked, self._installation().settings)

    def process_id(self, *, wait: bool = True) -> int | None:
        """Return the process id of the running service. Return None if no service runs.

        wait: whether to wait for a service that is just starting. Raises Absent or StartError if the command cannot
        reach the service. Raises Locked if another process holds the lock of the store and does not answer commands.
        """
        if not wait:
            return process_id(self._find().settings)

        def turn() -> int | None:
            found = process_id(self.settings())
            if found is None:
                check_lock(self.settings().data_dir)
            return found

        return patiently(turn)

    def close(self) -> None:
        """Close the store if it was opened."""
        if self._local is not None:
            self._local.close()
            self._local = None

    def _installation(self) -> Installation:
        """Return the installation. If there is none, wait some seconds, because a starting service may be creating the
        installation."""
        if self._found is None:
            self._found = patiently(self._find)
        return self._found

    def _find(self, asked: Row = MappingProxyType({})) -> Installation:  # type: ignore[assignment]
        """Search the possible locations in order, and return the first installation. Raises Absent if there is no
        installation.

        asked: the request. If the request can create an installation, the first location is returned instead of the
        error.
        """
        if self._found is not None:
            return self._found
        found = places(self._config, os.environ)
        for text in found.passed_over:
            self._tell(text)
        restores = asked.get("command") == RESTORE
        for each in found.places:
            is_shared = bool(each.settings.database_url)  # a machine without a node needs only the master key
            if each.exists(keyed=restores or is_shared) or (
                is_shared and given_keys(os.environ, each.settings.data_dir)
            ):
                return each
        is_keyed = restores and found.places and given_keys(os.environ, found.places[0].settings.data_dir)
        if asked.get("command") == MIGRATE or is_keyed:
            self.read()  # raises an error if these settings would be ignored
            return found.places[0]
        absence = found.places[0].absence if found.places else NOTHING_HERE
        raise Absent(
            f"{absence}; to restore a backup there, first copy its master.key to this directory"
            if restores
            else absence
        )

    def _reach(self, asked: Row) -> "socket.socket | Local":
        """Return a connection to the running service, or the opened store if no service runs. Raises Absent, Locked,
        StartError."""
        found = self._find(asked)
        sock = _connect(found.settings.control_path)
        if sock is None:
            check_lock(found.settings.data_dir)
            if asked.get("command") in IN_MEMORY:
                raise Absent(
                    f"no service runs in {found.settings.data_dir}: only a running service can answer; start it"
                )
            self._local = _open(found, asked.get("command"))
            self._found = found
            return self._local
        self._found = found
        return sock

    def _tell(self, text: str) -> None:
        """Print a line, but only once for each text."""
        if text not in self._noted:
            self._noted.add(text)
            self._note(text)


def _result(answer: Row) -> JSON:
    if "error" in answer:
        message, fields = str(answer["error"]), answer["fields"]
        if isinstance(fields, list) and fields:
            wrong = (each for each in fields if isinstance(each, dict))
            raise Invalid(message, tuple(map(_field_error, wrong)))
        kind = NotFound if answer["status"] == NotFound.status else Refused
        raise kind(message)
    return answer.get("result")


def _field_error(wrong: Row) -> FieldError:
    return FieldError(str(wrong["field"]), str(wrong["message"]))


def _open(found: Installation, command: JSON) -> "Local":
    """Open the store for a command. Raises Absent if there is no store and this command does not create one. Raises
    Locked, StoreError."""
    # This imports the whole service, which takes half a second. If a service runs, the import is not needed.
    from sallyport.cli.local import Local

    try:
        if command == MIGRATE:
            return Local(found.settings, os.environ)
        return Local(found.settings, os.environ, new="empty" if command == RESTORE else "refuse")
    except Absent:
        raise Absent(found.absence) from None


def process_id(settings: Settings) -> int | None:
    """Return the process id of the running service. Return None if no service runs. Raises StartError if the connection
    to the service fails."""
    sock = _connect(settings.control_path)
    if sock is None:
        return None
    with sock:
        found: int = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))[
            0
        ]
    return found


def _answer(sock: socket.socket, asked: Row) -> Row:
    """Send a request, and return the answer of the running service. Raises StartError if the service does not
    answer."""
    is_long = str(asked.get("command") or asked.get("path")).startswith(LONG)
    sock.settimeout(LONG_ANSWER_S if is_long else ANSWER_S)
    try:
        sock.sendall(json.dumps(asked).encode() + b"\n")
        line = sock.makefile("rb").readline()
    except ConnectionError:  # the service has ended before it read everything, or with more to send
        line = b""
    except OSError as error:
        raise StartError(f"the running service does not answer: {error}") from error
    if not line:
        raise StartError(
            "the running service gave no answer: check whether the change was made before you run the command again; "
            "the service answers only its own user and root"
        )
    answer: Row = json.loads(line)
    return answer


def _connect(path: Path) -> socket.socket | None:
    """Connect to the service's control socket. Return None if no service is running. Raises StartError if the
    connection fails for another reason."""
    try:
        directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StartError(f"{path.parent}: {error.strerror}") from error
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # the path leads through the directory's descriptor, because a socket address has at most 107 octets
        sock.connect(f"/proc/self/fd/{directory}/{path.name}")
    except OSError as error:
        sock.close()
        if isinstance(error, FileNotFoundError | ConnectionRefusedError):
            return None
        if isinstance(error, PermissionError):
            raise StartError(denied(path, path.parent)) from error
        raise StartError(f"{path}: {error.strerror}") from error
    finally:
        os.close(directory)
    return sock
