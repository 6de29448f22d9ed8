"""A complete Linux host for a test. debootstrap makes its Debian once, and the test has its own overlay above it.

    with IsolatedHost(tmp_path, base()) as host:
        host.run("useradd", "ann")
        host.run(*host.sallyport("agent", "status"))

It has its own accounts, processes and files. It has the network of the test, so that it can reach a service on
loopback and can be reached there. The Python and Sallyport of the test are mounted read-only at the same path. All its
processes end with it, even if the test is killed, because its first process ends when the pipe that it reads is closed.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import TracebackType

import pytest

from tests.peers.programs import find, needs

CACHE = Path("/var/cache/sallyport-tests")
SUITE = "bookworm"
HOST_PACKAGES = "sudo,passwd,openssh-server,libffi8,libssl3,zlib1g,libbz2-1.0,liblzma5,libexpat1"
DEBOOTSTRAP_S = 600
COMMAND_S = 120
_UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--propagation", "private")
_SOURCE = Path(__file__).parents[2] / "src"
_SET_UP = """\
set -eu
base=$1 own=$2
shift 2
mount -t overlay overlay -o "lowerdir=$base,upperdir=$own/upper,workdir=$own/work" "$own/root"
mount -t proc proc "$own/root/proc"
mount --rbind /dev "$own/root/dev"
mount -t tmpfs tmpfs "$own/root/run"
mkdir -p "$own/root/run/sshd"
chmod 755 "$own/root/root"
for each; do
    mkdir -p "$own/root$each"
    mount --bind "$each" "$own/root$each"
    mount -o remount,ro,bind "$own/root$each"
done
exec chroot "$own/root" sh -c 'echo ready; exec cat'
"""

needs_isolation = [
    needs("debootstrap", "unshare", "nsenter", "ssh", "ssh-keygen"),
    pytest.mark.skipif(os.geteuid() != 0, reason="debootstrap and mounts need root"),
]


@cache
def base(packages: str = HOST_PACKAGES) -> Path:
    """Return the file system of a minimal Debian with these packages.

    It is made once and kept. If it cannot be made, skip the test.
    """
    made = CACHE / f"{SUITE}-{hashlib.sha256(packages.encode()).hexdigest()[:8]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if made.exists():
            return made
        unfinished = CACHE / "unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        include = [f"--include={packages}"] if packages else []
        command = [find("debootstrap"), "--variant=minbase", *include, SUITE, str(unfinished)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=DEBOOTSTRAP_S, check=False)
        except subprocess.TimeoutExpired:
            pytest.skip("debootstrap does not end")
        if done.returncode != 0:
            pytest.skip(f"debootstrap failed: {done.stdout[-200:]}")
        shutil.rmtree(unfinished / "var/cache/apt", ignore_errors=True)
        unfinished.rename(made)
    return made


class IsolatedHost:
    """A host.

    directory: an empty directory for its files.
    """

    def __init__(self, directory: Path, base_directory: Path) -> None:
        self.root = directory / "root"
        for name in ("root", "upper", "work"):
            (directory / name).mkdir()
        mounts = dict.fromkeys(map(str, (sys.base_prefix, Path(sys.prefix), Path(sys.prefix).resolve(), _SOURCE)))
        arguments = [*_UNSHARE, "sh", "-c", _SET_UP, "sh", str(base_directory), str(directory), *mounts]
        self._process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._started: list[subprocess.Popen[bytes]] = []
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            self._end()
            pytest.skip("no overlay file system can be mounted here")
        self._first = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()[0]
        # From `ready` on its root directory is the host's; a mistake here would change the test machine.
        assert Path(f"/proc/{self._first}/root").readlink() == self.root

    def command(self, *arguments: str) -> list[str]:
        """Return the command line that runs a program in the host."""
        return ["nsenter", f"--target={self._first}", "--mount", "--pid", "--root", "--wd", *arguments]

    def sallyport(self, *arguments: str) -> list[str]:
        """Return the command line that runs Sallyport in the host."""
        program = "from sallyport.cli.main import main; main()"
        return ["env", f"PYTHONPATH={_SOURCE}", "PYTHONDONTWRITEBYTECODE=1", sys.executable, "-c", program, *arguments]

    def run(self, *arguments: str, stdin: bytes = b"", check: bool = True) -> "subprocess.CompletedProcess[str]":
        """Run a program in the host. It is searched for in the PATH of the host."""
        environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            self.command(*arguments), input=stdin, capture_output=True, env=environ, timeout=COMMAND_S, check=False
        )
        result = subprocess.CompletedProcess(arguments, done.returncode, done.stdout.decode(), done.stderr.decode())
        assert not check or result.returncode == 0, f"{arguments}: {result.returncode}\n{result.stdout}{result.stderr}"
        return result

    def start(self, arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
        """Start a program in the host. It ends with the host."""
        process = subprocess.Popen(self.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._started.append(process)
        return process

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file in the host."""
        self.run("install", "-D", "-m", f"{mode:o}", "/dev/stdin", path, stdin=text.encode())

    def read(self, path: str) -> str:
        """Read a file of the host."""
        return self.run("cat", path).stdout

    def __enter__(self) -> "IsolatedHost":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        for process in self._started:
            process.wait(30)
            if process.stdout is not None:
                process.stdout.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
