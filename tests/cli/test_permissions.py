"""The messages of every command about files that its user may not read or write."""

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
from tests.running_service import RunningService, refusal

ROOT = Path(__file__).parents[2]
SITUATIONS = ("directory", "settings", "argument", "unreadable argument", "read-only", "socket")
OWN = (("demo",), ("bench",))  # they use a directory of their own
COMMANDS = [" ".join(words) for words, _ in leaves() if words not in OWN]
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
"""Give other users access to this Python if it is in a private directory, and hide the rest of that directory."""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="another user's files need root")


def private(path: Path) -> Path:
    """Return the first directory of a path that other users may not enter. If there is none, return the path itself."""
    return next((each for each in reversed(path.parents) if not each.stat().st_mode & 0o001), path)


@pytest.fixture(scope="module")
def outcomes() -> Iterator[dict[str, tuple[int, str]]]:
    """Yield the exit status and the output of each command, by situation and name."""
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
def test_a_missing_permission_is_reported(outcomes: dict[str, tuple[int, str]], command: str, situation: str) -> None:
    """The command ends with a message and not by a signal. The message does not say that a file is missing if it
    exists.
    """
    status, output = outcomes[f"{situation}: {command}"]
    assert status in (0, 1, 2), output
    assert "Traceback" not in output
    assert "does not exist" not in output
    assert "No such file" not in output


def foreign_data_directory(service: RunningService) -> Path:
    """Create a data directory that belongs to another user, and return it."""
    service.data_dir.mkdir(mode=0o700)
    os.chown(service.data_dir, NOBODY, NOBODY)
    service.ok("db", "migrate")
    return service.data_dir


def test_files_that_root_creates_belong_to_the_owner_of_the_data_directory(stopped: RunningService) -> None:
    """The store, keys, certificates, backups and exports that root creates get the owner of the data directory."""
    data = foreign_data_directory(stopped)
    stopped.ok("cert", "init", "--host", "radius.example.org")
    bundles = ("--p12", str(data / "laptop.p12"), "--mobileconfig", str(data / "laptop.mobileconfig"))
    stopped.ok("cert", "issue", "laptop", *bundles)
    stopped.ok("db", "backup", str(data / "copy.db"))
    stopped.ok("event", "export", "--domain", "default", "--output", str(data / "events.csv"))
    made = ("lock", "sallyport.db", "master.key", "admin.token", "certs/ca.key", "copy.db", "events.csv", "laptop.p12")
    assert all((data / name).exists() for name in made)
    assert {path.lstat().st_uid for path in data.rglob("*")} == {NOBODY}


def test_root_does_not_follow_a_link_in_a_data_directory(stopped: RunningService) -> None:
    """The owner of the directory cannot make root write to a place where the owner may not write."""
    data, target = foreign_data_directory(stopped), stopped.directory / "target"
    target.mkdir()
    (data / "certs").symlink_to(target)
    refused = stopped.cli("cert", "init", "--host", "radius.example.org")
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    assert not list(target.iterdir())


def test_the_doctor_names_files_that_the_owner_cannot_read() -> None:
    """A file of root in the directory of the service is a problem. The finding has the command that repairs it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        service = RunningService(Path(folder))
        os.chown(foreign_data_directory(service) / "sallyport.db", 0, 0)
        done = service.cli("doctor", "--json")
    (found,) = [row["finding"] for row in json.loads(done.stdout) if row["check"] == "files"]
    assert "sallyport.db: Permission denied; chown nobody" in found


def test_a_service_whose_user_cannot_read_the_program_is_refused(stopped: RunningService) -> None:
    """If root runs `serve`, the process gives up root. It could then not read the program and would fail at its next
    import. So the start is refused with a message that names the file and the remedy.
    """
    foreign_data_directory(stopped)
    hidden = stopped.directory / "hidden"
    hidden.mkdir(mode=0o700)
    (hidden / "sallyport").symlink_to(Path(sallyport.__file__).parent)
    start = "from sallyport.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", start, "serve"],
        env={**stopped.environ, "PYTHONPATH": str(hidden)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    message = refusal(done)
    assert f"the service runs as user nobody, who owns {stopped.data_dir} and cannot read " in message
    assert message.endswith(": install the program where that user can read it, such as /opt/sallyport")
