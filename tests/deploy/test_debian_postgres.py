"""`sallyport server install` on a clean Debian with systemd and a PostgreSQL server."""

from collections.abc import Iterator

import pytest

from sallyport.host.systemd import CONFIG_DIR, CONFIG_FILE, UNIT, USER
from tests.deploy.test_debian import PROGRAM, THERE, installed, log_in, prepared, set_up
from tests.peers.booted import PACKAGES, BootedHost, needs_boot

PASSFILE = CONFIG_DIR / "pgpass"
SETTINGS = f"""
data_dir = "/var/lib/sallyport"
database = "postgresql://sallyport@127.0.0.1/sallyport?passfile={PASSFILE}"
"""
pytestmark = [pytest.mark.peer, pytest.mark.system, *needs_boot]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BootedHost]:
    """Boot a machine with a PostgreSQL server, which has an empty database with a password."""
    with prepared(tmp_path_factory, f"{PACKAGES},postgresql", "postgres") as host:
        start_postgres(host)
        yield host


def start_postgres(host: BootedHost) -> None:
    """Start the PostgreSQL server of a machine, with an empty database for the service."""
    host.run("systemctl", "start", "postgresql")
    sql = "create role sallyport login password 'word'"
    host.run("runuser", "-u", "postgres", "--", "psql", "--command", sql)
    create = ("createdb", "--owner=sallyport", "--encoding=UTF8", "--locale=C.UTF-8", "--template=template0")
    host.run("runuser", "-u", "postgres", "--", *create, "sallyport")


def write_settings(host: BootedHost) -> None:
    """Write the settings of root for that database, and a password file of root."""
    host.shell(f"mkdir -p {CONFIG_DIR}; cat > {CONFIG_FILE} <<'END'\n{SETTINGS}END")
    host.shell(f"umask 077; echo '127.0.0.1:5432:sallyport:sallyport:word' > {PASSFILE}")


@pytest.fixture
def host(machine: BootedHost) -> Iterator[BootedHost]:
    """Yield the machine with the settings of root for that database, and a password file of root."""
    write_settings(machine)
    yield machine
    machine.run(PROGRAM, "server", "uninstall", "--purge", "--yes")
    machine.shell(f"rm -rf {CONFIG_DIR}")


def test_the_first_installation_uses_a_password_file_of_root(host: BootedHost) -> None:
    """The first installation gives the password file to the user that it makes. The service starts after the PostgreSQL
    server of the machine, and answers a login. A second installation changes nothing."""
    done = installed(host, "--start")
    assert f"{PASSFILE} belongs to the user {USER} now\n" in done.stdout
    assert "the tables of the database are up to date; the first access token is in " in done.stdout
    assert host.shell(f"stat -c '%U:%G %a' {PASSFILE}") == f"{USER}:{USER} 600\n"
    after = host.shell(f"systemctl show --property After --value {UNIT}").split()
    assert {"postgresql.service", "network-online.target"} <= set(after)
    assert "Access-Accept" in log_in(host, set_up(host))
    lines = installed(host).stdout.splitlines()
    assert [line for line in lines if THERE not in line] == ["the tables of the database are up to date"]


def test_a_password_file_that_the_user_cannot_reach_is_refused(host: BootedHost) -> None:
    """If the password file is in a directory that the service's user cannot enter, the message names both, and no table
    is made."""
    host.shell(f"install -d -m 700 /srv/closed; mv {PASSFILE} /srv/closed")
    host.shell(f"sed -i s#{PASSFILE}#/srv/closed/pgpass# {CONFIG_FILE}")
    done = host.run(PROGRAM, "server", "install", check=False)
    assert done.returncode == 1
    assert f"setting database: the user {USER} cannot read passfile /srv/closed/pgpass" in done.stderr
    host.shell("rm /srv/closed/pgpass")
    missing = host.run(PROGRAM, "server", "install", check=False).stderr
    assert "setting database: passfile /srv/closed/pgpass does not exist" in missing
