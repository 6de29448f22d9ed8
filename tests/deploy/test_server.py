"""Refusals of `sallyport server install` and `uninstall`. Each message has a remedy, and nothing is changed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("sallyport")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may run as another user")


def refused(*command: str | Path) -> str:
    """Assert that a command fails, and return its message."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("arguments", [("install", "--start"), ("uninstall", "--purge", "--yes")], ids=" ".join)
def test_install_and_uninstall_need_root(arguments: tuple[str, ...]) -> None:
    """The message has the whole command line to run, with sudo and the path of this program."""
    as_other = ("unshare", "--user", "--map-user=1000") if os.geteuid() == 0 else ()
    message = refused(*as_other, PROGRAM, "server", *arguments)
    words = " ".join(arguments)
    assert message == f"sallyport: server {arguments[0]} needs root: sudo {PROGRAM} server {words}"


def test_another_settings_file_is_refused(tmp_path: Path) -> None:
    """The service has one settings file, so --config is refused, because it would be ignored."""
    message = refused(PROGRAM, "--config", str(tmp_path / "own.toml"), "server", "install")
    assert "--config" in message and "/etc/sallyport/sallyport.toml" in message


@as_root
def test_a_program_that_the_user_cannot_reach_is_refused(tmp_path: Path) -> None:
    """The message names the path of the program, the directory that hides it, and another place."""
    program = tmp_path / "sallyport"
    program.symlink_to(PROGRAM)
    message = refused(program, "server", "install")
    assert f"the user sallyport cannot run {program}: " in message
    assert "systemd hides this directory from the service" in message
    assert "sudo /opt/sallyport/bin/sallyport server install" in message
    assert not Path("/etc/sallyport/sallyport.toml").exists()


def test_uninstall_accepts_yes_only_with_purge() -> None:
    """`uninstall` accepts --yes only with --purge, because without --purge it asks no question."""
    done = subprocess.run([PROGRAM, "server", "uninstall", "--yes"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--purge" in done.stderr
