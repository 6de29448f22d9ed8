"""`sallyport db`: backups, restores and key rotation while the service runs."""

import json
import stat
import time
from pathlib import Path

import pytest
from pyotp import TOTP

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.cli import SECRET, TENANT, Service, add_client, add_domain, add_user
from tests.peers.postgres import database_in, needs_postgres
from tests.radius_client import RadiusClient
from tests.running_service import RunningService, running_service


def domains(service: RunningService) -> set[str]:
    """Return the names of the domains."""
    return set(service.domains())


def test_a_backup_is_private_and_names_the_master_key(service: Service) -> None:
    """A backup has mode 0600 and does not contain the master key. The command prints where the key is."""
    output = service.ok("db", "backup", "copy.db")
    path, key = service.directory / "copy.db", service.data_dir / "master.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert str(key) in output
    octets = path.read_bytes()
    assert key.read_text().strip().encode() not in octets
    assert bytes.fromhex(key.read_text()) not in octets


def test_a_restore_applies_at_once(service: Service) -> None:
    """After a restore, the next command and the next login use the data of the backup. Later changes are gone."""
    add_client(service, "gate", "127.0.0.1", "default")
    add_user(service, "default", "ann")
    service.ok("db", "backup", "before.db")
    add_domain(service, "later")
    service.remove_user("ann")
    with RadiusClient(service.ports.auth, SECRET) as client:
        assert client.login("ann", "hello") == ACCESS_REJECT
        restored = service.cli("db", "restore", "before.db", "--yes")
        assert (restored.returncode, restored.stdout) == (0, "")
        assert client.login("ann", "hello") == ACCESS_ACCEPT
    assert "later" not in domains(service)


def test_a_rotated_key_applies_at_once_and_after_a_restart(tmp_path: Path) -> None:
    """Logins work with the new key at once and after a restart. The old key is kept in a file beside it. An older
    backup can be restored after that key has been added.
    """
    with running_service(tmp_path) as service:
        add_client(service, "gate", "127.0.0.1", "default")
        add_user(service, "default", "ann")
        service.ok("db", "backup", "before.db")
        key = service.data_dir / "master.key"
        old = key.read_text().strip()
        assert "version 2" in service.ok("db", "rotate-key")
        assert key.read_text().startswith("2:") and old not in key.read_text()
        assert (service.data_dir / "master.key.1").read_text() == f"1:{old}\n"
        with RadiusClient(service.ports.auth, SECRET) as client:
            assert client.login("ann", "hello") == ACCESS_ACCEPT
        remedy = f"version 1 of the master key, which {key} does not have: add the line in {key}.1 to {key}"
        refused = service.cli("db", "restore", "before.db", "--yes")  # the process still has the old key
        assert refused.returncode == 1 and remedy in refused.stderr
        service.stop()
        refused = service.cli("db", "restore", "before.db", "--yes")
        assert refused.returncode == 1 and remedy in refused.stderr
        service.start()
        with RadiusClient(service.ports.auth, SECRET) as client:
            assert client.login("ann", "hello") == ACCESS_ACCEPT
        refused = service.cli("db", "restore", "before.db", "--yes")
        assert refused.returncode == 1 and remedy in refused.stderr
        service.stop()
        key.write_text(key.read_text() + (service.data_dir / "master.key.1").read_text())
        service.start()
        restored = service.cli("db", "restore", "before.db", "--yes")
        assert restored.returncode == 0, restored.stderr
        assert "version 2" in service.ok("db", "rotate-key")
        with RadiusClient(service.ports.auth, SECRET) as client:
            assert client.login("ann", "hello") == ACCESS_ACCEPT


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_a_restore_asks_for_confirmation(service: Service, answer: str) -> None:
    """If the question is not answered with yes, the exit status is 1 and nothing is changed."""
    service.ok("db", "backup", "asked.db", "--overwrite")
    if "kept" not in domains(service):
        add_domain(service, "kept")
    refused = service.cli("db", "restore", "asked.db", input=answer)
    assert refused.returncode == 1
    assert "sallyport: nothing was " in refused.stderr
    assert "kept" in domains(service)


def test_a_confirmed_restore_replaces_the_data(service: Service) -> None:
    """The answer y confirms the restore. Whether to revoke the tokens is a separate question."""
    service.ok("db", "backup", "yes.db")
    add_domain(service, "dropped")
    service.ok("db", "restore", "yes.db", input="y\nn\n")
    assert "dropped" not in domains(service)


def test_invalid_backup_files_are_refused(service: Service) -> None:
    """A file that is not a backup, a missing file, and a target that cannot be written are refused. Nothing is
    changed.
    """
    (service.directory / "junk.db").write_bytes(b"junk" * 4096)
    assert service.cli("db", "restore", "junk.db", "--yes").returncode == 1
    assert service.cli("db", "restore", "missing.db", "--yes").returncode == 2
    assert service.cli("db", "backup", "no/such/place.db").returncode == 2
    assert "default" in domains(service)


