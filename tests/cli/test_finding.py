"""Where a command finds the installation, that it waits for a service that is starting, and that it makes nothing."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import structlog

from sallyport.base.config import Settings
from sallyport.base.errors import Absent, Locked, StartError
from sallyport.cli.connection import READING, patiently
from sallyport.cli.installation import NOTHING_HERE, places
from sallyport.cli.serve import hold
from sallyport.store.directory import open_data_directory
from tests.cli import TENANT
from tests.cli.test_requests import COMMANDS
from tests.service import PROGRAM, RunningService

BINDS = {f"SALLYPORT_{name}_BIND": "127.0.0.1:0" for name in ("HTTP", "RADIUS_AUTH", "RADIUS_ACCT")}
NOBODY = 65534

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="files of another user need root")


class Clock:
    """A clock that sleeping sets forward."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working directory, and an environment that names no installation."""
    for name in [name for name in os.environ if name.startswith("SALLYPORT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def sallyport(directory: Path, *words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Run the program in a directory, with the environment's variables and these."""
    whole = {**os.environ, **BINDS, "SALLYPORT_DISK_RESERVE_MIB": "0", **environ}
    return subprocess.run(
        [PROGRAM, *words], cwd=directory, env=whole, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("first", ["serve", "command"])
def test_serve_and_a_command_pasted_together_work(tmp_path: Path, first: str) -> None:
    """The command of ten pastes is done by the service or on the store, and the service becomes ready each time."""
    add = ("client", "add", "nas", "--address", "192.0.2.1", *TENANT)
    for turn in range(10):
        service = RunningService(tmp_path / str(turn), {}, fresh=True)
        service.directory.mkdir()
        command: subprocess.Popen[str] | None = None
        if first == "command":
            command = subprocess.Popen(
                [PROGRAM, *add], env=service.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        with service.log_path.open("ab") as log:
            serving = subprocess.Popen([PROGRAM, "serve"], stdout=log, stderr=log, env=service.environ)
        try:
            if command is None:
                done = service.program(*add)
                status, told = done.returncode, done.stderr
            else:
                _, told = command.communicate(timeout=60)
                status = command.returncode
            assert status == 0, (turn, told)
            assert json.loads(service.program("client", "list", "--json").stdout)[0]["name"] == "nas"
            assert service.program("log", "level").stdout == "info\n", service.log()
        finally:
            serving.terminate()
            assert serving.wait(30) == 0


def test_a_command_in_another_directory_makes_nothing(here: Path) -> None:
    """It says what to set, after another look, and leaves no directory, lock or socket."""
    done = sallyport(here, "client", "list")
    told = "sallyport: no Sallyport installation in ./sallyport-data; set SALLYPORT_DATA_DIR or --config\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", told)
    assert not list(here.iterdir())


def test_a_named_directory_without_an_installation_is_left_alone(here: Path) -> None:
    """The message names the directory and where it was named, and nothing is made in it."""
    (here / "data").mkdir()
    done = sallyport(here, "domain", "add", "x", *TENANT, SALLYPORT_DATA_DIR="data")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "sallyport: no Sallyport installation in data, which SALLYPORT_DATA_DIR names\n"
    assert not list((here / "data").iterdir())


def test_a_change_names_the_installation_that_was_found(here: Path) -> None:
    """A command that changes something names it on standard error; lists and --json, and a named one, are quiet."""
    assert sallyport(here, "db", "migrate").returncode == 0
    found = "using the installation in ./sallyport-data\n"
    added = sallyport(here, "domain", "add", "x", *TENANT)
    assert (added.returncode, added.stderr) == (0, found)
    for words in (("domain", "list"), ("domain", "list", "--json"), ("domain", "preview", "x"), ("doctor",)):
        assert found not in sallyport(here, *words).stderr, words
    assert sallyport(here, "domain", "add", "y", *TENANT, SALLYPORT_DATA_DIR="./sallyport-data").stderr == ""


def test_precedence(here: Path) -> None:
    """The option goes before the environment, that before the file here, and that before the directory here."""
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
def test_what_another_user_owns_does_not_count(here: Path, name: str, is_link: bool) -> None:
    """In a directory such as /tmp another user cannot direct root's commands; the caller is told of it."""
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
    assert f"./{name} belongs to user nobody and does not count; to use it, set" in done.stderr
    assert NOTHING_HERE in done.stderr


def test_looking_again_ends() -> None:
    """A missing installation is looked for 3 s, a lock waited for 10 s; the last error is raised."""
    for error, seconds in ((Absent("nothing"), 3.0), (Locked("held"), 10.0)):
        clock = Clock()

        def turn(error: StartError = error) -> None:
            raise error

        with pytest.raises(type(error)):
            patiently(turn, now=clock.now, sleep=clock.sleep)
        assert seconds <= clock.time < seconds + 0.1


def test_a_service_waits_for_a_command(tmp_path: Path) -> None:
    """`serve` gets the lock once a command gives it back, and logs that it waits if that takes long."""
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


def test_a_service_does_not_wait_for_ever(tmp_path: Path) -> None:
    """It ends after half a minute, with the reason."""
    clock = Clock()
    descriptor = open_data_directory(tmp_path)
    with pytest.raises(Locked, match=r"in use by .*; it answers no command: wait until it ends, or stop it"):
        hold(Settings(data_dir=tmp_path), now=clock.now, sleep=clock.sleep)
    os.close(descriptor)
    assert 30 <= clock.time < 31


@pytest.mark.parametrize("has_key", [True, False], ids=["with the key", "without a key"])
def test_a_backup_is_restored_into_an_empty_directory(stopped: RunningService, has_key: bool) -> None:
    """After the loss of a disk: the master key and a backup make an installation, and the token of the backup counts.
    Without the key nothing is made."""
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
        assert "to restore there, put its master.key there first" in refused.stderr
        assert not list(stopped.data_dir.iterdir())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_changes_something_does_not_pass_as_reading(command: str) -> None:
    """The names of commands that read end in what they give; others name the installation first."""
    verbs = ("add", "create", "revoke", "set", "restore", "break_glass", "import", "unlatch", "backup", "migrate",
             "rotate-key", "init", "issue", "renew", "remove", "import_ldif", "erase", "level")  # fmt: skip
    assert bool(READING.search(command)) is not command.endswith(verbs)
