"""The program as a whole: its list of commands, its exit statuses, its imports, and how it finds the service."""

import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import click
import pytest

from sallyport.cli.main import AGENT_SECTIONS, SECTIONS, root
from sallyport.settings.listening import process_name
from sallyport.shell.options import Group
from sallyport.shell.program import Sections
from tests.cli import TENANT, Service, add_domain
from tests.running_service import PROGRAM, RunningService

LISTS = (("token",), ("client",), ("domain",), ("device",), ("user", "--domain", "default"))
DOMAIN = ("--domain", "default")
HEAVY = ("trio", "starlette", "sqlite_utils", "httpx", "cryptography", "pyrad", "sqlite3")


HEADINGS = ("RADIUS", "Sign-in policy", "People and directories", "Endpoints", "Credentials", "Operate")
COMMANDS = {name: entry for listed in SECTIONS.values() for name, entry in listed.items()}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_listed_command_exists_and_has_help(service: Service, name: str) -> None:
    """The list of commands is read without importing them, so this test checks that each entry names an existing
    command.
    """
    module, _, attribute = COMMANDS[name][0].partition(":")
    assert getattr(import_module(module), attribute).name == name
    assert f"  {name} " in service.ok("--help")
    assert service.ok(name, "--help").startswith("Usage: sallyport")


@pytest.mark.parametrize("sections", [SECTIONS, AGENT_SECTIONS], ids=["root", "agent"])
def test_every_command_is_under_one_heading(sections: Sections) -> None:
    names = [name for listed in sections.values() for name in listed]
    assert len(names) == len(set(names))


def test_the_help_has_the_headings_in_order(service: Service) -> None:
    """The help starts with the commands for the first day. Under each heading the most used command is first."""
    lines = service.ok("--help").splitlines()
    assert [each[:-1] for each in lines if each.endswith(":") and each[:1].strip() and each != "Options:"] == [
        *HEADINGS
    ]
    firsts = {each[:-1]: after.split()[0] for each, after in pairwise(lines) if each[:-1] in HEADINGS}
    assert firsts == {heading: next(iter(listed)) for heading, listed in SECTIONS.items()}


def groups(group: click.Command = root) -> Iterator[click.Group]:
    """Yield every group of the tree."""
    if isinstance(group, click.Group):
        yield group
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield from groups(command)


@pytest.mark.parametrize("group", list(groups()), ids=lambda group: group.name)
def test_a_group_lists_its_commands_in_order_of_use(group: click.Group) -> None:
    """Every group keeps the order of its commands and lists no name twice. The commands that it puts first exist."""
    assert isinstance(group, Group)
    assert set(group.first) <= group.commands.keys()
    names = group.list_commands(click.Context(group))
    assert len(names) == len(set(names))


def test_every_option_has_a_description() -> None:
    """The help of each option says what it is for. Fields take it from their description or from that of their type."""
    silent = [
        f"{group.name} {command.name} {option.opts[0]}"
        for group in groups()
        for name in group.list_commands(click.Context(group))
        if (command := group.get_command(click.Context(group), name)) is not None
        for option in command.params
        if isinstance(option, click.Option) and (option.help or "None").startswith("None")
    ]
    assert silent == []


@pytest.mark.parametrize("name", ["client", "domain", "directory", "token", "user", "rule"])
def test_the_help_of_a_group_starts_with_add_create_or_list(service: Service, name: str) -> None:
    """The help of a group is not sorted by name, but starts with add, create or list."""
    commands = service.ok(name, "--help").partition("Commands:\n")[2]
    assert commands.split()[0] in ("add", "create", "list")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("tokn",), 'There is no command "tokn". Did you mean "token"?'),
        (("token", "creat"), 'There is no command "creat". Did you mean "create"?'),
        (("token", "x"), 'There is no command "x". Commands: create, list, revoke.'),
    ],
)
def test_an_unknown_command_names_the_nearest(service: Service, words: tuple[str, ...], message: str) -> None:
    """The message has the most similar command, or all commands of the group."""
    assert message in service.cli(*words).stderr


@pytest.mark.parametrize("words", LISTS)
def test_every_list_has_json(service: Service, words: tuple[str, ...]) -> None:
    """`--json` prints an array."""
    name, *options = words
    assert isinstance(json.loads(service.ok(name, "list", "--json", *options)), list)


