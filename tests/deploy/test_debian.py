"""`sallyport server install` and `uninstall` on a clean Debian with systemd, with the wheel in /opt/sallyport."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sallyport.base.systemd import ADMIN_UNITS, BACKUP_TIMER, CONFIG_DIR, CONFIG_FILE, DATA_DIR, UNIT, UNITS, USER
from sallyport.deploy.settings_file import settings_file
from tests.peers.booted import PACKAGES, BootedHost, needs_boot
from tests.peers.isolated import base

ROOT = Path(__file__).parents[2]
VENV = "/opt/sallyport"
PROGRAM = f"{VENV}/bin/sallyport"
TEMPLATES = f"{VENV}/lib/python3.11/site-packages/sallyport/deploy/systemd"
TRIO = f"{VENV}/lib/python3.11/site-packages/trio"
THERE = "is there already"
pytestmark = [pytest.mark.peer, pytest.mark.system, *needs_boot]


def pip(*arguments: str | Path) -> None:
    """Run pip, which must succeed."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments, "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BootedHost]:
    """Boot a machine with the program and its locked dependencies alone."""
    wheels = tmp_path_factory.mktemp("wheels")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, ROOT)
    (wheel,) = wheels.glob("*.whl")
    locked = re.findall(r"(?m)^\S+==\S+", (ROOT / "requirements.lock").read_text(encoding="utf-8"))
    versions = wheels / "versions.txt"
    versions.write_text("\n".join(locked))
    fitting = ("--python-version", "3.11", "--only-binary", ":all:")
    pip("download", *fitting, "--constraint", versions, "--dest", wheels, wheel)
    with BootedHost(base(PACKAGES), tmp_path_factory.mktemp("host"), {"/wheels": wheels}) as host:
        host.run("python3", "-m", "venv", VENV)
        host.run(f"{VENV}/bin/pip", "install", "--quiet", "--no-index", f"/wheels/{wheel.name}", "--find-links=/wheels")
        yield host


@pytest.fixture
def host(machine: BootedHost) -> Iterator[BootedHost]:
    """Return the machine without an installation of the service."""
    yield machine
    machine.run(PROGRAM, "server", "uninstall", "--purge", "--yes")


