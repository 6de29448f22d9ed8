"""`sallyport server install` and `uninstall` on a clean Debian with systemd, with the wheel in /opt/sallyport."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyotp
import pytest

from sallyport.deploy.settings_file import settings_file
from sallyport.host.systemd import (
    ADMIN_UNITS,
    BACKUP_TIMER,
    BACKUP_UNIT,
    CONFIG_DIR,
    CONFIG_FILE,
    CREDENTIALS_DIR,
    DATA_DIR,
    SOCKET,
    UNIT,
    UNITS,
    USER,
)
from sallyport.settings.master_key import KEY_FILE
from tests.docs.commands import blocks
from tests.peers.booted import PACKAGES, BootedHost, needs_boot
from tests.peers.isolated import base
from tests.running_service import refusal

ROOT = Path(__file__).parents[2]
VENV = "/opt/sallyport"
PROGRAM = f"{VENV}/bin/sallyport"
TEMPLATES = f"{VENV}/lib/python3.11/site-packages/sallyport/deploy/systemd"
TRIO = f"{VENV}/lib/python3.11/site-packages/trio"
THERE = "is there already"
FOUND = f"using the installation in {DATA_DIR} ({CONFIG_FILE})\n"
LOGIN = """
import sys
from sallyport.cli.radius import RadiusClient
from sallyport.radius.attributes import STATE, push_attribute
secret, password, state = sys.argv[1:]
with RadiusClient(("127.0.0.1", 1812), secret.encode()) as client:
    attributes = push_attribute(STATE, bytes.fromhex(state)) if state else b""
    answer = client.login(b"alice", password.encode(), attributes)
print(answer.code, answer.attributes.get(STATE, b"").hex())
"""
"""A script with the arguments: the secret, the password, and the State of a challenge in hex. It prints the code and
the State of the answer.
"""
LOAD = """
import select, socket, sys, time
from contextlib import suppress
from sallyport.radius.attributes import USER_NAME, USER_PASSWORD, push_attribute
from sallyport.radius.packet import ACCESS_REQUEST, SharedSecret, encode_request
from sallyport.radius.password import hide_password
COUNT, RATE, SECRET = int(sys.argv[2]), int(sys.argv[3]), SharedSecret(sys.argv[1].encode())
socks = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(16)]
for each in socks:
    each.connect(("127.0.0.1", 1812))
began, end, waiting, accepted, sent = time.monotonic(), time.monotonic() + 120, {}, 0, 0
while accepted < COUNT and time.monotonic() < end:
    while sent < COUNT and sent < (time.monotonic() - began) * RATE:
        authenticator = sent.to_bytes(16, "big")
        hidden = hide_password(b"correct horse battery", SECRET, authenticator)
        body = push_attribute(USER_NAME, b"alice") + push_attribute(USER_PASSWORD, hidden)
        key = sent % 16, sent // 16
        packet = encode_request(ACCESS_REQUEST, sent // 16, SECRET, body, authenticator=authenticator)
        waiting[key] = [time.monotonic(), packet]
        with suppress(ConnectionRefusedError):
            socks[key[0]].send(packet)
        sent += 1
    for each in select.select(socks, [], [], 0.001)[0]:
        answer = bytes(2)
        with suppress(ConnectionRefusedError):
            answer = each.recv(4096)
        if answer[0] == 2 and waiting.pop((socks.index(each), answer[1]), None):
            accepted += 1
    for key, entry in waiting.items():
        if time.monotonic() - entry[0] > 3:
            entry[0] = time.monotonic()
            with suppress(ConnectionRefusedError):
                socks[key[0]].send(entry[1])
print(accepted, "of", COUNT, "logins accepted")
"""
"""Logins as alice. Its arguments: the client's secret, the number of logins (at most 4096), and logins a second. Like a
NAS, it sends a request again after 3 s.
"""
pytestmark = [pytest.mark.peer, pytest.mark.system, *needs_boot]

STATUS = """
import sys, urllib.error, urllib.request
headers = {"X-Authorization": sys.argv[1], "Content-Type": "application/json"}
try:
    urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:8080/network_device/ListDevices", b"{}", headers))
except urllib.error.HTTPError as error:
    print(error.code)
"""
"""A script with one argument, an access token. It prints the HTTP status of a request with that token."""


def pip(*arguments: str | Path) -> None:
    """Run pip, and assert that it succeeds."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments, "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BootedHost]:
    """Boot a machine that has only the program and its locked dependencies."""
    with prepared(tmp_path_factory) as host:
        yield host


