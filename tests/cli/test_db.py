"""`sallyport db`: copies of the database while it is in use."""

import json
import stat
import time
from pathlib import Path

import pytest
from pyotp import TOTP

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.cli import SECRET, TENANT, Service, add_client, add_domain, add_user
from tests.radius_client import RadiusClient
from tests.service import RunningService, running_service


def domains(service: RunningService) -> set[str]:
    """The names of the domains."""
    return set(service.domains())


def test_a_backup_is_private_and_names_the_master_key(service: Service) -> None:
    """Mode 0600, at the path as seen from here; the key is not in it, and where it lies is told."""
    said = service.ok("db", "backup", "copy.db")
    path, key = service.directory / "copy.db", service.data_dir / "master.key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert str(key) in said
    octets = path.read_bytes()
    assert key.read_text().strip().encode() not in octets
    assert bytes.fromhex(key.read_text()) not in octets


def test_a_restore_holds_at_once(service: Service) -> None:
    """What came after the backup is gone for the next command and the next login; what was there is back."""
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


def test_a_rotated_key_holds_at_once_and_after_a_restart(tmp_path: Path) -> None:
    """Logins go on under the new key, also after a restart; the old one lies beside it, and a backup of before comes
    back with its line added."""
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
        service.stop()
        service.start()
        with RadiusClient(service.ports.auth, SECRET) as client:
            assert client.login("ann", "hello") == ACCESS_ACCEPT
        refused = service.cli("db", "restore", "before.db", "--yes")
        assert refused.returncode == 1 and "key version" in refused.stderr
        service.stop()
        key.write_text(key.read_text() + (service.data_dir / "master.key.1").read_text())
        service.start()
        restored = service.cli("db", "restore", "before.db", "--yes")
        assert restored.returncode == 0, restored.stderr
        assert "version 2" in service.ok("db", "rotate-key")
        with RadiusClient(service.ports.auth, SECRET) as client:
            assert client.login("ann", "hello") == ACCESS_ACCEPT


@pytest.mark.parametrize("answer", ["n\n", "\n", ""])
def test_a_restore_asks_first(service: Service, answer: str) -> None:
    """Anything but yes changes nothing and ends with 1."""
    service.ok("db", "backup", "asked.db")
    if "kept" not in domains(service):
        add_domain(service, "kept")
    refused = service.cli("db", "restore", "asked.db", input=answer)
    assert refused.returncode == 1
    assert "sallyport: nothing was " in refused.stderr
    assert "kept" in domains(service)


def test_a_restore_goes_on_after_yes(service: Service) -> None:
    """The answer y is enough; tokens are asked about apart."""
    service.ok("db", "backup", "yes.db")
    add_domain(service, "dropped")
    service.ok("db", "restore", "yes.db", input="y\nn\n")
    assert "dropped" not in domains(service)


def test_what_is_no_backup_is_refused(service: Service) -> None:
    """A file that is none, or a place that cannot be written, is told and changes nothing."""
    (service.directory / "junk.db").write_bytes(b"junk" * 4096)
    assert service.cli("db", "restore", "junk.db", "--yes").returncode == 1
    assert service.cli("db", "restore", "missing.db", "--yes").returncode == 2
    assert service.cli("db", "backup", "no/such/place.db").returncode == 1
    assert "default" in domains(service)


def test_without_a_service(stopped: RunningService) -> None:
    """Migrate makes the database and names the file with its token; backup and restore work on it; the running service
    has what was restored."""
    made = stopped.cli("db", "migrate")
    assert made.returncode == 0
    assert "schema" in made.stdout
    assert made.stderr == f"the access token of the first start is in {stopped.data_dir / 'admin.token'}\n"
    stopped.ok("db", "backup", "empty.db")
    stopped.ok("domain", "add", "early", *TENANT)
    stopped.ok("db", "restore", "empty.db", "--yes")
    stopped.start()
    assert domains(stopped) == {"default"}


def test_a_directory_keeps_the_newest(service: Service) -> None:
    """`--keep` gives each backup a name of its own and deletes the oldest; it and a directory go together."""
    nightly = service.directory / "nightly"
    nightly.mkdir()
    for _ in range(3):
        service.ok("db", "backup", "nightly", "--keep", "2")
    assert len(list(nightly.iterdir())) == 2
    assert service.cli("db", "backup", "nightly").returncode == 2
    assert service.cli("db", "backup", "one.db", "--keep", "2").returncode == 2


def test_a_restore_voids_codes_and_enrolments(service: Service) -> None:
    """A code that was spent after the backup does not count again, and an enrolment does not wait again."""
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


def test_a_restore_can_revoke_the_tokens(service: Service) -> None:
    """Those of the backup end, whoever had them, and the enrolment keys; the command line makes new ones."""
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
