"""What every command says where this user may not read or write: no traceback, and "permission denied" by its name."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import sallyport
from tests.cli.permissions import NOBODY, leaves
from tests.service import RunningService

ROOT = Path(__file__).parents[2]
SITUATIONS = ("directory", "settings", "argument", "unreadable argument", "read-only", "socket")
COMMANDS = [" ".join(words) for words, _ in leaves() if words != ("demo",)]  # which is in a directory of its own
READABLE = """
set -eu
top=$1 prefix=$2; shift 2
if [ "$top" != "$prefix" ]; then
    mount --bind "$prefix" /mnt
    mount -t tmpfs -o mode=755 tmpfs "$top"
    mkdir -p "$prefix"
    mount --bind /mnt "$prefix"
fi
exec "$@"
"""
"""Gives other users this Python, if it is in a private directory, and hides the rest of that directory meanwhile."""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="another user's files need root")


def private(path: Path) -> Path:
    """The first directory above a path that other users may not enter; the path itself if there is none."""
    return next((each for each in reversed(path.parents) if not each.stat().st_mode & 0o001), path)


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, tuple[int, str]]]:
    """Exit status and output of each command, by situation and name."""
    prefix = Path(sys.base_prefix)
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            READABLE,
            "sh",
            private(prefix),
            prefix,
        ]
        done = subprocess.run(
            [*command, sys.executable, "-m", "tests.cli.permissions", folder],
            cwd=ROOT, capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]
        yield json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_missing_permission_is_told(outcomes: dict[str, tuple[int, str]], command: str, situation: str) -> None:
    """The command ends by itself with a message; nothing that exists is said to be missing."""
    status, told = outcomes[f"{situation}: {command}"]
    assert status in (0, 1, 2), told
    assert "Traceback" not in told
    assert "does not exist" not in told
    assert "No such file" not in told


def foreign(service: RunningService) -> Path:
    """Return the data directory, which is another user's."""
    service.data_dir.mkdir(mode=0o700)
    os.chown(service.data_dir, NOBODY, NOBODY)
    service.ok("db", "migrate")
    return service.data_dir


def test_root_leaves_files_to_the_owner_of_the_data_directory(stopped: RunningService) -> None:
    """What root's commands make there belongs to its owner: the store, keys, certificates, backups and exports."""
    data = foreign(stopped)
    stopped.ok("cert", "init", "--host", "radius.example.org")
    bundles = ("--p12", str(data / "laptop.p12"), "--mobileconfig", str(data / "laptop.mobileconfig"))
    stopped.ok("cert", "issue", "laptop", *bundles)
    stopped.ok("db", "backup", str(data / "copy.db"))
    stopped.ok("event", "export", "--domain", "default", "--output", str(data / "events.csv"))
    made = ("lock", "sallyport.db", "master.key", "admin.token", "certs/ca.key", "copy.db", "events.csv", "laptop.p12")
    assert all((data / name).exists() for name in made)
    assert {path.lstat().st_uid for path in data.rglob("*")} == {NOBODY}


def test_a_link_in_a_data_directory_leads_root_nowhere(stopped: RunningService) -> None:
    """The directory's owner cannot have root write to a place where the owner may not write."""
    data, target = foreign(stopped), stopped.directory / "target"
    target.mkdir()
    (data / "certs").symlink_to(target)
    refused = stopped.cli("cert", "init", "--host", "radius.example.org")
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    assert not list(target.iterdir())


def test_the_doctor_names_what_the_owner_cannot_read() -> None:
    """A file of root in the service's directory is a problem, with the command that mends it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        service = RunningService(Path(folder))
        os.chown(foreign(service) / "sallyport.db", 0, 0)
        done = service.cli("doctor", "--json")
    (found,) = [row["finding"] for row in json.loads(done.stdout) if row["check"] == "files"]
    assert "sallyport.db: Permission denied; chown nobody" in found


def test_a_service_whose_user_cannot_read_the_program_is_refused(stopped: RunningService) -> None:
    """Root's `serve` would give up root and fail at its next import: the message names the file and the remedy."""
    foreign(stopped)
    hidden = stopped.directory / "hidden"
    hidden.mkdir(mode=0o700)
    (hidden / "sallyport").symlink_to(Path(sallyport.__file__).parent)
    start = "from sallyport.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", start, "serve"],
        env={**stopped.environ, "PYTHONPATH": str(hidden)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    (told,) = done.stderr.splitlines()
    assert f"the service runs as user nobody, who owns {stopped.data_dir} and cannot read " in told
    assert told.endswith(": install the program where that user can read it, such as /opt/sallyport")
