"""An installation that an earlier program has made, with the program of this tree: nothing is lost, and the earlier
program refuses what this program has changed. tests/deploy/earlier.py makes the stored installation.
"""

import json
import lzma
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from time import sleep

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.deploy.earlier import DATABASE, FACTS, KEY, PASSWORD, code_of, program_of
from tests.docs.commands import blocks
from tests.running_service import PROGRAM, RunningService
from tests.waiting import eventually

WITHOUT_SECOND_FACTOR = "bob"
SETTINGS = {"SALLYPORT_DATABASE": None, "SALLYPORT_EVENT_DAYS": "36500", "SALLYPORT_AUDIT_DAYS": "0"}
"""The service deletes no event, however long ago the installation was made."""
DOMAIN = {"orgId": 1, "tenantId": 1, "domainId": 1}
ENOUGH, TRIES = 20, 600  # logins before and after the upgrade; requests of one login
KEPT_FOR_A_TIME = {"_sqlite_migrations", "answers", "nodes", "sqlite_sequence"}
"""Tables whose rows are for minutes, or of the program itself."""


@pytest.fixture
def service(tmp_path: Path) -> RunningService:
    """Return the stored installation. It does not run."""
    found = RunningService(tmp_path, SETTINGS)
    found.data_dir.mkdir(mode=0o700)
    database(found).write_bytes(lzma.decompress(DATABASE.read_bytes()))
    (found.data_dir / "master.key").write_bytes(KEY.read_bytes())
    (found.data_dir / "master.key").chmod(0o600)
    return found


def database(service: RunningService) -> Path:
    """Return the path of the database."""
    return service.data_dir / "sallyport.db"


def counts(path: Path) -> dict[str, int]:
    """Return the number of rows of each table."""
    with closing(sqlite3.connect(path)) as connection:
        sql = "select name from sqlite_master where type = 'table' and sql not like '%using fts5%'"
        names = [name for (name,) in connection.execute(sql)]
        return {name: connection.execute(f'select count(*) from "{name}"').fetchone()[0] for name in names}  # noqa: S608


def test_nothing_is_lost_by_an_upgrade(service: RunningService) -> None:
    """The database has at least the rows that it had. Passwords, seeds of one-time codes, secrets and tokens work, and
    the mode is kept: a user without a second factor is refused.
    """
    facts, before = json.loads(FACTS.read_text(encoding="utf-8")), counts(database(service))
    assert before["events"] and before["endpoint_users"] == 2 and before["devices"] == 1
    service.start()
    try:
        with service.radius(facts["secret"]) as client:
            assert client.login("ann", PASSWORD + code_of(facts["otpauth"])) == ACCESS_ACCEPT
        with service.radius(facts["secret"]) as client:
            assert client.login(WITHOUT_SECOND_FACTOR, PASSWORD) == ACCESS_REJECT
        listed = service.post(
            "/network_device/ListDevices", {"orgId": 1, "tenantId": 1, "domainId": 1}, token=facts["token"]
        )
        assert listed["totalCount"] == before["devices"]
        levels = {each["check"]: each["level"] for each in json.loads(service.program("doctor", "--json").stdout)}
        assert levels["service"] == levels["master key"] == "ok"
        service.stop()
    finally:
        service.kill()
    after = counts(database(service))
    assert {name for name, count in before.items() if after.get(name, 0) < count} <= KEPT_FOR_A_TIME


def earlier_program(directory: Path) -> Path:
    """Return the command of the earlier program. Skip if git does not have its commit."""
    directory.mkdir()
    try:
        return program_of(json.loads(FACTS.read_text(encoding="utf-8"))["commit"], directory)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("git does not have the commit of the earlier program")


def test_no_login_is_lost_by_an_upgrade(service: RunningService, tmp_path: Path) -> None:
    """The steps of docs/install/upgrade.md under logins: a backup, another program at the same path, a restart, and the
    doctor. A NAS that repeats its request until it gets an answer gets one to each login, and each answer is stored.
    """
    ((backup,), *_) = blocks("docs/install/upgrade.md")
    facts, program = json.loads(FACTS.read_text(encoding="utf-8")), tmp_path / "sallyport"
    program.symlink_to(earlier_program(tmp_path / "old"))
    upgraded = RunningService(tmp_path, SETTINGS, program=program)
    upgraded.start()
    over, answers = Event(), list[int]()

    def log_in() -> None:
        while not over.is_set():
            answers.append(answer_of(upgraded, facts["secret"], str(len(answers))))

    try:
        assert upgraded.program("domain", "mode", "default", "monitor").returncode == 0
        stored = len(upgraded.rows("select id from events"))
        with ThreadPoolExecutor() as threads:
            nas = threads.submit(log_in)
            try:
                eventually(lambda: len(answers) > ENOUGH)
                assert upgraded.program(*backup.text.split()[1:]).returncode == 0
                program.unlink()
                program.symlink_to(PROGRAM)
                upgraded.stop()
                upgraded.start()
                before = len(answers)
                eventually(lambda: len(answers) > before + ENOUGH)
            finally:
                over.set()
            nas.result()
        assert set(answers) == {ACCESS_ACCEPT}
        assert json.loads(upgraded.program("doctor", "--json").stdout)
        upgraded.stop()
    finally:
        upgraded.kill()
    assert len(upgraded.rows("select id from events")) >= stored + len(answers)


def answer_of(service: RunningService, secret: str, station: str) -> int:
    """Log in as a NAS that repeats its request until it gets an answer, and return the code of the answer."""
    with service.radius(secret) as client:
        client.sock.settimeout(1.0)
        request = client.packet(WITHOUT_SECOND_FACTOR, PASSWORD, CALLING_STATION_ID=station.encode())
        for _ in range(TRIES):
            try:
                return client.exchange(request)[0]
            except (TimeoutError, ConnectionRefusedError):
                sleep(0.1)  # the interval of the NAS
    raise TimeoutError(f"no answer to the login from {station}")


def test_the_earlier_program_refuses_the_new_database(service: RunningService, tmp_path: Path) -> None:
    """It names the migrations that it does not know and changes nothing. A backup from before the upgrade brings the
    earlier program back.
    """
    facts = json.loads(FACTS.read_text(encoding="utf-8"))
    earlier = RunningService(tmp_path, SETTINGS, program=earlier_program(tmp_path / "old"))
    backup = database(service).read_bytes()
    assert service.program("db", "migrate").returncode == 0
    migrated = database(service).read_bytes()
    refused = earlier.program("serve")
    assert refused.returncode == 1
    assert "was written by a newer version of Sallyport" in refused.stderr
    assert database(service).read_bytes() == migrated
    (tmp_path / "before-upgrade.db").write_bytes(backup)
    database(service).rename(tmp_path / "moved-away.db")
    done = earlier.program("db", "restore", str(tmp_path / "before-upgrade.db"), "--yes")
    assert done.returncode == 0, done
    earlier.start()
    try:
        assert earlier.post("/network_device/ListDevices", DOMAIN, token=facts["token"])["totalCount"] == 1
        earlier.stop()
    finally:
        earlier.kill()