@contextmanager
def prepared(
    tmp_path_factory: pytest.TempPathFactory, packages: str = PACKAGES, extra: str = ""
) -> Iterator[BootedHost]:
    """Boot a machine with these packages of Debian, the program, and its locked dependencies.

    extra: an extra of the program; empty for none.
    """
    wheels = tmp_path_factory.mktemp("wheels")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, ROOT)
    (wheel,) = wheels.glob("*.whl")
    locks = ["requirements.lock", *([f"requirements-{extra}.lock"] if extra else [])]
    texts = [(ROOT / lock).read_text(encoding="utf-8") for lock in locks]
    locked = dict.fromkeys(found for text in texts for found in re.findall(r"(?m)^\S+==\S+", text))
    versions = wheels / "versions.txt"
    versions.write_text("\n".join(locked))
    fitting = ("--python-version", "3.11", "--only-binary", ":all:")
    pip("download", *fitting, "--constraint", versions, "--dest", wheels, f"{wheel}{extra and f'[{extra}]'}")
    with BootedHost(base(packages), tmp_path_factory.mktemp("host"), {"/wheels": wheels}) as host:
        target = f"/wheels/{wheel.name}{extra and f'[{extra}]'}"
        host.run("python3", "-m", "venv", VENV)
        host.run(f"{VENV}/bin/pip", "install", "--quiet", "--no-index", "--find-links=/wheels", target)
        yield host


@pytest.fixture
def host(machine: BootedHost) -> Iterator[BootedHost]:
    """Return the machine with no installation of the service on it."""
    yield machine
    machine.run(PROGRAM, "server", "uninstall", "--purge", "--yes")


