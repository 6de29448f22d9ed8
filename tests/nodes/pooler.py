"""PgBouncer before the server of the tests."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import which

import pytest

from tests.peers.postgres import NOBODY, USER
from tests.ports import free_port
from tests.waiting import eventually

needs_pgbouncer = pytest.mark.skipif(which("pgbouncer") is None, reason="no PgBouncer: apt-get install pgbouncer")


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@contextmanager
def pooled(directory: Path, database: str, *, mode: str, ignored: str = "options") -> Iterator[str]:
    """Yield the address of a database behind a pooler. mode: session or transaction. ignored: parameters of a
    connection that it drops."""
    port = free_port()
    file, users, log = directory / "pgbouncer.ini", directory / "users", directory / "log"
    users.write_text(f'"{USER}" ""\n')
    address = database.removeprefix(f"postgresql://{USER}@").partition("/")
    host, _, server_port = address[0].partition(":")
    file.write_text(
        f"[databases]\n{address[2]} = host={host} port={server_port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {users}\npool_mode = {mode}\n"
        f"logfile = {log}\nserver_reset_query = DISCARD ALL\n"
        + (f"ignore_startup_parameters = {ignored}\n" if ignored else "")
    )
    for each in (directory, *directory.parents[:2]):
        each.chmod(0o755)
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    if user:
        os.chown(directory, NOBODY, NOBODY)
    process = subprocess.Popen(["pgbouncer", "-q", str(file)], **user)  # type: ignore[call-overload]
    try:
        eventually(lambda: _answers(port))
        yield f"postgresql://{USER}@127.0.0.1:{port}/{address[2]}"
    finally:
        process.terminate()
        process.wait()
