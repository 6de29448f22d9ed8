"""How a command finds the installation and waits for a service that is starting. It creates nothing meanwhile."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import structlog

from sallyport.base.errors import Absent, Locked, StartError
from sallyport.cli.connection import READING, patiently
from sallyport.cli.installation import NOTHING_HERE, places
from sallyport.cli.serve import hold
from sallyport.settings.settings import Settings
from sallyport.store.data_folder import open_data_directory
from tests.cli import TENANT
from tests.cli.test_requests import COMMANDS
from tests.forked import Forked, completed
from tests.running_service import RunningService

BINDS = {f"SALLYPORT_{name}_BIND": "127.0.0.1:0" for name in ("HTTP", "RADIUS_AUTH", "RADIUS_ACCT")}
NOBODY = 65534

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="files of another user need root")


class Clock:
    """A clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield an empty working directory. The environment names no installation."""
    for name in [name for name in os.environ if name.startswith("SALLYPORT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def sallyport(directory: Path, *words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Run the program in a directory, with the environment and with these variables."""
    whole = {**os.environ, **BINDS, "SALLYPORT_DISK_RESERVE_MIB": "0", **environ}
    return completed(words, environ=whole, directory=directory)


@pytest.mark.parametrize("first", ["serve", "command"])
def test_a_command_and_serve_can_start_together(tmp_path: Path, first: str) -> None:
    """A command and `serve` start at the same time, ten times. Each command succeeds, in the service or on the store,
    and each service becomes ready.
    """
    for turn in range(10):
        service = RunningService(tmp_path / str(turn))
        service.directory.mkdir()
        printed = service.directory / "printed"
        files = {"serve": service.log_path, "command": printed}
        words = {"serve": ("serve",), "command": ("client", "add", "nas", "--address", "192.0.2.1", *TENANT)}
        started = {
            each: Forked(
                words[each],
                environ=service.environ,
                directory=service.directory,
                output=files[each],
                errors=files[each],
            )
            for each in (first, *({"serve", "command"} - {first}))
        }
        try:
            assert started["command"].wait(60) == 0, (turn, printed.read_text())
            assert json.loads(service.ok("client", "list", "--json"))[0]["name"] == "nas"
            assert service.ok("log", "level") == "info", service.log()
        finally:
            started["serve"].terminate()
            assert started["serve"].wait(30) == 0


def test_a_command_without_an_installation_creates_nothing(here: Path) -> None:
    """The message names the settings that select an installation. No directory, lock or socket is created."""
    done = sallyport(here, "client", "list")
    message = "sallyport: no Sallyport installation in ./sallyport-data; set SALLYPORT_DATA_DIR or --config\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", message)
    assert not list(here.iterdir())


def test_a_named_directory_without_an_installation_stays_empty(here: Path) -> None:
    """The message has the directory and the setting that names it. Nothing is created in the directory."""
    (here / "data").mkdir()
    done = sallyport(here, "domain", "add", "x", *TENANT, SALLYPORT_DATA_DIR="data")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "sallyport: no Sallyport installation in data, which SALLYPORT_DATA_DIR names\n"
    assert not list((here / "data").iterdir())


def test_a_change_names_the_installation_it_found(here: Path) -> None:
    """A command that changes something prints the installation that it found on standard error. It is not printed by a
    command that only reads, or if the user has named the installation.
    """
    assert sallyport(here, "db", "migrate").returncode == 0
    found = "using the installation in ./sallyport-data\n"
    added = sallyport(here, "domain", "add", "x", *TENANT)
    assert (added.returncode, added.stderr) == (0, found)
    for words in (("domain", "list"), ("domain", "list", "--json"), ("domain", "preview", "x"), ("doctor",)):
        assert found not in sallyport(here, *words).stderr, words
    assert sallyport(here, "domain", "add", "y", *TENANT, SALLYPORT_DATA_DIR="./sallyport-data").stderr == ""


def test_the_option_precedes_the_environment_and_the_file(here: Path) -> None:
    """The order is: --config, the environment, the settings file in this directory, the data directory in this
    directory. If --config and the environment are both given, the environment sets the data directory.
    """
    (here / "other.toml").write_text('data_dir = "optional"')
    assert [str(each.settings.data_dir) for each in places(None, {}).places][:1] == ["sallyport-data"]
    (here / "sallyport.toml").write_text('data_dir = "written"\nreject_delay_s = 3')
    (local,) = places(None, {}).places
    assert (str(local.settings.data_dir), local.is_callers) == ("written", False)
    (named,) = places(None, {"SALLYPORT_DATA_DIR": "given"}).places
    assert (str(named.settings.data_dir), named.settings.reject_delay_s, named.is_callers) == ("given", 3, True)
    (option,) = places(Path("other.toml"), {}).places
    assert (str(option.settings.data_dir), option.is_callers) == ("optional", True)
    (both,) = places(Path("other.toml"), {"SALLYPORT_DATA_DIR": "given"}).places
    assert str(both.settings.data_dir) == "given"


