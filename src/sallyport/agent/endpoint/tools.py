"""The host's own programs: argument lists, never a shell; a fixed environment; a time limit."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sallyport.base.errors import HostError

LONGEST_S: Final = 90.0
"""shadow's programs wait 15 s for a lock; a home directory is copied in the rest."""
_ENVIRONMENT: Final = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
BUSY: Final = 8
"""Exit status of userdel: the account has processes."""
EXISTS: Final = 9
"""Exit status of useradd and groupadd: the name is in use, on the host or in a directory that it asks."""
_MEANINGS: Final = {
    1: "the file is locked or cannot be written",
    BUSY: "in use",
    EXISTS: "exists already",
    12: "no home",
}


class ToolError(HostError):
    """A program that did not do it. status: its exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Tools:
    """shadow's programs and visudo, for the host whose root directory is `prefix`."""

    def __init__(self, prefix: Path = Path("/")) -> None:
        self._prefix = () if prefix == Path("/") else ("--prefix", str(prefix))
        self._root = () if prefix == Path("/") else ("--root", str(prefix))

    def account(self, program: str, *arguments: str) -> None:
        """useradd, usermod, userdel, groupadd, groupmod, groupdel. ToolError."""
        self._run([program, *self._prefix, *arguments])

    def set_password(self, name: str, password_hash: str) -> None:
        """The hash of a password comes into force. It goes over standard input, not over the list of processes."""
        if any(each in name + password_hash for each in ":\n\r\0"):
            raise HostError("a name or a hash that would change another line")
        self._run(["chpasswd", "--encrypted", *self._root], f"{name}:{password_hash}\n".encode())

    def check_sudoers(self, content: bytes) -> None:
        """Whether sudo takes the file. ToolError: it does not; visudo is missing."""
        self._run(["visudo", "--check", "--quiet", "--file=-"], content)

    def _run(self, arguments: Sequence[str], stdin: bytes = b"") -> None:
        program = arguments[0]
        try:
            done = subprocess.run(  # noqa: S603  an argument list of checked names
                arguments, input=stdin, env=_ENVIRONMENT, cwd="/", capture_output=True, timeout=LONGEST_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise ToolError(f"{program}: took longer than {LONGEST_S:.0f} s", -1) from None
        except OSError as error:
            raise ToolError(f"{program}: {error.strerror}", 127) from None
        if done.returncode != 0:
            raise ToolError(f"{program}: {_told(done.stderr, done.returncode)}", done.returncode)


def _told(stderr: bytes, status: int) -> str:
    """The last line of what a program says, without what a terminal would obey."""
    lines = stderr.decode(errors="replace").strip().splitlines() or [_MEANINGS.get(status, "")]
    text = "".join(each if each.isprintable() else "?" for each in lines[-1])
    return f"{text[:300]} (status {status})"
