"""The Debian package. It is built once, and then installed, upgraded, removed and purged on a Debian that was booted
with systemd. The machine has only the declared dependencies and no network except loopback, so an undeclared dependency
is found.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sallyport import __version__
from sallyport.host.systemd import BACKUP_TIMER, CONFIG_DIR, CONFIG_FILE, DATA_DIR, PACKAGE_UNITS, UNIT, UNITS, USER
from tests.deploy.earlier import DOMAIN, FACTS, OBJECTS, TENANT, package_of
from tests.deploy.test_ansible import changed, play
from tests.deploy.test_debian import LOAD
from tests.deploy.test_debian_postgres import start_postgres, write_settings
from tests.deploy.test_upgrade import KEPT_FOR_A_TIME
from tests.docs.commands import blocks
from tests.peers.booted import PACKAGES, BootedHost, needs_boot
from tests.peers.isolated import SUITE, base
from tests.peers.programs import needs

ROOT = Path(__file__).parents[2]
BUILD_S = 1200
NAME = "sallyport-radius"
VENV = f"/opt/venvs/{NAME}"
LATER = "99.0.0"
LOGINS = 1000
ROWS = """
import json, sqlite3, sys
connection = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
names = connection.execute("select name from sqlite_master where type = 'table' and sql not like '%using fts5%'")
counts = {name: connection.execute(f'select count(*) from "{name}"').fetchone()[0] for name, in names.fetchall()}
print(json.dumps(counts))
"""
"""A script with one argument, a database. It prints the number of rows of each table."""


def release() -> str:
    """Return the code name of the operating system that runs the tests."""
    try:
        text = Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        return ""
    return "".join(re.findall(r"(?m)^VERSION_CODENAME=(\w+)", text))


pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(release() != SUITE, reason=f"the package is built for the release of this system, not {SUITE}"),
    needs("dpkg-buildpackage", "dh_virtualenv", "lintian"),
    *needs_boot,
]


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command, assert that it succeeds, and return its output."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=BUILD_S, check=False)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a directory with two packages. `one.deb` is built by `make deb`; `two.deb` is the same package with a later
    version.
    """
    place = tmp_path_factory.mktemp("package")
    source, packages = place / "source", place / "packages"
    left_out = shutil.ignore_patterns(".*", "build", "dist", "__pycache__", "sallyport-data")
    shutil.copytree(ROOT, source, ignore=left_out)
    packages.mkdir()
    built = source / run("make", "--silent", "deb", cwd=source).splitlines()[-1]
    built.rename(packages / "one.deb")
    tree = place / "tree"
    run("dpkg-deb", "--raw-extract", packages / "one.deb", tree)
    control, program = tree / "DEBIAN" / "control", next(tree.glob("**/site-packages/sallyport/__init__.py"))
    for path in (control, program):
        path.write_text(path.read_text(encoding="utf-8").replace(__version__, LATER), encoding="utf-8")
    for compiled in program.parent.glob("__pycache__/__init__.*"):
        compiled.unlink()
    run("dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, packages / "two.deb")
    yield packages
    shutil.rmtree(place)


@pytest.fixture
def host(directory: Path, tmp_path: Path) -> Iterator[BootedHost]:
    """Yield a clean Debian with the packages in /srv."""
    with BootedHost(base(PACKAGES), tmp_path, {"/srv": directory}) as machine:
        yield machine


def sallyport(host: BootedHost, *words: str, stdin: str = "") -> str:
    """Run a command as the admin of the service, which is root."""
    return host.run("sallyport", *words, stdin=stdin).stdout.strip()


def login(host: BootedHost, secret: str) -> str:
    """Log in as ann and return the output."""
    words = ("--secret", secret, "--user", "ann", "--password", "correct-horse")
    return sallyport(host, "check", "radius", "127.0.0.1:1812", *words)


def is_there(host: BootedHost, path: object) -> bool:
    """Return whether a path exists on the machine."""
    return host.run("test", "-e", str(path), check=False).returncode == 0


def state(host: BootedHost, unit: str, name: str) -> str:
    """Return a property of a unit."""
    return host.run("systemctl", "show", "--value", f"--property={name}", unit).stdout.strip()


def test_lintian_finds_no_error(directory: Path) -> None:
    """lintian finds only tags that are overridden. A comment before each override gives the reason."""
    done = subprocess.run(
        ["lintian", "--fail-on=error,warning", directory / "one.deb"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    text = (ROOT / f"src/sallyport/deploy/debian/{NAME}.lintian-overrides").read_text(encoding="utf-8")
    assert re.fullmatch(rf"(#.+\n{NAME}: .+\n)+", text)


def test_the_package_has_no_path_of_its_build(directory: Path) -> None:
    """The same source gives the same package files, whatever directory it is built in."""
    names = [name for name in directory.parent.joinpath("tree/opt").rglob("*") if name.is_file()]
    assert names
    assert [name for name in names if bytes(directory.parent) in name.read_bytes()] == []


def test_the_package_has_man_pages_and_completion(host: BootedHost) -> None:
    """The man pages are where man looks, and the scripts where the packages of the shells look. bash completes."""
    host.run("dpkg", "--install", "/srv/one.deb")
    share = "/usr/share"
    for page in ("sallyport", "sallyport-client", "sallyport-agent"):
        assert is_there(host, f"{share}/man/man1/{page}.1.gz")
    script = f"{share}/bash-completion/completions/sallyport"
    for path in (f"{share}/zsh/vendor-completions/_sallyport", f"{share}/fish/vendor_completions.d/sallyport.fish"):
        assert is_there(host, path)
    ask = "COMP_WORDS=(sallyport cli); COMP_CWORD=1; _sallyport_completion sallyport; echo ${COMPREPLY[*]}"
    assert host.run("bash", "-c", f"source {script}; {ask}").stdout == "client\n"


def test_an_upgrade_keeps_data_and_settings(host: BootedHost) -> None:
    """After an upgrade, the same user can log in with the same secret as before.

    Changed settings are kept, the service is restarted, and there is a backup of the old data.
    """
    host.run("dpkg", "--install", "/srv/one.deb")
    assert state(host, UNIT, "ActiveState") == state(host, BACKUP_TIMER, "ActiveState") == "active"
    secret = sallyport(host, "client", "add", "here", "--address", "127.0.0.1", "--org", "1", "--tenant", "1")
    sallyport(host, "user", "add", "ann", "--domain", "default", "--password", "-", stdin="correct-horse\n")
    assert "Access-Accept" in login(host, secret)
    host.shell(f"echo 'log_level = \"debug\"' >>{CONFIG_FILE}")
    former = (state(host, UNIT, "MainPID"), host.run("cat", str(CONFIG_FILE)).stdout)
    upgraded = host.run("dpkg", "--install", "/srv/two.deb")
    assert "goes on without" not in upgraded.stderr
    assert LATER in sallyport(host, "--version")
    assert state(host, UNIT, "ActiveState") == "active"
    assert state(host, UNIT, "MainPID") != former[0]
    assert host.run("cat", str(CONFIG_FILE)).stdout == former[1]
    assert "Access-Accept" in login(host, secret)
    assert len(host.run("ls", f"{DATA_DIR}/backups").stdout.split()) == 1


def test_the_package_uses_the_postgresql_database_of_its_settings(directory: Path, tmp_path: Path) -> None:
    """If the settings file is there before the package is installed, the service starts with its database."""
    with BootedHost(base(f"{PACKAGES},postgresql"), tmp_path, {"/srv": directory}) as host:
        start_postgres(host)
        write_settings(host)
        host.run("dpkg", "--install", "/srv/one.deb")
        secret = sallyport(host, "client", "add", "here", "--address", "127.0.0.1", "--org", "1", "--tenant", "1")
        sallyport(host, "user", "add", "ann", "--domain", "default", "--password", "-", stdin="correct-horse\n")
        assert "Access-Accept" in login(host, secret)
        stored = ("psql", "--dbname=sallyport", "--tuples-only", "--command=select user_name from events")
        assert host.run("runuser", "-u", "postgres", "--", *stored).stdout.split() == ["ann"]
        assert not is_there(host, f"{DATA_DIR}/sallyport.db")


def test_a_removal_keeps_data_and_a_purge_deletes_them(host: BootedHost) -> None:
    """After a removal, another installation uses the same data. After a purge, nothing of the package is left."""
    host.run("dpkg", "--install", "/srv/one.deb")
    secret = sallyport(host, "client", "add", "here", "--address", "127.0.0.1", "--org", "1", "--tenant", "1")
    sallyport(host, "user", "add", "ann", "--domain", "default", "--password", "-", stdin="correct-horse\n")
    host.run("dpkg", "--remove", NAME)
    assert state(host, UNIT, "ActiveState") == "inactive"
    assert [is_there(host, path) for path in (VENV, "/usr/bin/sallyport")] == [False, False]
    assert is_there(host, CONFIG_FILE) and is_there(host, f"{DATA_DIR}/sallyport.db")
    host.run("dpkg", "--install", "/srv/one.deb")
    assert "Access-Accept" in login(host, secret)
    host.run("dpkg", "--purge", NAME)
    units = [directory / unit for directory in PACKAGE_UNITS for unit in UNITS]
    assert [path for path in (VENV, CONFIG_DIR, DATA_DIR, *units) if is_there(host, path)] == []
    assert host.run("getent", "passwd", USER, check=False).stdout == ""


def test_a_broken_service_can_be_upgraded(host: BootedHost) -> None:
    """If the service is broken, the upgrade continues without a backup and reports this, because the new version may be
    the remedy.
    """
    host.run("dpkg", "--install", "/srv/one.deb")
    host.run("systemctl", "stop", UNIT)
    host.shell(f"echo 'no_such_setting = 1' >>{CONFIG_FILE}")
    upgraded = host.run("dpkg", "--install", "/srv/two.deb", check=False)
    assert "there is no backup of before this upgrade; it goes on without" in upgraded.stderr
    assert LATER in sallyport(host, "--version")


@needs("ansible-playbook")
def test_the_playbook_of_ansible_installs_and_configures(directory: Path, tmp_path: Path) -> None:
    """On a clean Debian, `--check` changes nothing, and the playbook gives the host its key, its settings, the package
    and the objects of the files. A second run changes nothing. With another package, a check shows the plan of the
    files.
    """
    with BootedHost(base(f"{PACKAGES},python3-apt"), tmp_path, {}) as host:
        ssh, folder = tmp_path / "ssh", tmp_path / "office"
        ssh.write_text(f'#!/bin/sh\nfor last; do :; done\nexec {shlex.join(host.entrance)} sh -c "$last"\n')
        ssh.chmod(0o755)
        folder.mkdir()
        (folder / "client.toml").write_text('[[client]]\nname = "vpn"\naddress = "192.0.2.1"\nsecret = "file:word"\n')
        for name, text in (("office/word", "a long secret"), ("key", "ab" * 32), ("settings", "event_days = 7")):
            (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
        variables = {"configuration": str(folder), "settings": str(tmp_path / "settings")}
        variables |= {"master_key": str(tmp_path / "key"), "package": str(directory / "one.deb")}
        variables |= {"ansible_ssh_executable": str(ssh), "ansible_ssh_transfer_method": "piped"}
        environ = {"PATH": f"/usr/sbin:/usr/bin:/sbin:/bin:{os.environ['PATH']}"}
        changed(play(tmp_path, environ, variables, "--check"))
        assert [is_there(host, path) for path in (CONFIG_DIR, "/usr/bin/sallyport")] == [False, False]
        assert changed(play(tmp_path, environ, variables)) > 0
        assert state(host, UNIT, "ActiveState") == "active"
        (client,) = json.loads(sallyport(host, "client", "list", "--json"))
        assert client["managedBy"] == "file"
        assert "from /etc/sallyport/credentials/master.key" in sallyport(host, "doctor")
        assert changed(play(tmp_path, environ, variables)) == 0
        (folder / "client.toml").write_text('[[client]]\nname = "vpn"\naddress = "192.0.2.2"\nsecret = "file:word"\n')
        planned = play(tmp_path, environ, variables | {"package": str(directory / "two.deb")}, "--check")
        assert changed(planned) == 2 and "~ client vpn" in planned.stdout
        assert LATER not in sallyport(host, "--version")


def test_an_upgrade_from_an_earlier_package_loses_nothing(directory: Path, tmp_path: Path) -> None:
    """The commands of the upgrade page, with the package of an earlier commit, under logins: each login is accepted, at
    the latest after a retransmission, and each row is kept. The earlier package refuses the newer database, and the
    backup of the page's first step brings it back.
    """
    backup, install, _wheel, restart, restore = blocks("docs/install/upgrade.md")
    steps = [each.text for each in (*backup, *install, *restart) if each.text not in ("git pull", "make deb")]
    steps = [text.removeprefix("sudo ") for text in steps]
    assert [text.split()[0] for text in steps] == ["sallyport", "apt-get", "systemctl"]
    try:
        earlier = package_of(json.loads(FACTS.read_text(encoding="utf-8"))["commit"])
    except subprocess.CalledProcessError:
        pytest.skip("git does not have the commit of the earlier package")
    with BootedHost(base(PACKAGES), tmp_path, {"/srv": directory, "/mnt": earlier.parent}) as host:
        host.run("dpkg", "--install", f"/mnt/{earlier.name}")
        version = sallyport(host, "--version")
        secret = sallyport(host, "client", "add", "here", "--address", "127.0.0.1", *TENANT)
        for name, password in (("alice", "correct horse battery"), ("ann", "correct-horse")):
            sallyport(host, "user", "add", name, *DOMAIN, "--password", "-", stdin=f"{password}\n")
        for words in OBJECTS:
            sallyport(host, *words)
        assert "Access-Accept" in login(host, secret)
        before = rows(host)
        host.shell(f"mkdir -p /root/dist && cp /srv/two.deb /root/dist/{NAME}_{LATER}_all.deb")
        load = f"{VENV}/bin/python -c '{LOAD}' {secret} {LOGINS} 100 >/root/load"
        host.shell(f"cd /root; {load} & sleep 1; {' && '.join(steps)} || exit 1; wait")
        assert host.shell("cat /root/load") == f"{LOGINS} of {LOGINS} logins accepted\n"
        assert LATER in sallyport(host, "--version")
        after = rows(host)
        assert {name for name, count in before.items() if after.get(name, 0) < count} <= KEPT_FOR_A_TIME
        assert after["events"] >= before["events"] + LOGINS
        assert after["endpoint_users"] == 2 and after["domains"] == 2
        assert len(host.run("ls", f"{DATA_DIR}/backups").stdout.split()) == 1
        sallyport(host, "doctor", "--json")
        host.run("dpkg", "--install", f"/mnt/{earlier.name}", check=False)
        assert sallyport(host, "--version") == version
        assert state(host, UNIT, "ActiveState") != "active"
        journal = host.shell(f"journalctl --unit {UNIT} --output cat")
        assert "was written by a newer version of Sallyport" in journal
        host.shell(f"systemctl stop {UNIT}; systemctl reset-failed {UNIT}")
        host.shell(f"cd {DATA_DIR}; mkdir /root/away; mv sallyport.db* /root/away")
        host.run("sh", "-c", f"cd /root; {restore[0].text}", stdin="y\n")
        host.run("systemctl", "start", UNIT)
        assert "Access-Accept" in login(host, secret)
        assert rows(host)["endpoint_users"] == 2


def rows(host: BootedHost) -> dict[str, int]:
    """Return the number of rows of each table of the service's database."""
    found: dict[str, int] = json.loads(host.run("python3", "-c", ROWS, f"{DATA_DIR}/sallyport.db").stdout)
    return found