def test_a_backup_neither_replaces_a_file_nor_becomes_a_missing_directory(service: Service) -> None:
    """An existing file is kept, unless --overwrite is given. A new name without an ending is that of a directory."""
    service.ok("db", "backup", "kept.db")
    before = (service.directory / "kept.db").read_bytes()
    add_domain(service, "after the backup")
    refused = service.cli("db", "backup", "kept.db")
    assert refused.returncode == 1 and "kept.db exists: name another file, or replace it with" in refused.stderr
    assert (service.directory / "kept.db").read_bytes() == before
    service.ok("db", "backup", "kept.db", "--overwrite")
    assert (service.directory / "kept.db").read_bytes() != before
    assert service.cli("db", "backup", "forgotten").returncode == 2
    assert not (service.directory / "forgotten").exists()
    (service.directory / "plain").write_bytes(b"")
    service.ok("db", "backup", "plain", "--overwrite")
    assert (service.directory / "plain").read_bytes()


def test_migrate_backup_and_restore_work_without_a_service(stopped: RunningService) -> None:
    """`migrate` creates the database and prints the path of the file with its token. A service that is started after a
    restore has the restored data.
    """
    made = stopped.cli("db", "migrate")
    assert made.returncode == 0
    assert "schema" in made.stdout
    assert made.stderr == f"the access token of the first start is in {stopped.data_dir / 'admin.token'}\n"
    stopped.ok("db", "backup", "empty.db")
    stopped.ok("domain", "add", "early", *TENANT)
    stopped.ok("db", "restore", "empty.db", "--yes")
    stopped.start()
    assert domains(stopped) == {"default"}


def test_keep_deletes_the_oldest_backups(service: Service) -> None:
    """Each backup in the directory has a name of its own. `--keep` needs a directory as target, and a directory as
    target needs `--keep`.
    """
    nightly = service.directory / "nightly"
    nightly.mkdir()
    for _ in range(3):
        service.ok("db", "backup", "nightly", "--keep", "2")
    assert len(list(nightly.iterdir())) == 2
    assert service.cli("db", "backup", "nightly").returncode == 2
    assert service.cli("db", "backup", "one.db", "--keep", "2").returncode == 2


def test_a_restore_voids_used_codes_and_pending_enrolments(service: Service) -> None:
    """A one-time code that was used before the restore is not accepted again. Pending enrolments are deleted."""
    add_user(service, "default", "tess")
    add_user(service, "default", "theo")
    seed = service.enrol_totp("tess")
    now = time.time()
    service.confirm_totp("tess", TOTP(seed).at(now - 30))
    service.enrol_totp("theo")
    service.ok("db", "backup", "codes.db")
    service.ok("db", "restore", "codes.db", "--yes")
    steps = "select motp_step from endpoint_users where name = 'tess'"
    assert service.rows(steps)[0][0] > now // 30
    assert service.rows("select count(*) from totp_enrolments") == [(0,)]


def test_a_restore_can_revoke_tokens_and_keys(service: Service) -> None:
    """If confirmed, all access tokens and enrolment keys of the backup are revoked. The command line can create new
    ones.
    """
    service.ok("agent", "key", "create", "--org", "1", "--tenant", "1", "--domain", "default", "--key-only")
    token = service.ok("token", "create", "--org", "1", "--tenant", "1", "--name", "kept")
    service.ok("db", "backup", "tokens.db")
    service.ok("db", "restore", "tokens.db", "--yes")
    body = {"orgId": 1, "tenantId": 1}
    assert service.post("/ad/GetAllDomains", body, token=token)
    service.ok("db", "restore", "tokens.db", input="y\ny\n")
    service.post("/ad/GetAllDomains", body, token=token, status=401)
    keys = json.loads(service.ok("agent", "key", "list", "--domain", "default", "--json"))
    assert [each["status"] for each in keys] == ["revoked"]
    fresh = service.ok("token", "create", "--org", "1", "--tenant", "1", "--name", "fresh")
    assert service.post("/ad/GetAllDomains", body, token=fresh)


@needs_postgres
def test_an_installation_moves_to_postgres_and_back(tmp_path: Path) -> None:
    """Users and RADIUS clients work on the other database engine with the same master key. A copy never changes a
    target that exists.
    """
    (tmp_path / "database").mkdir()
    url = database_in(tmp_path / "database", is_empty=True)
    service = RunningService(tmp_path, {"SALLYPORT_DATABASE": None})
    try:
        service.start()
        add_client(service, "gate", "127.0.0.1", "default")
        add_user(service, "default", "ann")
        service.stop()
        assert "rows copied; now set `database`" in service.ok("db", "copy", url)
        assert "already contains a store" in service.cli("db", "copy", url).stderr
        for database in (url, str(tmp_path / "back.db")):
            moved = RunningService(tmp_path, {"SALLYPORT_DATABASE": database})
            try:
                moved.start()
                with RadiusClient(moved.ports.auth, SECRET) as client:
                    assert client.login("ann", "hello") == ACCESS_ACCEPT
                moved.stop()
                if database == url:
                    assert "now set `database` to the file" in moved.ok("db", "copy", "back.db")
                    assert "back.db exists" in moved.cli("db", "copy", "back.db").stderr
            finally:
                moved.kill()
    finally:
        service.kill()
