"""Real programs that the tests use as peers: where they are, and how they run.

If a program is missing, its tests are skipped with its name.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"


def find(program: str) -> str:
    """Return the path of a program. If it is not installed, return its name without a path."""
    return shutil.which(program, path=_PATH) or program


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skip if a program is not installed."""
    missing = [program for program in programs if not Path(find(program)).is_absolute()]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is not installed")


def radclient(
    directory: Path,
    kind: str,
    server: str,
    secret: str,
    attributes: Sequence[str],
    *options: str,
    tries: int = 1,
    wait_s: float = 5,
) -> str:
    """Send one packet with radclient. Return its output, with every attribute that it sent and received.

    directory: the directory for an empty dictionary, so that /etc/freeradius is not read. server: host:port. kind:
    auth, acct or status. attributes: such as 'User-Name = "bob"'. Octets that are not text are written as octal
    escapes.
    """
    (directory / "dictionary").write_text("")
    command = [find("radclient"), "-x", "-d", str(directory), "-r", str(tries), "-t", str(wait_s), *options]
    done = subprocess.run(
        [*command, server, kind, secret],
        input="\n".join(attributes) + "\n",
        capture_output=True,
        text=True,
        errors="replace",
        timeout=tries * wait_s + 10,
        check=False,
    )
    return done.stdout + done.stderr