@as_root
@pytest.mark.parametrize("name", ["sallyport-data", "sallyport.toml"])
@pytest.mark.parametrize("is_link", [False, True], ids=["itself", "link"])
def test_files_of_another_user_are_ignored(here: Path, name: str, is_link: bool) -> None:
    """In a directory such as /tmp, a file of another user must not control a command of root. The message names the
    ignored file.
    """
    path, target = here / name, here / "target"
    if name == "sallyport.toml":
        target.write_text('data_dir = "elsewhere"')
    else:
        target.mkdir()
    if is_link:
        path.symlink_to(target)
    else:
        target.rename(path)
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    found = places(None, {})
    assert [text.partition(" and ")[0] for text in found.passed_over] == [f"./{name} belongs to user nobody"]
    assert all(str(each.settings.data_dir) != "elsewhere" for each in found.places)
    refused = sallyport(here, "serve")
    assert (refused.returncode, refused.stderr.count("belongs to user nobody")) == (1, 1)
    done = sallyport(here, "domain", "list")
    assert f"./{name} belongs to user nobody and is ignored; to use it, set" in done.stderr
    assert NOTHING_HERE in done.stderr


def test_retries_have_a_time_limit() -> None:
    """A missing installation is retried for 3 s, and a held lock for 20 s. Then the last error is raised."""
    for error, seconds in ((Absent("nothing"), 3.0), (Locked("held"), 20.0)):
        clock = Clock()

        def turn(error: StartError = error) -> None:
            raise error

        with pytest.raises(type(error)):
            patiently(turn, now=clock.now, sleep=clock.sleep)
        assert seconds <= clock.time < seconds + 0.1


def test_serve_waits_for_the_lock_of_a_command(tmp_path: Path) -> None:
    """`serve` starts when a command releases the lock, and logs a long wait."""
    settings, clock = Settings(data_dir=tmp_path), Clock()
    descriptor = open_data_directory(tmp_path)

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if clock.time > 5:
            with suppress(OSError):
                os.close(descriptor)

    with structlog.testing.capture_logs() as logged:
        os.close(hold(settings, now=clock.now, sleep=sleep))
    assert [each["event"] for each in logged] == ["waiting_for_data_directory"]
    assert 5 < clock.time < 6


def test_serve_stops_waiting_after_30_s(tmp_path: Path) -> None:
    """After 30 s `serve` stops waiting, and the error names the process that holds the lock."""
    clock = Clock()
    descriptor = open_data_directory(tmp_path)
    with pytest.raises(Locked, match=r"in use by .*; it does not answer commands: if it is just starting, try again"):
        hold(Settings(data_dir=tmp_path), now=clock.now, sleep=clock.sleep)
    os.close(descriptor)
    assert 30 <= clock.time < 31


@pytest.mark.parametrize("has_key", [True, False], ids=["with the key", "without a key"])
def test_a_backup_is_restored_into_an_empty_directory(stopped: RunningService, has_key: bool) -> None:
    """If the master key is given, `db restore` creates an installation in the empty directory, and the token of the
    backup is valid. Without the key it creates nothing.
    """
    stopped.ok("db", "migrate")
    stopped.ok("domain", "add", "kept", *TENANT)
    stopped.ok("db", "backup", "copy.db")
    key = stopped.data_dir / "master.key"
    text, token = key.read_text(), stopped.token
    stopped.data_dir.rename(stopped.directory / "lost")
    stopped.data_dir.mkdir(mode=0o700)
    if has_key:
        key.write_text(text)
        stopped.ok("db", "restore", "copy.db", "--yes")
        assert "kept" in stopped.ok("domain", "list")
        assert not (stopped.data_dir / "admin.token").exists()
        stopped.start()
        assert stopped.post("/ad/GetAllDomains", {"orgId": 1, "tenantId": 1}, token=token)
    else:
        refused = stopped.cli("db", "restore", "copy.db", "--yes")
        assert refused.returncode == 1
        assert "to restore a backup there, first copy its master.key to this directory" in refused.stderr
        assert not list(stopped.data_dir.iterdir())


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_that_only_read_are_recognized(command: str) -> None:
    """A command that only reads is recognized by its name. Any other command first prints the installation."""
    verbs = ("add", "create", "revoke", "set", "restore", "break_glass", "import", "unlatch", "backup", "migrate",
             "rotate-key", "copy", "init", "issue", "renew", "remove", "import_ldif", "erase", "level",
             "forget", "password", "rename", "totp", "mail.test", "apply", "reload")  # fmt: skip
    assert bool(READING.search(command)) is not command.endswith(verbs)
