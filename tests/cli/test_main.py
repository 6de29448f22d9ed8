"""The program as a whole: its list of commands, exit codes, what it imports, and how it finds the service."""

import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise

import click
import pytest

from sallyport.base.listening import process_name
from sallyport.base.options import Group
from sallyport.cli.main import AGENT_SECTIONS, SECTIONS, Sections, root
from tests.cli import TENANT, Service, add_domain
from tests.service import PROGRAM, RunningService

LISTS = (("token",), ("client",), ("domain",), ("device",), ("user", "--domain", "default"))
HEAVY = ("trio", "starlette", "sqlite_utils", "httpx", "cryptography", "pyrad", "sqlite3")


HEADINGS = ("RADIUS", "Sign-in policy", "People and directories", "Endpoints", "Credentials", "Operate")
COMMANDS = {name: entry for listed in SECTIONS.values() for name, entry in listed.items()}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_there_and_explains_itself(service: Service, name: str) -> None:
    """The list imports nothing, so each entry must name a command that exists; each has a line in the help."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    assert getattr(import_module(module), attribute).name == name
    assert f"  {name} " in service.ok("--help")
    assert service.ok(name, "--help").startswith("Usage: sallyport")


@pytest.mark.parametrize("sections", [SECTIONS, AGENT_SECTIONS], ids=["root", "agent"])
def test_every_command_is_under_one_heading(sections: Sections) -> None:
    """A command is declared under its heading, and under no other one."""
    names = [name for listed in sections.values() for name in listed]
    assert len(names) == len(set(names))


def test_the_help_has_the_headings_in_order(service: Service) -> None:
    """The help starts with the work of the first day; each heading has its most used command first."""
    told = service.ok("--help").splitlines()
    assert [each[:-1] for each in told if each.endswith(":") and each[:1].strip() and each != "Options:"] == [*HEADINGS]
    firsts = {each[:-1]: after.split()[0] for each, after in pairwise(told) if each[:-1] in HEADINGS}
    assert firsts == {heading: next(iter(listed)) for heading, listed in SECTIONS.items()}


def groups(group: click.Command = root) -> Iterator[click.Group]:
    """Every group of the tree."""
    if isinstance(group, click.Group):
        yield group
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield from groups(command)


@pytest.mark.parametrize("group", list(groups()), ids=lambda group: group.name)
def test_a_group_lists_its_commands_in_the_order_of_their_use(group: click.Group) -> None:
    """Every group keeps its order and has no name twice, and what it puts first exists."""
    assert isinstance(group, Group)
    assert set(group.first) <= group.commands.keys()
    names = group.list_commands(click.Context(group))
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", ["client", "domain", "directory", "token", "user", "rule"])
def test_the_help_of_a_group_starts_with_what_is_done_first(service: Service, name: str) -> None:
    """The help does not sort by name: what makes a thing comes first, then the list."""
    told = service.ok(name, "--help").partition("Commands:\n")[2]
    assert told.split()[0] in ("add", "create", "list")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("tokn",), 'There is no command "tokn". Did you mean "token"?'),
        (("token", "creat"), 'There is no command "creat". Did you mean "create"?'),
        (("token", "x"), 'There is no command "x". Commands: create, list, revoke.'),
    ],
)
def test_an_unknown_command_names_the_nearest(service: Service, words: tuple[str, ...], told: str) -> None:
    """The message has the command that was meant, or all of the group."""
    assert told in service.cli(*words).stderr


@pytest.mark.parametrize("words", LISTS)
def test_every_list_has_json(service: Service, words: tuple[str, ...]) -> None:
    """`--json` gives an array, with a service and in scripts that parse it."""
    name, *options = words
    assert isinstance(json.loads(service.ok(name, "list", "--json", *options)), list)


@pytest.mark.parametrize("words", [("token", "list"), ("domain", "list"), ("client", "list"), ("device", "list")])
def test_a_running_service_is_asked_without_ado(service: Service, words: tuple[str, ...]) -> None:
    """No event loop, web framework or database is imported where the service does the work."""
    code = (
        "import sys; from sallyport.cli.main import root; root(sys.argv[1:], standalone_mode=False); "
        f"print('heavy:', [name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], env=service.environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "heavy: []"


@pytest.mark.parametrize("arguments", [("nonsense",), ("token", "nonsense"), ("token", "list", "--nonsense"), ("--x",)])
def test_what_is_not_understood_ends_with_2(service: Service, arguments: tuple[str, ...]) -> None:
    """Nothing is on standard output then."""
    done = service.program(*arguments)
    assert (done.returncode, done.stdout) == (2, "")


def test_a_store_that_is_held_is_not_touched(stopped: RunningService) -> None:
    """Where another process has the lock and nobody answers, a command fails with one line."""
    stopped.ok("db", "migrate")
    descriptor = os.open(stopped.data_dir / "lock", os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        done = stopped.cli("domain", "list")
    finally:
        os.close(descriptor)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert f"is in use by {process_name(os.getpid())}; it answers no command: wait until it ends" in done.stderr


def test_the_socket_of_a_killed_service_is_no_obstacle(stopped: RunningService) -> None:
    """After a crash the store is opened, although the socket is still there."""
    stopped.start()
    stopped.kill()
    assert (stopped.data_dir / "control.sock").exists()
    assert json.loads(stopped.ok("domain", "list", "--json"))[0]["domainName"] == "default"


def test_a_service_that_goes_away_is_told(stopped: RunningService) -> None:
    """A peer that closes without an answer ends with 1: nobody knows whether it was done."""
    stopped.data_dir.mkdir()
    (stopped.data_dir / "lock").touch()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(stopped.data_dir / "control.sock"))
        listener.listen()
        with subprocess.Popen(
            [PROGRAM, "domain", "list"], env=stopped.environ, stderr=subprocess.PIPE, text=True
        ) as process:
            connection, _ = listener.accept()
            connection.recv(4096)
            connection.close()
            _, told = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "gave no answer" in told


def test_settings_that_cannot_be_read_end_with_1(stopped: RunningService) -> None:
    """One line, which names the key."""
    path = stopped.directory / "other.toml"
    path.write_text("http_bnid = 1\n")
    done = stopped.cli("--config", str(path), "token", "list")
    assert (done.returncode, done.stdout) == (1, "")
    assert "http_bnid" in done.stderr
    assert stopped.cli("--config", str(stopped.directory), "token", "list").returncode == 2


@pytest.mark.parametrize("words", [("log", "level", "debug"), ("client", "unknown"), ("client", "unknown", "--json")])
def test_what_a_running_service_alone_knows(stopped: RunningService, words: tuple[str, ...]) -> None:
    """Without one that is told, in place of an answer that nobody has given."""
    stopped.ok("db", "migrate")
    done = stopped.cli(*words)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no service runs in" in done.stderr


def test_the_config_file_says_where_the_service_is(service: Service) -> None:
    """`--config` finds the service of another directory, from anywhere, and long paths are no obstacle."""
    folder = service.directory / ("d" * 100)
    folder.mkdir()
    path = folder / "sallyport.toml"
    path.write_text(f'data_dir = "{service.data_dir}"\n')
    environ = {name: value for name, value in service.environ.items() if name != "SALLYPORT_DATA_DIR"}
    done = subprocess.run(
        [PROGRAM, "--config", path, "token", "list"], env=environ, cwd=folder, capture_output=True, check=True
    )
    assert b"first start" in done.stdout


def test_a_second_service_does_not_start(service: Service) -> None:
    """The data directory has one owner: the other ends with 1 and one line, and the first goes on."""
    done = service.program("serve")
    assert done.returncode == 1
    held = f"is in use by {process_name(service.process_id)}, which is a running service: stop it first, or set "
    assert held + "SALLYPORT_DATA_DIR" in done.stderr.splitlines()[-1]
    assert service.request("GET", "/readyz").status_code == 200


def test_a_terminal_that_cannot_show_a_name_is_no_error(service: Service) -> None:
    """Where the encoding lacks a character, it is escaped."""
    add_domain(service, "\u65e5\u672c")
    environ = {**service.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([PROGRAM, "domain", "list"], env=environ, capture_output=True, text=True, check=True)
    assert "\\u65e5" in done.stdout


def test_a_reader_that_has_seen_enough_is_no_error_to_tell(service: Service) -> None:
    """`sallyport client list | head -1` prints no traceback."""
    command = f'"{PROGRAM}" client list --json | true'
    done = subprocess.run(command, shell=True, env=service.environ, capture_output=True, text=True, check=False)  # noqa: S602
    assert "Traceback" not in done.stderr


def test_a_message_is_harmless_to_a_terminal(service: Service) -> None:
    """What the service repeats of a name cannot command the terminal."""
    done = service.cli("client", "remove", "\x1b[31mred", *TENANT)
    assert done.returncode == 1
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("words", [("token", "list", "--json"), ("demo", "--once")])
def test_a_reader_that_closes_early_is_no_error(service: Service, words: tuple[str, ...]) -> None:
    """`sallyport ... | head` ends with 1, without a message and without a traceback."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [PROGRAM, *words], env=service.environ, stdout=write, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (1, "")
