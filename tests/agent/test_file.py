"""The configuration file of an agent, and the lock of its state directory."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sallyport.agent import file
from sallyport.base.errors import ConfigError, Locked

TEXT = """\
# the agent's
service = "https://sallyport.example"   # here
enrolment_key = "spk_first"

[directory]
servers = ["ldaps://dc1.example"]
key = "in a table"
pages = 3
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a valid file."""
    path = tmp_path / "agent.toml"
    put(path, TEXT)
    return path


def put(path: Path, text: str | bytes, mode: int = 0o600) -> None:
    """Write the file."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)


def test_a_valid_file(path: Path) -> None:
    """The file is read as the common part, the keys as secrets, and the agent's own table."""
    read = file.read(path, "directory")
    assert (read.service, read.ca_certificate, read.state_dir) == (
        "https://sallyport.example", None, Path("/var/lib/sallyport-agent"),
    )  # fmt: skip
    assert read.credentials.enrolment_key is not None and read.credentials.key is None
    assert read.credentials.enrolment_key.reveal() == b"spk_first"
    assert "spk_first" not in repr(read)
    assert read.own.texts("servers") == ("ldaps://dc1.example",)
    assert read.own.number("pages", 1, 1, 10) == 3
    with pytest.raises(ConfigError, match=r"\[directory\]: unknown key 'key'"):
        read.own.end()
    assert read.own.text("key") == "in a table"
    read.own.end()


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o606, 0o601])
def test_others_may_not_read_it(path: Path, mode: int) -> None:
    """A file that group or others may access is refused."""
    path.chmod(mode)
    with pytest.raises(ConfigError, match="chmod 600"):
        file.read(path, "directory")


@pytest.mark.parametrize("name", ["link", "pipe", "directory", "nothing"])
def test_no_regular_file(path: Path, tmp_path: Path, name: str) -> None:
    """A path that is not a regular file is refused and named in the error. The agent does not wait for a writer of a
    pipe.
    """
    (tmp_path / "link").symlink_to(path)
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "directory").mkdir(0o700)
    with pytest.raises(ConfigError, match=f"{tmp_path / name}: "):
        file.read(tmp_path / name, "directory")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "service is missing"),
        ('service = ""', "service is missing"),
        ("service = 1", "service must be text"),
        ('service = "a\\nb"', "service must be text"),
        ('service = "a"\nhunter = "hunter2"', "unknown key 'hunter'"),
        ('service = "a"\n[endpoint]', "unknown key 'endpoint'"),
        ('service = "a"\ndirectory = 1', "directory must be a table"),
        ('service = "a"\nkey = ["hunter2"]', "key must be text"),
        ("service = 'hunter2", "agent.toml: "),
        ("\xff".encode("latin-1"), "UTF-8"),
        ("# " + "x" * 70_000, "longer than 65536 octets"),
    ],
)
def test_invalid_files(path: Path, text: str | bytes, message: str) -> None:
    """An error names the file and the key but never the value."""
    put(path, text)
    with pytest.raises(ConfigError, match=message) as error:
        file.read(path, "directory")
    assert "hunter2" not in str(error.value)


def test_defaults_of_a_table(path: Path) -> None:
    """A missing key has its default value."""
    put(path, 'service = "a"\n[directory]\n')
    own = file.read(path, "directory").own
    assert own.flag("none", True) and own.number("none", 7, 1, 9) == 7 and own.choice("none", "a", "b") == "a"
    assert own.texts("none") == () and own.text("none", "x") == "x" and own.table("none").flag("none", False) is False


@pytest.mark.parametrize(
    ("value", "take"),
    [
        pytest.param("1", lambda own: own.flag("key", True), id="flag"),
        pytest.param("true", lambda own: own.number("key", 1, 1, 9), id="number"),
        pytest.param("0", lambda own: own.number("key", 1, 1, 9), id="number out of bounds"),
        pytest.param('"x"', lambda own: own.choice("key", "a", "b"), id="choice"),
        pytest.param('["a", 1]', lambda own: own.texts("key"), id="texts"),
        pytest.param("1", lambda own: own.table("key"), id="table"),
    ],
)
def test_a_value_of_another_type(path: Path, value: str, take: Callable[[file.SettingsTable], object]) -> None:
    """A value of another type is refused. The error names the key and the accepted type."""
    put(path, f'service = "a"\n[directory]\nkey = {value}\n')
    own = file.read(path, "directory").own
    with pytest.raises(ConfigError, match=r"\[directory\]: key must be"):
        take(own)


# --- rewriting ------------------------------------------------------------------------------------------------


def test_lines_are_changed_and_the_rest_stays(path: Path) -> None:
    """Changing a key leaves comments, other keys and tables unchanged to the octet.

    A key of the same name in a table is another key.
    """
    file.rewrite(path, {"key": "spk_own", "enrolment_key": None})
    assert path.read_text() == TEXT.replace('enrolment_key = "spk_first"\n', 'key = "spk_own"\n')
    file.rewrite(path, {"key": "spk_next", "renew_at": "2026-01-01T00:00:00Z"})
    read = file.read(path, "directory")
    assert read.credentials.key is not None and read.credentials.key.reveal() == b"spk_next"
    assert read.credentials.enrolment_key is None
    assert read.own.text("key") == "in a table"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ['service = "a"', 'service = "a"\n', '\n\nservice = "a"\n\n\n[directory]\n'])
def test_a_line_is_added(path: Path, text: str) -> None:
    """A new key is added above the tables, however the file ends. Removing the key restores the file."""
    put(path, text)
    file.rewrite(path, {"next_key": "spk_x"})
    assert file.read(path, "directory").credentials.next_key is not None
    file.rewrite(path, {"next_key": None})
    assert file.read(path, "directory").credentials.next_key is None
    assert file.read(path, "directory").service == "a"


@pytest.mark.parametrize("text", ['key = """\nspk_a"""\n', '"key" = "spk_a"\n', "key = '''a\n[x]'''\n"])
def test_a_change_of_other_lines_is_refused(path: Path, text: str) -> None:
    """A change that would alter the meaning of other lines raises an error, and the file stays unchanged."""
    put(path, f'service = "a"\n{text}')
    with pytest.raises(ConfigError, match="line of their own"):
        file.rewrite(path, {"key": "spk_b"})
    assert path.read_text() == f'service = "a"\n{text}'


def test_a_directory_that_takes_no_file(path: Path) -> None:
    """If the directory cannot be written, the file stays unchanged."""
    with pytest.raises(ConfigError):
        file.rewrite(path.with_name("none") / "agent.toml", {"key": "x"})
    assert path.read_text() == TEXT


def test_one_agent_alone(tmp_path: Path) -> None:
    """A second agent is refused while the first one runs."""
    directory = tmp_path / "state"
    with file.alone(directory), pytest.raises(Locked, match="another agent"), file.alone(directory):
        pass
    with file.alone(directory):
        assert [each.name for each in directory.iterdir()] == ["lock"]