@pytest.mark.parametrize(
    "words",
    [
        *(("token", "list"), ("domain", "list"), ("client", "list"), ("device", "list"), ("lockout", "list")),
        *(
            ("session", "list"),
            ("bypass", "list", *DOMAIN),
            ("profile", "list", *DOMAIN),
            ("rule", "list", *DOMAIN),
            ("event", "list", *DOMAIN),
        ),
        *(
            ("group", "list", *DOMAIN),
            ("instance", "list", *DOMAIN),
            ("agent", "list", *DOMAIN),
            ("did", "list", *DOMAIN),
        ),
        *(("directory", "list"), ("policy", "list", "--org", "1", "--tenant", "1")),
        *(("directory", "set", "--help"), ("provider", "set", "--help"), ("domain", "first-factor", "--help")),
    ],
)
def test_a_running_service_is_asked_without_heavy_imports(service: Service, words: tuple[str, ...]) -> None:
    """If the service does the work, the command line imports no event loop, web framework or database."""
    code = (
        "import sys; from sallyport.cli.main import root; root(sys.argv[1:], standalone_mode=False); "
        f"print('heavy:', [name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], env=service.environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "heavy: []"


@pytest.mark.parametrize("arguments", [("nonsense",), ("token", "nonsense"), ("token", "list", "--nonsense"), ("--x",)])
def test_wrong_usage_has_exit_status_2(service: Service, arguments: tuple[str, ...]) -> None:
    """Standard output is empty."""
    done = service.program(*arguments)
    assert (done.returncode, done.stdout) == (2, "")


def test_a_held_lock_without_a_service_is_an_error(stopped: RunningService) -> None:
    """If another process holds the lock and does not answer, a command fails with one line. The doctor reports a
    problem, and does not open the store. Both wait for 20 seconds, side by side.
    """
    stopped.ok("db", "migrate")
    descriptor = os.open(stopped.data_dir / "lock", os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with ThreadPoolExecutor() as threads:
            doctor = threads.submit(stopped.cli, "doctor", "--json")
            done = stopped.cli("domain", "list")
    finally:
        os.close(descriptor)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert (
        f"is in use by {process_name(os.getpid())}; it does not answer commands: if it is just starting" in done.stderr
    )
    found = json.loads(doctor.result().stdout)
    assert doctor.result().returncode == 1
    assert [row["level"] for row in found if row["check"] == "service"] == ["problem"]


def test_the_socket_of_a_killed_service_is_ignored(stopped: RunningService) -> None:
    """If the service was killed, the store is opened, although the socket still exists."""
    stopped.start()
    stopped.kill()
    assert (stopped.data_dir / "control.sock").exists()
    assert json.loads(stopped.ok("domain", "list", "--json"))[0]["domainName"] == "default"


@pytest.mark.parametrize("octets", [4096, 1], ids=["closed", "reset"])
def test_a_connection_closed_without_an_answer_is_an_error(stopped: RunningService, octets: int) -> None:
    """If the connection is closed before the answer, the exit status is 1, because it is unknown whether the operation
    was done. A service that has not read the whole request resets the connection.
    """
    stopped.data_dir.mkdir()
    (stopped.data_dir / "lock").touch()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(stopped.data_dir / "control.sock"))
        listener.listen()
        with subprocess.Popen(
            [PROGRAM, "domain", "list"], env=stopped.environ, stderr=subprocess.PIPE, text=True
        ) as process:
            connection, _ = listener.accept()
            connection.recv(octets)
            connection.close()
            _, error = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "gave no answer: check whether the change was made before you run the command again" in error


def test_invalid_settings_have_exit_status_1(stopped: RunningService) -> None:
    """One line on standard error names the wrong setting."""
    path = stopped.directory / "other.toml"
    path.write_text("http_bnid = 1\n")
    done = stopped.cli("--config", str(path), "token", "list")
    assert (done.returncode, done.stdout) == (1, "")
    assert "http_bnid" in done.stderr
    assert stopped.cli("--config", str(stopped.directory), "token", "list").returncode == 2


@pytest.mark.parametrize("words", [("log", "level", "debug"), ("client", "unknown"), ("client", "unknown", "--json")])
def test_commands_that_need_a_service_fail_without_one(stopped: RunningService, words: tuple[str, ...]) -> None:
    stopped.ok("db", "migrate")
    done = stopped.cli(*words)
    assert (done.returncode, done.stdout) == (1, "")
    assert "no service runs in" in done.stderr


def test_the_config_file_selects_the_service(service: Service) -> None:
    """`--config` finds the service of another directory, even if the path of the directory is long."""
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
    """A second service prints one line that names the holder of the lock. The first service still answers."""
    done = service.program("serve")
    assert done.returncode == 1
    held = f"is in use by {process_name(service.process_id)}, a running service: stop it first, or set "
    assert held + "SALLYPORT_DATA_DIR" in done.stderr.splitlines()[-1]
    assert service.request("GET", "/readyz").status_code == 200


def test_a_python_without_its_interpreter_lock_is_refused(service: Service, tmp_path: Path) -> None:
    """The service does not start in a free-threaded Python, and the message names the way out."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys._is_gil_enabled = lambda: False\n")
    done = subprocess.run(
        [PROGRAM, "serve"],
        env={**service.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "runs without its global interpreter lock: set PYTHON_GIL=1" in done.stderr


def test_a_character_that_the_terminal_lacks_is_escaped(service: Service) -> None:
    add_domain(service, "\u65e5\u672c")
    environ = {**service.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([PROGRAM, "domain", "list"], env=environ, capture_output=True, text=True, check=True)
    assert "\\u65e5" in done.stdout


def test_a_closed_pipe_prints_no_traceback(service: Service) -> None:
    """`sallyport client list | head -1` prints no traceback."""
    command = f'"{PROGRAM}" client list --json | true'
    done = subprocess.run(command, shell=True, env=service.environ, capture_output=True, text=True, check=False)  # noqa: S602
    assert "Traceback" not in done.stderr


def test_a_message_has_no_control_characters(service: Service) -> None:
    """A name in a message is printed without its control characters."""
    done = service.cli("client", "remove", "\x1b[31mred", *TENANT)
    assert done.returncode == 1
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("words", [("token", "list", "--json"), ("demo", "--once")])
def test_a_closed_pipe_has_exit_status_1_and_no_message(service: Service, words: tuple[str, ...]) -> None:
    """If the reader closes the pipe, as in `sallyport ... | head`, nothing is printed on standard error, and the exit
    status is 1.
    """
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [PROGRAM, *words], env=service.environ, stdout=write, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (1, "")
