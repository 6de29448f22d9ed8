"""Refusals of `sallyport server install` and `uninstall`: nothing is changed, and the remedy is named."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("sallyport")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may run as another user")


def refused(*command: str | Path) -> str:
    """Return the message of a command that must fail."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("arguments", [("install", "--start"), ("uninstall", "--purge", "--yes")], ids=" ".join)
def test_it_needs_root(arguments: tuple[str, ...]) -> None:
    """The message has the whole command line, with sudo and the path of this program."""
    as_other = ("unshare", "--user", "--map-user=1000") if os.geteuid() == 0 else ()
    said = refused(*as_other, PROGRAM, "server", *arguments)
    words = " ".join(arguments)
    assert said == f"sallyport: server {arguments[0]} needs root: sudo {PROGRAM} server {words}"


def test_another_settings_file_is_refused(tmp_path: Path) -> None:
    """The service has one settings file; a --config that would be ignored is an error."""
    said = refused(PROGRAM, "--config", str(tmp_path / "own.toml"), "server", "install")
    assert "--config" in said and "/etc/sallyport/sallyport.toml" in said


@as_root
def test_a_program_that_the_user_cannot_reach_is_refused(tmp_path: Path) -> None:
    """A program in /root, /home or /tmp: the message names the path, the directory and another place."""
    program = tmp_path / "sallyport"
    program.symlink_to(PROGRAM)
    said = refused(program, "server", "install")
    assert f"the user sallyport cannot run {program}: " in said
    assert "which the service cannot see" in said
    assert "sudo /opt/sallyport/bin/sallyport server install" in said
    assert not Path("/etc/sallyport/sallyport.toml").exists()


def test_yes_belongs_to_purge() -> None:
    """`uninstall --yes` without --purge is wrong usage, since there is no prompt."""
    done = subprocess.run([PROGRAM, "server", "uninstall", "--yes"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--purge" in done.stderr
