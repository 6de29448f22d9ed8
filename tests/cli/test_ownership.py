"""Files that commands of root write for a service of another user. The service's user can read them. Files of root
itself stay root's.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sallyport.radius.packet import ACCESS_ACCEPT
from sallyport.shell.options import InputFile
from tests.cli.permissions import NOBODY, leaves
from tests.cli.test_permissions import READABLE, ROOT, foreign_data_directory, private
from tests.running_service import PROGRAM, RunningService, refusal

SECRET = "a secret of the tests"
PEOPLE = "dn: dc=example,dc=org\nobjectClass: domain\ndc: example\n"
BUNDLES = "--p12 {data}/{name}.p12 --mobileconfig {data}/{name}.mobileconfig"
WRITING = [
    ("token create --org 1 --tenant 1", ""),
    ("domain add corp --org 1 --tenant 1", ""),
    ("provider set corp webhook --url https://192.0.2.1/ --secret -", "0123456789abcdef0123456789abcdef"),
    ("directory add people --domain corp --kind ldif", ""),
    ("directory import-ldif {mine}/people.ldif --domain corp --directory people", ""),
    ("agent key create --org 1 --tenant 1 --domain corp --service https://192.0.2.1", ""),
    ("cert init --host radius.example.org", ""),
    (f"cert issue laptop {BUNDLES.format(data='{data}', name='issued')}", ""),
    (f"cert renew laptop {BUNDLES.format(data='{data}', name='renewed')}", ""),
    ("cert renew", ""),
    ("cert revoke laptop", ""),
    ("profile set office --domain corp --ssid Corp", ""),
    ("profile save office --domain corp --to {data}", ""),
    ("profile save office --domain corp --to {mine}", ""),
    ("export {data}/office --schema", ""),
    ("export {mine}/office --schema", ""),
    ("event export --domain default --output {data}/events.csv", ""),
    ("wallet init --service https://192.0.2.1 --email a@example.org --wallet-id 1 --file {data}/wallet.json", "k\nt\n"),
    ("db backup {data}/copy.db", ""),
    ("db backup {mine}/copy.db", ""),
    ("db backup {mine} --keep 1", ""),
    ("db backup {mine} --keep 1", ""),
    ("db restore {mine}/copy.db --yes", ""),
    ("db restore {data}/copy.db --yes", ""),
    ("grafana export {mine}/grafana", ""),
    ("db rotate-key", ""),
    ("db migrate", ""),
    ("doctor", ""),
]
"""Commands in their order, with their standard input. In them, `data` is the directory of the service, and `mine` is a
private directory of root.
"""
ELSEWHERE = {"agent install", "agent uninstall", "agent endpoint", "agent directory", "agent authorized-keys"}
"""Commands on the host of an agent, which has no data directory."""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="another user's files need root")


@pytest.fixture
def service() -> Iterator[RunningService]:
    """Yield a stopped service that belongs to the user nobody and has a store."""
    prefix = Path(sys.base_prefix)
    if private(ROOT) != ROOT:
        pytest.skip("other users cannot read this repository")
    readable = ("unshare", "--mount", "--propagation", "private", "sh", "-c", READABLE, "sh")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        made = RunningService(
            Path(folder),
            {"SALLYPORT_REJECT_DELAY_S": "0"},
            wrapper=(*readable, str(private(prefix)), str(prefix)),
        )
        foreign_data_directory(made)
        yield made
        made.kill()


@pytest.mark.parametrize("is_running", [False, True], ids=["stopped", "running"])
def test_the_service_can_read_files_that_root_writes(service: RunningService, is_running: bool) -> None:
    """After every command of root that writes files, the service's user owns all files in its directory and can read
    them. The service starts and answers a login. A file in a directory of root belongs to root.
    """
    data, mine = service.data_dir, service.directory / "mine"
    mine.mkdir(mode=0o700)
    (mine / "people.ldif").write_text(PEOPLE)
    (mine / "people.ldif").chmod(0o600)
    if is_running:
        service.start()
    for words, given in WRITING:
        done = service.cli(*(word.format(data=data, mine=mine) for word in words.split()), input=given)
        assert words == "doctor" or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        assert "cannot read" not in done.stdout, words
    status = {path: path.lstat() for path in data.rglob("*")}
    assert {path for path, each in status.items() if each.st_uid != NOBODY or not each.st_mode & 0o400} == set()
    assert {path.lstat().st_uid for path in mine.iterdir()} == {0}
    assert len(list(mine.glob("sallyport-*.db"))) == 1
    assert not list(data.glob("exchange-*"))
    service.stop()
    service.start()
    service.add_client("here", "127.0.0.1", SECRET)
    service.ok("user", "add", "ann", "--domain", "default", "--password", "-", input="hello\n")
    with service.radius(SECRET) as device:
        assert device.login("ann", "hello") == ACCESS_ACCEPT


def test_every_command_with_an_output_file_is_tested() -> None:
    """If a new command has an option for an output file, it must be added to WRITING."""
    named = {
        " ".join(words)
        for words, command in leaves()
        for each in command.params
        if isinstance(each.type, click.Path) and not isinstance(each.type, InputFile) and each.name != "config"
    }
    reading = {
        "apply",
        "bench",  # its files are temporary
        "import freeradius",
        "wallet list",
        "wallet poll",
        "wallet accept",
        "wallet present",
        "wallet ignore",
    }
    missing = {each for each in named - ELSEWHERE - reading if not any(w.startswith(each) for w, _ in WRITING)}
    assert missing == set()


def test_root_without_capabilities_gets_a_remedy(service: RunningService) -> None:
    """In a container without CAP_SETUID, root cannot act as the service's user. One line names the user that can run
    the command.
    """
    confined = ["setpriv", "--inh-caps=-setuid,-setgid", "--bounding-set=-setuid,-setgid"]
    for words in (("client", "list"), ("serve",)):
        done = subprocess.run(
            [*confined, PROGRAM, *words], env=service.environ, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 1
        message = refusal(done) if words == ("serve",) else done.stderr.rstrip("\n")
        assert f"{service.data_dir} belongs to user nobody" in message and "\n" not in message
        assert message.endswith("run this command as user nobody")


def test_a_backup_cannot_replace_the_store(service: RunningService) -> None:
    """A backup is refused if its target is one of the store's files, even through a link and with --overwrite."""
    (service.directory / "link").symlink_to(service.data_dir)
    for folder in ("data", "link"):
        done = service.cli("db", "backup", str(service.directory / folder / "sallyport.db"), "--overwrite")
        assert done.returncode == 1
        assert "is a file of the running service: choose another file" in done.stderr