def installed(host: BootedHost, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run `server install`, and assert that it succeeds."""
    return host.run(PROGRAM, "server", "install", *options)


def refused(host: BootedHost, program: str = PROGRAM) -> str:
    """Assert that `server install` is refused and changes nothing, and return its message."""
    done = host.run(program, "server", "install", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert host.run("getent", "passwd", USER, check=False).stdout == ""
    assert host.shell(f"ls -d {CONFIG_DIR} {DATA_DIR} {ADMIN_UNITS}/sally* 2>/dev/null || true") == ""
    return done.stderr


def sallyport(host: BootedHost, *arguments: str, stdin: str = "") -> str:
    """Run a command as root on the installation, and return its output."""
    return host.run(PROGRAM, "--config", str(CONFIG_FILE), *arguments, stdin=stdin).stdout


def log_in(host: BootedHost, secret: str) -> str:
    """Log in as alice once, from the machine itself."""
    options = ("--secret", secret, "--user", "alice", "--password", "correct horse battery")
    return sallyport(host, "check", "radius", "127.0.0.1:1812", *options)


def set_up(host: BootedHost) -> str:
    """Add a client and the user alice, and return the client's secret."""
    secret = sallyport(host, "client", "add", "here", "--address", "127.0.0.1", "--org", "1", "--tenant", "1").strip()
    sallyport(host, "user", "add", "alice", "--domain", "default", "--password", "-", stdin="correct horse battery\n")
    return secret


def owners(host: BootedHost) -> set[str]:
    """Return the owners of all files in the data directory."""
    return set(host.shell(f"find {DATA_DIR} -printf '%u:%g\\n'").split())


def test_an_installed_service_answers_a_login(host: BootedHost) -> None:
    """Owners and modes of the files are right. The command prints each step that it has done, and the next step for the
    admin.
    """
    done = installed(host)
    for name in (f"user {USER}", CONFIG_FILE, DATA_DIR, *(ADMIN_UNITS / unit for unit in UNITS)):
        assert f"{name} was created\n" in done.stdout
    assert f"sudo systemctl enable --now {UNIT} {BACKUP_TIMER}\n" in done.stderr
    assert f"sudo {PROGRAM} client add " in done.stderr
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


def test_a_second_installation_changes_nothing(host: BootedHost) -> None:
    """A second installation reports the existing one. Changed settings and changed data are kept."""
    installed(host)
    host.shell(f"echo 'event_days = 7' >> {CONFIG_FILE}.new; cat {CONFIG_FILE} >> {CONFIG_FILE}.new")
    host.shell(f"cat {CONFIG_FILE}.new > {CONFIG_FILE}; rm {CONFIG_FILE}.new")
    listed = f"stat -c '%n %Y %i %U %a' {CONFIG_FILE} {DATA_DIR}/* {ADMIN_UNITS}/sallyport*"
    before = host.shell(listed)
    lines = installed(host).stdout.splitlines()
    assert [line for line in lines if THERE not in line] == []
    assert host.shell(listed) == before


def test_a_unit_of_another_version_is_updated(host: BootedHost) -> None:
    """The former text of the unit is kept in a file beside it. The message says that a running service must be
    restarted.
    """
    installed(host, "--start")
    host.shell(f"sed -i 's/^RestartSec=.*/RestartSec=9/' {ADMIN_UNITS / UNIT}")
    done = installed(host)
    assert f"{ADMIN_UNITS / UNIT} was updated; a copy of the old unit is in {UNIT}.old\n" in done.stdout
    assert f"sudo systemctl restart {UNIT}\n" in done.stderr
    assert "RestartSec=1\n" in host.shell(f"systemctl cat {UNIT}")
    assert "RestartSec=9\n" in host.shell(f"cat {ADMIN_UNITS / UNIT}.old")


def test_the_master_key_can_be_a_credential(host: BootedHost) -> None:
    """With the commands of the page, the service gets a key that only root can read, and answers logins. Without a key
    there or beside the data, it does not start."""
    installed(host, "--start")
    secret = set_up(host)
    apart = f"{CREDENTIALS_DIR}/{KEY_FILE}"
    (block,) = [each for each in blocks("docs/install/systemd.md") if str(CREDENTIALS_DIR) in each[0].text]
    for command in block:
        host.shell(command.text.removeprefix("sudo ").replace("sallyport doctor", f"{PROGRAM} doctor"))
    assert log_in(host, secret).startswith("Access-Accept")
    assert f"/run/credentials/{UNIT}/{KEY_FILE}" not in sallyport(host, "doctor")
    host.shell(f"systemctl start {BACKUP_UNIT} && ls {DATA_DIR}/backups/*.db && systemctl stop {UNIT}")
    assert f"from {apart}" in sallyport(host, "doctor")
    sallyport(host, "client", "set", "here", "--note", "moved")  # opens the store itself
    host.shell(f"rm -r {CREDENTIALS_DIR}")
    assert host.run("systemctl", "start", UNIT, check=False).returncode != 0


def test_systemd_reloads_the_settings(host: BootedHost) -> None:
    """`systemctl reload` waits for its end. The status names the setting that applies and the one that needs a restart.
    With a wrong file the reload fails, the journal has the reason, and the service keeps running."""
    installed(host, "--start")
    secret = set_up(host)
    process = host.shell(f"systemctl show --property MainPID --value {UNIT}")
    host.shell(f"cp {CONFIG_FILE} /root/before; sed -i '1i event_days = 7\\nduplicate_window_s = 9' {CONFIG_FILE}")
    host.run("systemctl", "reload", UNIT)
    status = host.shell(f"systemctl show --property StatusText --value {UNIT}")
    assert status == "every listener answers; reloaded event_days; a restart is needed for duplicate_window_s\n"
    host.shell(f"sed -i '1i event_day = 7' {CONFIG_FILE}")
    assert host.run("systemctl", "reload", UNIT, check=False).returncode != 0
    assert "there is no setting event_day" in host.shell(f"journalctl --unit {UNIT} --output cat")
    assert host.shell(f"systemctl show --property MainPID --value {UNIT}") == process
    assert host.shell(f"systemctl is-active {UNIT}") == "active\n"
    assert log_in(host, secret).startswith("Access-Accept")


def test_a_restart_loses_no_datagram(host: BootedHost) -> None:
    """systemd keeps the sockets, after the commands of the page. Under 1,000 logins a second a restart leaves no login
    without an answer."""
    installed(host, "--start")
    secret = set_up(host)
    (block,) = [each for each in blocks("docs/install/systemd.md") if any(SOCKET in line.text for line in each)]
    for command in block:
        host.shell(command.text.removeprefix("sudo "))
    process = f"systemctl show --property MainPID --value {UNIT}"
    before = host.shell(process)
    load = f"{VENV}/bin/python -c '{LOAD}' {secret} 4000 1000 > /root/load"
    host.shell(f"{load} & sleep 1; systemctl restart {UNIT}; wait")
    assert host.shell("cat /root/load") == "4000 of 4000 logins accepted\n"
    assert host.shell(process) != before
    owner = host.shell("ss --no-header --listening --udp --processes 'sport = :1812'")
    assert '"systemd",pid=1' in owner
    assert '"sallyport"' in owner
    sallyport(host, "client", "set", "here", "--note", "the sockets of systemd answer commands as well")
    host.shell(f"echo 'radius_acct_bind = \"127.0.0.1:1813\"' | cat - {CONFIG_FILE} > /root/new")
    host.shell(f"cat /root/new > {CONFIG_FILE}")
    assert host.run("systemctl", "restart", UNIT, check=False).returncode != 0
    assert "systemd has passed a socket for 0.0.0.0:1813 (UDP)" in host.shell(f"journalctl --unit {UNIT} --output cat")
    installed(host, "--start")
    assert log_in(host, secret).startswith("Access-Accept")


def test_uninstall_keeps_the_data_for_the_next_installation(host: BootedHost) -> None:
    """Uninstalling deletes the units. After another installation, the same client and user can log in."""
    installed(host, "--start")
    secret = set_up(host)
    done = host.run(PROGRAM, "server", "uninstall")
    assert "--purge" in done.stderr
    assert host.run("systemctl", "is-active", UNIT, check=False).stdout == "inactive\n"
    assert host.shell(f"ls {ADMIN_UNITS} {ADMIN_UNITS}/*.wants | grep sallyport || true") == ""
    installed(host, "--start")
    assert "Access-Accept" in log_in(host, secret)


def test_the_data_directory_gets_the_owner_of_the_service(host: BootedHost) -> None:
    """After an installation, the service can use a data directory that root has restored or that has another user's
    number.
    """
    installed(host, "--start")
    secret = set_up(host)
    host.run(PROGRAM, "server", "uninstall")
    host.run("chown", "-R", "root:root", str(DATA_DIR))
    installed(host, "--start")
    assert owners(host) == {f"{USER}:{USER}"}
    assert "Access-Accept" in log_in(host, secret)


def test_purge_deletes_everything_but_the_agent_file(host: BootedHost) -> None:
    """After a confirmation, the data, settings, user and units are deleted. The agent's file in /etc/sallyport is
    kept.
    """
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


def test_the_unit_allows_what_the_settings_need(host: BootedHost) -> None:
    """After another `server install`, the unit allows a port below 1024 and a decisions file in another directory.

    When these settings are removed, it no longer does.
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
    assert "50-settings.conf was removed" in installed(host, "--start").stdout
    assert "Access-Accept" in log_in(host, secret)


def test_files_that_the_service_cannot_read_are_named(host: BootedHost) -> None:
    """The message names a certificate in a home directory, which the unit hides, and a key of root, which the service's
    user cannot read.
    """
    installed(host)
    host.shell("touch /srv/key.pem; chmod 600 /srv/key.pem")
    host.shell(f'sed -i \'1i tls_certificate = "/home/ann/c.pem"\\ntls_key = "/srv/key.pem"\' {CONFIG_FILE}')
    message = installed(host).stderr
    assert "setting tls_certificate: the unit hides /home/ann/c.pem from the service" in message
    assert f"setting tls_key: the user {USER} cannot read /srv/key.pem" in message


def test_an_invalid_settings_file_is_refused(host: BootedHost) -> None:
    """If the settings file is invalid, the message names the file and the setting, and nothing is created."""
    host.shell(f"mkdir {CONFIG_DIR}; echo 'spoon = 1' > {CONFIG_FILE}")
    done = host.run(PROGRAM, "server", "install", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{CONFIG_FILE}: there is no setting spoon" in done.stderr
    assert host.run("getent", "passwd", USER, check=False).stdout == ""


def test_links_to_directories_and_units_are_refused(machine: BootedHost) -> None:
    """The installation refuses a link as data directory, because systemd does not start a service with a link as
    StateDirectory=. A masked unit stays masked.
    """
    for link, target in ((DATA_DIR, "/srv"), (ADMIN_UNITS / UNIT, "/dev/null")):
        machine.run("ln", "-s", target, str(link))
        done = machine.run(PROGRAM, "server", "install", check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert f"{link} is a symbolic link" in done.stderr
        machine.run("rm", str(link))


def test_the_data_directory_can_be_elsewhere(host: BootedHost) -> None:
    """A data directory in another place belongs to the service's user. The service and its backup can write there, and
    purging keeps the directory.
    """
    host.shell(f"mkdir {CONFIG_DIR}; echo 'data_dir = \"/srv/s p\"' > {CONFIG_FILE}")
    installed(host, "--start")
    assert host.shell("stat -c '%U %a' '/srv/s p'") == f"{USER} 700\n"
    assert "Access-Accept" in log_in(host, set_up(host))
    host.run("systemctl", "start", "sallyport-backup.service")
    host.run(PROGRAM, "server", "uninstall", "--purge", "--yes")
    host.run("rm", "-r", "/srv/s p/sallyport.db", "/srv/s p")


def test_a_command_elsewhere_uses_the_database_of_the_service(host: BootedHost) -> None:
    """A relative path in the settings is relative to the working directory of the service, also for commands that run
    in another directory.
    """
    host.shell(f'mkdir {CONFIG_DIR}; printf \'data_dir = "."\ndatabase = "own.db"\n\' > {CONFIG_FILE}')
    installed(host)
    host.shell(f"cd /srv; {PROGRAM} client add here --address 127.0.0.1 --org 1 --tenant 1")
    assert "127.0.0.1" in host.shell(f"cd /; {PROGRAM} client list")
    assert host.shell(f"find /srv {DATA_DIR} -maxdepth 1 -name '*.db'") == f"{DATA_DIR}/own.db\n"


def test_units_of_a_package_are_kept(host: BootedHost) -> None:
    """If a package has installed the units for this program, no unit is written. Units for another program are
    refused.
    """
    package = "/usr/lib/systemd/system"
    host.shell(f"ln -s {PROGRAM} /usr/bin/sallyport; cp {TEMPLATES}/* {package}")
    host.shell(f"sed -i 's#{PROGRAM}#/usr/bin/sallyport#' {package}/sallyport*")
    try:
        assert "a package has installed the units already" in installed(host, "--start").stdout
        assert host.shell(f"ls {ADMIN_UNITS} | grep '^sallyport' || true") == ""
        assert "apt remove" in host.run(PROGRAM, "server", "uninstall", check=False).stderr
        host.run("systemctl", "disable", "--now", UNIT, BACKUP_TIMER)
        host.shell(f"sed -i 's#/usr/bin/sallyport#/usr/bin/true#' {package}/sallyport*")
        assert "starts another program" in host.run(PROGRAM, "server", "install", check=False).stderr
    finally:
        host.shell(f"rm /usr/bin/sallyport {package}/sallyport*; systemctl daemon-reload")


@pytest.mark.parametrize(
    ("place", "cause"),
    [
        pytest.param("/root/venv", "is in /root, and systemd hides this directory from the service", id="root"),
        pytest.param("/srv/private/venv", "no access to /srv/private", id="directory"),
    ],
)
def test_an_unreachable_program_is_refused(machine: BootedHost, place: str, cause: str) -> None:
    """The message names the directory that the service's user cannot enter."""
    machine.shell(f"mkdir -p -m 700 {Path(place).parent}; cp -a {VENV} {place}")
    message = refused(machine, f"{place}/bin/sallyport")
    assert cause in message and f"sudo {PROGRAM} server install" in message
    machine.run("rm", "-r", place)


def test_an_unreadable_dependency_is_refused(machine: BootedHost) -> None:
    """A dependency that only root can read is found, although the program itself starts."""
    machine.run("chmod", "700", TRIO)
    try:
        assert f"the user {USER} cannot run {PROGRAM}: " in refused(machine)
    finally:
        machine.run("chmod", "755", TRIO)


def test_it_is_installed_without_systemd(host: BootedHost) -> None:
    """Without systemd all files are created, and the printed command starts the service. The data of a running service
    is kept.
    """
    script = f"""
        mount -t tmpfs tmpfs /run
        {PROGRAM} server install --start 2>&1 && exit 1
        {PROGRAM} server install 2>/run/messages >&2
        command=$(sed -n 's/.*start the service with: //p' /run/messages)
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
    output = host.run("unshare", "--mount", "sh", "-c", script).stdout
    assert "--start: systemd does not run on this machine" in output
    assert "Access-Accept" in output
    assert f"a service uses {DATA_DIR}, but systemd does not manage it: stop the service first" in output
    assert owners(host) == {f"{USER}:{USER}"}


def test_the_service_can_be_installed_after_an_agent(host: BootedHost) -> None:
    """The directory /etc/sallyport, which the agent keeps private to root, is opened, so that the service's user can
    read the settings.
    """
    host.shell(f"install -d -m 700 {CONFIG_DIR}; install -m 600 /dev/null {CONFIG_DIR}/endpoint-agent.toml")
    installed(host, "--start")
    assert host.shell(f"stat -c %a {CONFIG_DIR} {CONFIG_DIR}/endpoint-agent.toml").split() == ["755", "600"]
    host.run("rm", f"{CONFIG_DIR}/endpoint-agent.toml")


def test_a_command_of_root_finds_the_installation_from_any_directory(host: BootedHost) -> None:
    """A command names the installation before it changes anything there, unless the caller has named it. A list names
    none. A data directory of another user in the current directory is not used, and a note says this.
    """
    installed(host, "--start")
    scope = ("--org", "1", "--tenant", "1")
    host.shell("install -d -o daemon /srv/theirs/sallyport-data; install -d /srv/empty")
    for number, place in enumerate(("/", "/srv/empty", "/root", "/home")):
        done = host.run("env", f"--chdir={place}", PROGRAM, "domain", "add", f"corp{number}", *scope)
        assert done.stderr == FOUND
        assert host.run("env", f"--chdir={place}", PROGRAM, "domain", "list").stderr == ""
    named = ("--config", str(CONFIG_FILE))
    assert host.run(PROGRAM, *named, "domain", "add", "named", *scope).stderr == ""
    variable = ("env", f"SALLYPORT_DATA_DIR={DATA_DIR}")
    assert host.run(*variable, PROGRAM, "domain", "add", "variable", *scope).stderr == ""
    done = host.run("env", "--chdir=/srv/theirs", PROGRAM, "domain", "add", "theirs", *scope)
    passed_over, found = done.stderr.splitlines(keepends=True)
    assert passed_over.startswith("./sallyport-data belongs to user daemon and is ignored; to use it, set ")
    assert found == FOUND
    names = {row["domainName"] for row in json.loads(sallyport(host, "domain", "list", "--json"))}
    assert names >= {"corp0", "corp1", "corp2", "corp3", "named", "variable", "theirs"}
    assert host.shell("cd /srv; find theirs empty -type f; rm -r theirs empty") == ""


def test_an_ordinary_user_gets_one_line(host: BootedHost) -> None:
    """For an ordinary user, each command prints one line. It names the denied permission and does not say that the
    installation is missing.
    """
    installed(host)
    as_user = ("setpriv", "--reuid=daemon", "--regid=daemon", "--clear-groups", "env", "--chdir=/", PROGRAM)
    add = ("domain", "add", "x", "--org", "1", "--tenant", "1")
    for words in (("domain", "list"), add, ("serve",), ("--config", str(CONFIG_FILE), *add)):
        done = host.run(*as_user, *words, check=False)
        assert (done.returncode, done.stdout) == (1, "")
        told = refusal(done) if words == ("serve",) else done.stderr.removeprefix("sallyport: ").rstrip("\n")
        assert told == f"{CONFIG_FILE}: permission denied for user daemon; run this command as root"
    done = host.run(*as_user, "doctor", check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.count("permission denied for user daemon") == 1


def test_without_an_installation_a_command_ends(machine: BootedHost) -> None:
    """Without an installation, a command ends after three seconds. It prints the same line for root and for an ordinary
    user, and creates nothing.
    """
    machine.run("install", "-d", "-m", "777", "/srv/none")
    for user in ("root", "daemon"):
        as_user = ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")
        timed = (
            f"cd /srv/none; before=$(date +%s%N); {PROGRAM} domain list; echo $((($(date +%s%N) - before) / 1000000))"
        )
        done = machine.run(*as_user, "sh", "-c", timed)
        told = "sallyport: no Sallyport installation in ./sallyport-data; set SALLYPORT_DATA_DIR or --config\n"
        assert done.stderr == told
        assert 3000 <= int(done.stdout) < 10_000
    assert machine.shell(f"rmdir /srv/none; ls -d {CONFIG_DIR} {DATA_DIR} 2>/dev/null || true") == ""


def test_a_backup_of_root_is_where_root_names_it(host: BootedHost) -> None:
    """The service has a /tmp of its own and may not write to root's directories. Still, a backup that root makes there
    belongs to root, and root can restore it.
    """
    installed(host, "--start")
    for place in ("/tmp", "/root"):  # noqa: S108  the directory that the service sees another one of
        host.shell(f"cd {place}; {PROGRAM} db backup copy.db; {PROGRAM} db restore copy.db --yes")
        assert host.shell(f"stat -c '%U %a' {place}/copy.db; rm {place}/copy.db") == "root 600\n"
    assert owners(host) == {f"{USER}:{USER}"}


def test_a_new_machine_gets_the_service_from_a_backup(host: BootedHost) -> None:
    """After everything was purged, the commands of the page restore a backup. A client and a user of the backup can log
    in. A login prompt that was waiting when the backup was made is void, and so are the tokens of the backup.
    """
    installed(host, "--start")
    secret = set_up(host)
    sallyport(host, "cert", "init", "--host", "radius.example.org")
    seed = json.loads(sallyport(host, "user", "totp", "alice", "--domain", "default", "--json"))["seed"]
    sallyport(host, "user", "totp", "alice", "--domain", "default", "--code", pyotp.TOTP(seed).now())
    sallyport(host, "provider", "set", "default", "totp")
    sallyport(host, "domain", "mode", "default", "enforce")
    login = (f"{VENV}/bin/python", "-c", LOGIN, secret)
    challenge, state = host.run(*login, "correct horse battery", "").stdout.split()
    assert challenge == "11"
    host.run("install", "-d", "-m", "700", "/root/kept")
    host.run(PROGRAM, "db", "backup", "/root/kept", "--keep", "3")
    host.shell(f"cp -r {DATA_DIR}/master.key {DATA_DIR}/certs {CONFIG_FILE} /root/kept")
    token = host.shell(f"cat {DATA_DIR}/admin.token").strip()
    host.run(PROGRAM, "server", "uninstall", "--purge", "--yes")
    (block,) = [each for each in blocks("docs/install/backup.md") if each[0].text.startswith("sudo install")]
    (backup,) = host.shell("cd /root/kept; ls *.db").split()
    for command in block:
        text = re.sub(r"sallyport-\d+T\S+\.db", backup, command.text.removeprefix("sudo "))
        host.shell(f"cd /root; {text}")
    assert owners(host) == {f"{USER}:{USER}"}
    assert host.run(*login, "000000", state).stdout.split()[0] == "3"
    reasons = [row["reason"] for row in json.loads(sallyport(host, "event", "list", "--json", "--domain", "default"))]
    assert reasons[0] == "the challenge is unknown, over or another's"
    assert host.run(*login, "correct horse battery", "").stdout.split()[0] == "11"
    sallyport(host, "domain", "mode", "default", "monitor")
    assert "Access-Accept" in log_in(host, secret)
    assert host.run("python3", "-c", STATUS, token).stdout == "401\n"
    host.run("rm", "-r", "/root/kept")
