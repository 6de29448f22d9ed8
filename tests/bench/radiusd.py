"""FreeRADIUS as a process: how it is found, configured and run. Each comparison adds its own configuration. FreeRADIUS
reads nothing from /etc/freeradius, logs no logins, and loads only the modules that a server needs.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .child import SECRET, child_process, wait_until
from .settings import BenchmarkError

THREADS = 32  # as in the package

RADIUSD = """\
prefix = {directory}
localstatedir = {directory}
logdir = {directory}
run_dir = {directory}
pidfile = {directory}/radiusd.pid
max_request_time = 30
cleanup_delay = 5
max_requests = 65536
hostname_lookups = no
proxy_requests = {proxies}
log {{
    destination = stdout
    auth = no
}}
security {{
    max_attributes = 200
    reject_delay = 0    # it would measure the delay, not the server
    status_server = yes
    allow_vulnerable_openssl = yes    # the check of the library's version
}}
thread pool {{
    start_servers = 5
    max_servers = {threads}
    min_spare_servers = 3
    max_spare_servers = 10
    max_queue_size = 65536
    max_requests_per_server = 0
}}
client bench {{
    ipaddr = 127.0.0.1
    secret = {secret}
}}
"""

LISTEN = """\
    listen {{
        type = {kind}
        ipaddr = 127.0.0.1
        port = {port}
        recv_buff = 4194304
    }}
"""


def find_program() -> str:
    """Return the path of the daemon, whose name differs between distributions. Raises BenchmarkError if it is not
    installed.
    """
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
    for name in ("freeradius", "radiusd"):
        if program := shutil.which(name, path=path):
            return program
    raise BenchmarkError("FreeRADIUS is missing: apt-get install freeradius")


def version() -> str:
    """Return the name and the version that the daemon prints, such as `FreeRADIUS Version 3.2.1`."""
    told = subprocess.run([find_program(), "-v"], capture_output=True, text=True, timeout=10, check=False).stdout
    _, _, name = told.partition("\n")[0].partition(": ")
    return name.partition(", for host")[0] or "FreeRADIUS"


def listen(port: int, kind: str = "auth") -> str:
    """Return the section of a virtual server that receives packets at a port. kind: auth or acct."""
    return LISTEN.format(kind=kind, port=port)


@contextmanager
def running_radiusd(directory: Path, sections: str, *, threads: int = THREADS, proxies: bool = False) -> Iterator[int]:
    """Run FreeRADIUS in the foreground as the current user, with all of its files in a directory, and yield the
    process. sections: the modules and servers of the configuration. proxies: whether it may forward requests.
    """
    head = RADIUSD.format(directory=directory, threads=threads, proxies="yes" if proxies else "no", secret=SECRET)
    (directory / "radiusd.conf").write_text(head + sections)
    (directory / "dictionary").write_text("")
    output = directory / "output"
    with child_process([find_program(), "-f", "-d", str(directory)], directory=directory, output=output) as process:
        wait_until(lambda: "Ready to process requests" in output.read_text(), process, output, seconds=20)
        yield process.pid


def write_users(directory: Path, users: dict[str, str]) -> None:
    """Return the file `authorize` for rlm_files. users: the passwords in clear text, by user name."""
    lines = [f'{name} Cleartext-Password := "{password}"\n' for name, password in users.items()]
    (directory / "authorize").write_text("".join(lines))
