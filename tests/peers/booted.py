"""A complete machine for a test: a minimal Debian that systemd boots in a container, with its own loopback network.

    with BootedHost(base(PACKAGES), tmp_path, {"/wheels": wheels}) as host:
        host.run("systemctl", "start", "sallyport")

It starts from the given file system, and its changes are lost when it ends. It ends with the test, even if the test is
killed. It needs root and systemd-nspawn.
"""

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import pytest

from tests.peers.programs import find, needs

PACKAGES = "python3,python3-venv,systemd,systemd-sysv,dbus,iproute2"
BOOT_S = 60
COMMAND_S = 600
_CGROUPS = Path("/sys/fs/cgroup")
_NAMESPACES = ("--mount", "--pid", "--net", "--ipc", "--uts", "--cgroup", "--root", "--wd")
_ENVIRON = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
_ENTER_CGROUPS = 'for each in $1; do echo $$ >"$each/cgroup.procs"; done; shift; exec "$@"'
"""A shell script. Its first argument is a list of directories of control groups, which it enters. The other arguments
are the command that it then becomes."""

needs_boot = [
    needs("debootstrap", "systemd-nspawn", "nsenter", "setpriv"),
    pytest.mark.skipif(os.geteuid() != 0, reason="debootstrap and systemd-nspawn need root"),
]


class BootedHost:
    """A machine.

    directory: the directory for the log of its start. Each machine must have its own, since the control group is named
    after it. mounts: directories of this machine, keyed by their path on the new machine.
    """

    def __init__(self, base_directory: Path, directory: Path, mounts: Mapping[str, Path]) -> None:
        options = ["--quiet", "--boot", "--volatile=overlay", "--private-network", "--console=pipe"]
        options += ["--register=no", "--keep-unit", f"--directory={base_directory}"]
        options += [f"--bind-ro={source}:{place}" for place, source in mounts.items()]
        self._log = directory / "boot.log"
        self._cgroups = _make_cgroups(directory.name)
        enter = ("sh", "-euc", _ENTER_CGROUPS, "sh", " ".join(map(str, self._cgroups)))
        with self._log.open(
            "wb"
        ) as log:  # systemd-nspawn shuts down at SIGTERM, which it also gets when the test is killed
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", *enter, find("systemd-nspawn"), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._first = ""
        if not self._is_booted():
            self._end()
            pytest.skip(f"systemd does not boot here: {self._log.read_text(errors='replace')[-300:]}")

    @property
    def entrance(self) -> tuple[str, ...]:
        """The beginning of a command line that runs a program on the machine."""
        return ("nsenter", f"--target={self._first}", *_NAMESPACES)

    def run(self, *command: str, check: bool = True, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """Run a program on the machine."""
        done = subprocess.run(
            [*self.entrance, *command],
            input=stdin,
            capture_output=True,
            text=True,
            env=_ENVIRON,
            timeout=COMMAND_S,
            check=False,
        )
        assert not check or done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def shell(self, script: str) -> str:
        """Run a script, which must succeed, and return its output."""
        return self.run("sh", "-eu", "-c", script).stdout

    def __enter__(self) -> "BootedHost":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _is_booted(self) -> bool:
        deadline = time.monotonic() + BOOT_S
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        while time.monotonic() < deadline and self._process.poll() is None:
            first = children.read_text().split()
            if first and Path(f"/proc/{first[0]}/comm").read_text() == "systemd\n":
                self._first = first[0]
                state = self.run("systemctl", "is-system-running", "--wait", check=False).stdout.strip()
                if state in ("running", "degraded"):
                    return True
            time.sleep(0.2)
        return False

    def _end(self) -> None:
        self._process.terminate()
        self._process.wait(BOOT_S)
        for top in self._cgroups:
            for each in sorted(top.glob("**/"), reverse=True):
                each.rmdir()


def _make_cgroups(name: str) -> list[Path]:
    """Create a control group for one machine in each hierarchy that systemd uses, and return their directories.

    In a common control group, the units of two machines have the same directories. If one machine ends and removes the
    directories that are empty, the other machine may fail to start a unit.
    """
    tops = [_CGROUPS / each for each in ("systemd", "unified") if (_CGROUPS / each).is_dir()] or [_CGROUPS]
    cgroups = [top / f"sallyport-{os.getpid()}-{name}" for top in tops]
    try:
        for each in cgroups:
            each.mkdir(exist_ok=True)
    except OSError as error:
        pytest.skip(f"control groups cannot be created here: {error}")
    return cgroups