def installed(host: BootedHost, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run `server install`, which must succeed."""
    return host.run(PROGRAM, "server", "install", *options)


def refused(host: BootedHost, program: str = PROGRAM) -> str:
    """Return the message of a refused `server install`, which must have changed nothing."""
    done = host.run(program, "server", "install", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert host.run("getent", "passwd", USER, check=False).stdout == ""
    assert host.shell(f"ls -d {CONFIG_DIR} {DATA_DIR} {ADMIN_UNITS}/sally* 2>/dev/null || true") == ""
    return done.stderr


def sallyport(host: BootedHost, *arguments: str, stdin: str = "") -> str:
    """Run a command as root at the installation and return its output."""
    return host.run(PROGRAM, "--config", str(CONFIG_FILE), *arguments, stdin=stdin).stdout


def log_in(host: BootedHost, secret: str) -> str:
    """Send one login of alice from the machine itself."""
    options = ("--secret", secret, "--user", "alice", "--password", "correct horse battery")
    return sallyport(host, "check", "radius", "127.0.0.1:1812", *options)


def set_up(host: BootedHost) -> str:
    """Add a client and alice; return the client's secret."""
    secret = sallyport(host, "client", "add", "here", "--address", "127.0.0.1", "--org", "1", "--tenant", "1").strip()
    sallyport(host, "user", "add", "alice", "--domain", "default", "--password", "-", stdin="correct horse battery\n")
    return secret


def owners(host: BootedHost) -> set[str]:
    """Return the owners of everything in the data directory."""
    return set(host.shell(f"find {DATA_DIR} -printf '%u:%g\\n'").split())


def test_it_is_installed_and_serves(host: BootedHost) -> None:
    """Owners and modes are right, each step and the next one are reported, and the service answers a login."""
    told = installed(host)
    for name in (f"user {USER}", CONFIG_FILE, DATA_DIR, *(ADMIN_UNITS / unit for unit in UNITS)):
        assert f"{name} is made\n" in told.stdout
    assert f"sudo systemctl enable --now {UNIT} {BACKUP_TIMER}\n" in told.stderr
    assert f"sudo {PROGRAM} client add " in told.stderr
    modes = host.shell(f"stat -c '%n %U:%G %a' {CONFIG_DIR} {CONFIG_FILE} {DATA_DIR} {ADMIN_UNITS / UNIT}").splitlines()
    assert modes == [
        f"{CONFIG_DIR} root:root 755",
        f"{CONFIG_FILE} root:{USER} 640",
        f"{DATA_DIR} {USER}:{USER} 700",
        f"{ADMIN_UNITS / UNIT} root:root 644",
    ]
    assert host.shell(f"cat {CONFIG_FILE}") == settings_file()
    assert host.shell(f"getent passwd {USER}").endswith(f":{DATA_DIR}:/usr/sbin/nologin\n")
    host.run("systemctl", "enable", "--now", UNIT, BACKUP_TIMER)
    assert "Access-Accept" in log_in(host, set_up(host))
    assert host.shell(f"stat -c %U /proc/$(systemctl show --property MainPID --value {UNIT})") == f"{USER}\n"
    host.run("systemctl", "start", "sallyport-backup.service")
    assert host.shell(f"ls {DATA_DIR}/backups").count(".db\n") == 1
    assert owners(host) == {f"{USER}:{USER}"}


def test_a_second_run_changes_nothing(host: BootedHost) -> None:
    """A second run reports the present installation. A changed settings file and changed data stay."""
    installed(host)
    host.shell(f"echo 'event_days = 7' >> {CONFIG_FILE}.new; cat {CONFIG_FILE} >> {CONFIG_FILE}.new")
    host.shell(f"cat {CONFIG_FILE}.new > {CONFIG_FILE}; rm {CONFIG_FILE}.new")
    listed = f"stat -c '%n %Y %i %U %a' {CONFIG_FILE} {DATA_DIR}/* {ADMIN_UNITS}/sallyport*"
    before = host.shell(listed)
    told = installed(host).stdout.splitlines()
    assert [line for line in told if THERE not in line] == []
    assert host.shell(listed) == before


def test_a_unit_of_another_version_is_updated(host: BootedHost) -> None:
    """The former text stays beside it, and a running service is named."""
    installed(host, "--start")
    host.shell(f"sed -i 's/^RestartSec=.*/RestartSec=9/' {ADMIN_UNITS / UNIT}")
    told = installed(host)
    assert f"{ADMIN_UNITS / UNIT} is updated; the former is in {UNIT}.old\n" in told.stdout
    assert f"sudo systemctl restart {UNIT}\n" in told.stderr
    assert "RestartSec=1\n" in host.shell(f"systemctl cat {UNIT}")
    assert "RestartSec=9\n" in host.shell(f"cat {ADMIN_UNITS / UNIT}.old")


def test_uninstall_keeps_the_data_for_the_next_installation(host: BootedHost) -> None:
    """The units are gone; after another installation the old client and user log in, with data of root's command."""
    installed(host, "--start")
    secret = set_up(host)
    told = host.run(PROGRAM, "server", "uninstall")
    assert "--purge" in told.stderr
    assert host.run("systemctl", "is-active", UNIT, check=False).stdout == "inactive\n"
    assert host.shell(f"ls {ADMIN_UNITS} {ADMIN_UNITS}/*.wants | grep sallyport || true") == ""
    installed(host, "--start")
    assert "Access-Accept" in log_in(host, secret)


def test_data_of_another_user_are_given_to_the_service(host: BootedHost) -> None:
    """A data directory that was copied back by root, or whose user had another number, serves."""
    installed(host, "--start")
    secret = set_up(host)
    host.run(PROGRAM, "server", "uninstall")
    host.run("chown", "-R", "root:root", str(DATA_DIR))
    installed(host, "--start")
    assert owners(host) == {f"{USER}:{USER}"}
    assert "Access-Accept" in log_in(host, secret)


def test_purge_leaves_nothing_but_the_files_of_others(host: BootedHost) -> None:
    """Data, settings, user and units are deleted, after a question; an agent's file in /etc/sallyport stays."""
    installed(host, "--start")
    host.shell(f"install -m 600 /dev/null {CONFIG_DIR}/endpoint-agent.toml")
    asked = host.run(PROGRAM, "server", "uninstall", "--purge", stdin="n\n", check=False)
    assert asked.returncode == 1
    assert host.shell(f"systemctl is-active {UNIT}") == "active\n"
    host.run(PROGRAM, "server", "uninstall", "--purge", "--yes")
    assert host.run("getent", "passwd", USER, check=False).stdout == ""
    assert host.run("getent", "group", USER, check=False).stdout == ""
    assert host.shell(f"ls -d {DATA_DIR} {ADMIN_UNITS}/sally* 2>/dev/null || true") == ""
    assert host.shell(f"ls {CONFIG_DIR}; rm -r {CONFIG_DIR}") == "endpoint-agent.toml\n"
    assert "no unit is installed" in host.run(PROGRAM, "server", "uninstall").stdout


def test_the_unit_allows_what_the_settings_say(host: BootedHost) -> None:
    """After another `server install` the unit allows a port below 1024 and a decisions file elsewhere.

    Without the settings it no longer does.
    """
    installed(host, "--start")
    secret = set_up(host)
    host.shell(f"install -d -o {USER} /srv/decisions; cp {CONFIG_FILE} /root/before")
    lines = 'http_bind = "127.0.0.1:80"\\nevent_outlets = "file:///srv/decisions/all.jsonl"'
    host.shell(f"sed -i '1i {lines}' {CONFIG_FILE}")
    installed(host, "--start")
    assert "Access-Accept" in log_in(host, secret)
    host.shell("python3 -c 'import urllib.request as r; r.urlopen(\"http://127.0.0.1/readyz\", timeout=9)'")
    host.shell("for n in $(seq 50); do grep -q alice /srv/decisions/all.jsonl && exit; sleep 0.2; done; exit 1")
    host.shell(f"cat /root/before > {CONFIG_FILE}")
    assert "50-settings.conf is removed" in installed(host, "--start").stdout
    assert "Access-Accept" in log_in(host, secret)


def test_settings_that_the_service_will_not_see_are_named(host: BootedHost) -> None:
    """A certificate in a home directory is hidden by the unit; a key of root's is not readable."""
    installed(host)
    host.shell("touch /srv/key.pem; chmod 600 /srv/key.pem")
    host.shell(f'sed -i \'1i tls_certificate = "/home/ann/c.pem"\\ntls_key = "/srv/key.pem"\' {CONFIG_FILE}')
    told = installed(host).stderr
    assert "setting tls_certificate: /home/ann/c.pem is hidden" in told
    assert f"setting tls_key: the user {USER} cannot read /srv/key.pem" in told


def test_a_wrong_settings_file_is_refused(host: BootedHost) -> None:
    """The message names the file and the setting, and nothing is made."""
    host.shell(f"mkdir {CONFIG_DIR}; echo 'spoon = 1' > {CONFIG_FILE}")
    done = host.run(PROGRAM, "server", "install", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{CONFIG_FILE}: there is no setting spoon" in done.stderr
    assert host.run("getent", "passwd", USER, check=False).stdout == ""


def test_links_in_the_place_of_directories_and_units_are_refused(machine: BootedHost) -> None:
    """systemd starts no service whose StateDirectory= is a link, and a masked unit stays masked."""
    for link, target in ((DATA_DIR, "/srv"), (ADMIN_UNITS / UNIT, "/dev/null")):
        machine.run("ln", "-s", target, str(link))
        done = machine.run(PROGRAM, "server", "install", check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"{link} is a link" in done.stderr
        machine.run("rm", str(link))


def test_the_data_can_be_elsewhere(host: BootedHost) -> None:
    """A new data directory is given to the service's user; the service and its backup may write there, and purging
    leaves it."""
    host.shell(f"mkdir {CONFIG_DIR}; echo 'data_dir = \"/srv/s p\"' > {CONFIG_FILE}")
    installed(host, "--start")
    assert host.shell("stat -c '%U %a' '/srv/s p'") == f"{USER} 700\n"
    assert "Access-Accept" in log_in(host, set_up(host))
    host.run("systemctl", "start", "sallyport-backup.service")
    host.run(PROGRAM, "server", "uninstall", "--purge", "--yes")
    host.run("rm", "-r", "/srv/s p/sallyport.db", "/srv/s p")


def test_a_command_elsewhere_uses_the_database_of_the_service(host: BootedHost) -> None:
    """A relative path of the settings counts from the service's working directory, for commands too."""
    host.shell(f'mkdir {CONFIG_DIR}; printf \'data_dir = "."\ndatabase = "own.db"\n\' > {CONFIG_FILE}')
    installed(host)
    host.shell(f"cd /srv; {PROGRAM} client add here --address 127.0.0.1 --org 1 --tenant 1")
    assert "127.0.0.1" in host.shell(f"cd /; {PROGRAM} client list")
    assert host.shell(f"find /srv {DATA_DIR} -maxdepth 1 -name '*.db'") == f"{DATA_DIR}/own.db\n"


def test_a_package_owns_its_units(host: BootedHost) -> None:
    """Where a package has the units for this program, none is written beside them; another program is refused."""
    package = "/usr/lib/systemd/system"
    host.shell(f"ln -s {PROGRAM} /usr/bin/sallyport; cp {TEMPLATES}/* {package}")
    host.shell(f"sed -i 's#{PROGRAM}#/usr/bin/sallyport#' {package}/sallyport*")
    try:
        assert "the units are there already, from a package" in installed(host, "--start").stdout
        assert host.shell(f"ls {ADMIN_UNITS} | grep '^sallyport' || true") == ""
        assert "apt remove" in host.run(PROGRAM, "server", "uninstall", check=False).stderr
        host.run("systemctl", "disable", "--now", UNIT, BACKUP_TIMER)
        host.shell(f"sed -i 's#/usr/bin/sallyport#/usr/bin/true#' {package}/sallyport*")
        assert "is a package's, for another program" in host.run(PROGRAM, "server", "install", check=False).stderr
    finally:
        host.shell(f"rm /usr/bin/sallyport {package}/sallyport*; systemctl daemon-reload")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        pytest.param("/root/venv", "/root/venv/bin/sallyport is in /root, which the service cannot see", id="root"),
        pytest.param("/srv/private/venv", "no access to /srv/private", id="directory"),
    ],
)
def test_a_program_out_of_reach_is_refused(machine: BootedHost, place: str, said: str) -> None:
    """The service's user cannot enter a directory on the way to the program: the message names it."""
    machine.shell(f"mkdir -p -m 700 {Path(place).parent}; cp -a {VENV} {place}")
    told = refused(machine, f"{place}/bin/sallyport")
    assert said in told and f"sudo {PROGRAM} server install" in told
    machine.run("rm", "-r", place)


def test_an_unreadable_package_is_refused(machine: BootedHost) -> None:
    """A dependency that was installed for root alone is found, though the program itself starts."""
    machine.run("chmod", "700", TRIO)
    try:
        assert f"the user {USER} cannot run {PROGRAM}: " in refused(machine)
    finally:
        machine.run("chmod", "755", TRIO)


def test_without_systemd(host: BootedHost) -> None:
    """All files are made, the command that serves is printed and works, and a running service's data stay."""
    script = f"""
        mount -t tmpfs tmpfs /run
        {PROGRAM} server install --start 2>&1 && exit 1
        {PROGRAM} server install 2>/run/told >&2
        command=$(sed -n 's/.*start the service with: //p' /run/told)
        $command >/run/log 2>&1 &
        for n in $(seq 200); do grep -q ready /run/log && break; sleep 0.1; done
        {PROGRAM} server uninstall --purge --yes 2>&1 && exit 1
        secret=$({PROGRAM} --config {CONFIG_FILE} client add here --address 127.0.0.1 --org 1 --tenant 1)
        echo hello | {PROGRAM} --config {CONFIG_FILE} user add alice --domain default --password -
        {PROGRAM} check radius 127.0.0.1:1812 --secret "$secret" --user alice --password hello
        kill $!
        wait $! || true
        {PROGRAM} server uninstall
    """
    told = host.run("unshare", "--mount", "sh", "-c", script).stdout
    assert "--start: systemd does not run on this machine" in told
    assert "Access-Accept" in told
    assert f"a service uses {DATA_DIR}, and systemd does not run here: stop the service first" in told
    assert owners(host) == {f"{USER}:{USER}"}


def test_an_agent_was_installed_first(host: BootedHost) -> None:
    """Its directory is private to root; the service's user can read its settings there all the same."""
    host.shell(f"install -d -m 700 {CONFIG_DIR}; install -m 600 /dev/null {CONFIG_DIR}/endpoint-agent.toml")
    installed(host, "--start")
    assert host.shell(f"stat -c %a {CONFIG_DIR} {CONFIG_DIR}/endpoint-agent.toml").split() == ["755", "600"]
    host.run("rm", f"{CONFIG_DIR}/endpoint-agent.toml")
