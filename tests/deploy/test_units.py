"""The systemd units are valid and have no more rights than the service needs."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sallyport.deploy import units
from sallyport.host import systemd
from sallyport.settings.master_key import KEY_FILE
from sallyport.settings.settings import Settings, load
from sallyport.settings.values import Address

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "src" / "sallyport" / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())
PAGE = (ROOT / "docs" / "install" / "systemd.md").read_text(encoding="utf-8")
PROGRAM = Path("/opt/venvs/one two/bin/sallyport")
EXPOSURE = 3.0
"""The highest exposure that `systemd-analyze security` may report. The maximum is 10, and a unit without hardening has
9.2.
"""

verifies = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")


def in_place(unit: Path, directory: Path) -> Path:
    """Return the unit with a program of this machine, because its own program is not installed."""
    text = units.unit(unit.name, Path("/bin/true"))
    text = re.sub(r"(?m)^(User|Group)=.*\n", "", text)
    copy = directory / unit.name
    copy.write_text(text, encoding="utf-8")
    return copy


@verifies
@pytest.mark.peer
def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    """`systemd-analyze verify` knows every directive and value."""
    files = [in_place(unit, tmp_path) for unit in UNITS]
    done = subprocess.run(
        ["systemd-analyze", "verify", *files],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
    )
    ours = [line for line in done.stderr.splitlines() if any(unit.name in line for unit in UNITS)]
    assert not ours, done.stderr


@verifies
@pytest.mark.peer
def test_the_service_has_few_rights(tmp_path: Path) -> None:
    """`systemd-analyze security` rates the exposure of the unit as low."""
    unit = DEPLOY / "systemd" / "sallyport.service"
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--no-pager", unit],
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert found is not None, done.stdout + done.stderr
    assert float(found[1]) <= EXPOSURE, done.stdout


def test_the_unit_has_watchdog_reload_and_stop_timeout() -> None:
    text = (DEPLOY / "systemd" / "sallyport.service").read_text(encoding="utf-8")
    for line in (
        "Type=notify",
        "WatchdogSec=30",
        "ExecReload=/opt/sallyport/bin/sallyport --config /etc/sallyport/sallyport.toml server reload",
        "TimeoutStopSec=15",
        "LimitCORE=0",
        "MemoryMax=75%",
    ):
        assert re.search(rf"(?m)^{re.escape(line)}$", text), line


def test_the_paths_that_the_container_copies_exist() -> None:
    """Each path of a COPY instruction is in the repository."""
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    for names in re.findall(r"(?m)^COPY (?!--from)(.+) /build/\S*$", text):
        for name in names.split():
            assert (ROOT / name).exists(), name


def lines(name: str) -> list[str]:
    """Return the lines of an installed unit."""
    return units.unit(name, PROGRAM).splitlines()


def test_server_install_writes_exactly_the_unit_files() -> None:
    assert {unit.name for unit in UNITS} == set(systemd.UNITS)


def test_the_units_have_the_paths_of_the_installation() -> None:
    """The user, settings file, data directory and program in the units are those that every command expects."""
    for name, command in (
        (systemd.UNIT, "serve"),
        (systemd.BACKUP_UNIT, f"db backup {systemd.DATA_DIR}/backups --keep 14"),
    ):
        text = lines(name)
        assert f"User={systemd.USER}" in text
        assert f"Group={systemd.USER}" in text
        assert f"WorkingDirectory={systemd.DATA_DIR}" in text
        assert f'ExecStart="{PROGRAM}" --config {systemd.CONFIG_FILE} {command}' in text
        assert f"LoadCredential={KEY_FILE}:{systemd.CREDENTIALS_DIR}/{KEY_FILE}" in text
        assert rf"SetCredential={KEY_FILE}:\n" in text  # without the file, systemd would not start the unit
        assert not any(line.startswith("Environment") for line in text)  # a variable would override the settings file
    assert f"StateDirectory={systemd.DATA_DIR.name} {systemd.DATA_DIR.name}/backups" in lines(systemd.UNIT)
    assert f"ConfigurationDirectory={systemd.CONFIG_DIR.name}" in lines(systemd.UNIT)


def test_the_documentation_has_the_paths_of_the_installation() -> None:
    """The page about systemd names every path that `server install` creates."""
    for path in (systemd.CONFIG_FILE, systemd.DATA_DIR, *units.unit_paths(), units.drop_in_path(systemd.UNIT)):
        assert f"`{path}`" in PAGE
    assert f"systemctl enable --now {systemd.UNIT} {systemd.BACKUP_TIMER}" in PAGE
    assert f"runuser -u {systemd.USER} -- /opt/sallyport/bin/sallyport --config {systemd.CONFIG_FILE} serve" in PAGE
    assert "hides `/home`, `/root` and `/tmp`" in PAGE
    assert {"ProtectHome=yes", "PrivateTmp=yes", "ProtectSystem=strict"} <= set(lines(systemd.UNIT))


def drop_ins_of(tmp_path: Path, text: str) -> dict[str, str]:
    """Return the drop-ins of each unit for a settings file."""
    file = tmp_path / "sallyport.toml"
    file.write_text(text)
    texts = units.drop_ins(load(file, {}).below(systemd.DATA_DIR))
    names = {units.drop_in_path(name): name for name in (systemd.UNIT, systemd.BACKUP_UNIT)}
    return {name: texts[path].partition("[Service]\n")[2] for path, name in names.items()}


def test_the_default_settings_need_no_drop_in() -> None:
    """The unit needs no drop-in, because it allows everything that the default settings need."""
    assert set(units.drop_ins(Settings(data_dir=systemd.DATA_DIR)).values()) == {""}


def test_a_drop_in_allows_what_the_settings_need(tmp_path: Path) -> None:
    """For a port below 1024, the drop-in adds a capability. For a data directory, database or decisions file in another
    place, it makes that place writable.
    """
    bind = "CapabilityBoundingSet=CAP_NET_BIND_SERVICE\nAmbientCapabilities=CAP_NET_BIND_SERVICE\n"
    assert drop_ins_of(tmp_path, 'data_dir="/var/lib/sallyport"\nhttp_bind = "0.0.0.0:443"') == {
        systemd.UNIT: bind,
        systemd.BACKUP_UNIT: "",
    }
    people = 'people_bind = "0.0.0.0:443"\npublic_url = "https://sallyport.example.org"'
    assert drop_ins_of(tmp_path, people)[systemd.UNIT] == bind
    elsewhere = 'data_dir="/srv/s p"\ndatabase = "/db/x.db"\nevent_outlets = "file:///var/log/s/x.jsonl udp://[::1]:1"'
    paths = 'ReadWritePaths=-"/srv/s p"\nReadWritePaths=-/db\nReadWritePaths=-/var/log/s\n'
    assert drop_ins_of(tmp_path, elsewhere) == {systemd.UNIT: paths, systemd.BACKUP_UNIT: paths}
    assert (
        drop_ins_of(tmp_path, 'data_dir = "here"')[systemd.UNIT] == ""
    )  # relative to the working directory of the unit


def test_the_socket_unit_has_the_addresses_of_the_settings() -> None:
    """With other addresses than the default, the drop-in replaces those of the unit. Each worker has its own UDP
    socket."""
    settings = Settings(
        data_dir=systemd.DATA_DIR,
        database="postgresql://db/sallyport",
        radius_acct_bind="",
        radsec_bind="[::]:2083",
        http_bind="127.0.0.1:0",
        workers=2,
    )
    text = units.drop_ins(settings)[units.drop_in_path(systemd.SOCKET)]
    assert text.partition("[Socket]\n")[2].splitlines() == [
        "ListenStream=",
        *["ListenDatagram=0.0.0.0:1812"] * 2,
        *["ListenDatagram=[::]:1812"] * 2,
        "ListenStream=[::]:2083",
        "ReusePort=yes",
    ]


def test_a_drop_in_waits_for_postgresql() -> None:
    """With PostgreSQL, the service starts after a server on the same machine, and systemd does not give up while the
    database is away."""
    settings = Settings(data_dir=systemd.DATA_DIR, database="postgresql://sallyport@db.example.com/sallyport")
    text = units.drop_ins(settings)[units.drop_in_path(systemd.UNIT)]
    assert text.endswith("\n[Unit]\nAfter=postgresql.service\nStartLimitIntervalSec=0\n")
    low = settings.model_copy(update={"http_bind": Address("0.0.0.0", 443)})
    text = units.drop_ins(low)[units.drop_in_path(systemd.UNIT)]
    assert "[Unit]\nAfter=postgresql.service\nStartLimitIntervalSec=0\n[Service]\nCapabilityBoundingSet=" in text


def test_the_files_of_a_database_url() -> None:
    """`server install` finds each file that the URL of a database names. A relative path is below the working directory
    of the service."""
    url = "postgresql://sallyport@a,b/s?sslmode=verify-full&passfile=%2Fetc%2Fsallyport%2Fpgpass&sslkey=c.key&sslrootcert="
    settings = Settings(data_dir=systemd.DATA_DIR, database=url + "/etc/db.pem")
    passfile, root = Path("/etc/sallyport/pgpass"), Path("/etc/db.pem")
    found = [("passfile", passfile), ("sslkey", systemd.DATA_DIR / "c.key"), ("sslrootcert", root)]
    assert list(units.database_files(settings)) == found
    assert ("database, passfile", passfile) in units.read_paths(settings)
    assert list(units.database_files(Settings(data_dir=systemd.DATA_DIR, database=url + "system"))) == found[:2]
    assert list(units.database_files(Settings(data_dir=systemd.DATA_DIR))) == []


@verifies
@pytest.mark.peer
def test_systemd_accepts_the_drop_ins(tmp_path: Path) -> None:
    """`systemd-analyze verify` accepts the service with each of the drop-ins."""
    unit = in_place(DEPLOY / "systemd" / systemd.UNIT, tmp_path)
    settings = Settings(data_dir=Path("/srv/s p%"), http_bind="127.0.0.1:80", database="postgresql://db/sallyport")
    drop_in = tmp_path / f"{systemd.UNIT}.d" / units.DROP_IN
    drop_in.parent.mkdir()
    drop_in.write_text(units.drop_ins(settings)[units.drop_in_path(systemd.UNIT)])
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert not [line for line in done.stderr.splitlines() if systemd.UNIT in line], done.stderr
