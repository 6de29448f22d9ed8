"""Tests of `serve`: its start with addresses that are in use or with wrong settings, and its stop with pending second
factors."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import trio

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from sallyport.service.serve import serve
from sallyport.settings.listening import process_name
from sallyport.settings.settings import Settings
from tests.peers.hook import Hook
from tests.running_service import RunningService, refusal, running_service

SECRET = "a secret of the tests"
SCOPE = {"orgId": 1, "tenantId": 1, "domainId": 1}


def enforce(service: RunningService, hook: Hook, fallback: str) -> None:
    """Add a client and the user ann. Set the domain to enforce, with the hook as the second factor."""
    service.add_client("here", "127.0.0.1", SECRET)
    service.add_user("ann", b"hello")
    service.post("/ad/SetMFAProvider", {**SCOPE, "provider": "webhook", **hook.fields})
    mode = {"enforcementMode": "enforce", "fallbackAction": fallback}
    service.post("/ad/updateDomainEnforcement", {**SCOPE, **mode})


@pytest.mark.parametrize(("fallback", "code"), [("deny", ACCESS_REJECT), ("allow", ACCESS_ACCEPT)])
def test_a_pending_login_is_answered_at_sigterm(tmp_path: Path, fallback: str, code: int) -> None:
    """At SIGTERM the fallback decides a pending login, and the event has the reason. The process ends by itself."""
    with Hook() as hook, running_service(tmp_path, {"SALLYPORT_DRAIN_S": "0"}, fresh=True) as service:
        enforce(service, hook, fallback)
        with service.radius(SECRET) as device:
            request = device.packet("ann", "hello")
            device.send(request)
            hook.wait_for_prompt("ann")
            assert service.stop() == 0
            assert device.receive(request)[0] == code
        (reason,) = service.rows("select reason from events order by id desc limit 1")[0]
        assert reason == "the service was stopped before the second factor was answered"


def test_an_approval_during_the_drain_is_accepted(tmp_path: Path) -> None:
    """An approval during the drain is accepted, and the drain ends when no login is pending."""
    with Hook() as hook, running_service(tmp_path, {"SALLYPORT_DRAIN_S": "60"}) as service:
        enforce(service, hook, "deny")
        with service.radius(SECRET) as device:
            request = device.packet("ann", "hello")
            device.send(request)
            hook.wait_for_prompt("ann")
            hook.will("ann", "approved", after_s=1)
            assert service.stop() == 0  # long before the sixty seconds are over
            assert device.receive(request)[0] == ACCESS_ACCEPT


def make_certificate(service: RunningService) -> None:
    """Create a store and a certificate for RadSec, for a service that is not running."""
    service.ok("db", "migrate")
    service.ok("cert", "init", "--host", "radius.example.org")


@contextmanager
def held(kind: socket.SocketKind) -> Iterator[str]:
    """Yield an address of 127.0.0.1 that another socket uses."""
    with socket.socket(socket.AF_INET, kind) as other:
        other.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            other.listen()
        yield f"127.0.0.1:{other.getsockname()[1]}"


@pytest.mark.parametrize(
    ("setting", "kind"),
    [
        ("radius_auth_bind", socket.SOCK_DGRAM),
        ("radius_acct_bind", socket.SOCK_DGRAM),
        ("radsec_bind", socket.SOCK_STREAM),
        ("http_bind", socket.SOCK_STREAM),
        ("metrics_bind", socket.SOCK_STREAM),
        ("people_bind", socket.SOCK_STREAM),
    ],
)
def test_an_address_in_use_names_setting_and_process(tmp_path: Path, setting: str, kind: socket.SocketKind) -> None:
    """`serve` exits with status 1 and creates no data directory.

    Its last line contains the setting, the address and the process that uses it.
    """
    with ExitStack() as ends:
        address = ends.enter_context(held(kind))
        public = "https://sallyport.example.org"
        service = RunningService(tmp_path, {f"SALLYPORT_{setting.upper()}": address, "SALLYPORT_PUBLIC_URL": public})
        ends.callback(service.kill)
        if setting == "radsec_bind":
            make_certificate(service)
        done = service.cli("serve")
    assert done.returncode == 1
    protocol = "UDP" if kind == socket.SOCK_DGRAM else "TCP"
    assert refusal(done) == (
        f"setting {setting}: cannot listen on {address} ({protocol}): in use by "
        f"{process_name(os.getpid())}; stop it, or change SALLYPORT_{setting.upper()}"
    )
    assert service.data_dir.exists() is (setting == "radsec_bind")


def test_one_address_of_two_settings_is_reported(tmp_path: Path) -> None:
    """`serve` names the second of two conflicting settings and creates no data directory."""
    with held(socket.SOCK_STREAM) as address:
        pass
    service = RunningService(tmp_path, {"SALLYPORT_HTTP_BIND": address, "SALLYPORT_METRICS_BIND": address})
    done = service.cli("serve")
    assert done.returncode == 1
    assert refusal(done).endswith("another setting of this service has the same address; change SALLYPORT_METRICS_BIND")
    assert not service.data_dir.exists()


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        pytest.param("radsec_bind", "127.0.0.1:0", "RadSec has no certificate", id="RadSec without a certificate"),
        pytest.param("dictionaries", "absent", "absent: No such file", id="dictionaries that do not exist"),
        pytest.param("tls_certificate", "server.pem", "go together", id="certificate without a key"),
        pytest.param("master_key", "short", "master key", id="malformed master key"),
        pytest.param("event_days", "many", "event_days", id="value that is no number"),
    ],
)
def test_a_failed_first_start_leaves_no_directory(tmp_path: Path, setting: str, value: str, message: str) -> None:
    """`serve` exits with one line of the log that contains the cause. Neither the data directory nor its new parents
    exist."""
    service = RunningService(tmp_path, {f"SALLYPORT_{setting.upper()}": value})
    service.data_dir = tmp_path / "new" / "data"
    done = service.cli("serve")
    assert done.returncode == 1
    assert message in refusal(done)
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("reason", ["directory", "store"])
def test_a_failed_start_removes_nothing_that_may_be_in_use(tmp_path: Path, reason: str) -> None:
    """An existing data directory is kept. The master key of a store in another directory is kept too."""
    settings: dict[str, str | None] = {"SALLYPORT_RADSEC_BIND": "127.0.0.1:0"}
    if reason == "store":
        settings["SALLYPORT_DATABASE"] = str(tmp_path / "elsewhere.db")
    service = RunningService(tmp_path, settings)
    if reason == "directory":
        service.data_dir.mkdir(mode=0o700)
    assert service.cli("serve").returncode == 1
    assert (service.data_dir / "master.key").exists()
    make_certificate(service)
    service.start()
    assert service.stop() == 0


def test_a_control_socket_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    """`serve` exits with one line that contains the path and the setting."""
    service = RunningService(tmp_path)
    (service.data_dir / "control.sock").mkdir(parents=True)
    done = service.cli("serve")
    assert done.returncode == 1
    last = refusal(done)
    assert last.startswith(f"cannot make the control socket {service.data_dir / 'control.sock'}: Is a dir")
    assert "set SALLYPORT_DATA_DIR" in last


async def test_radsec_needs_no_udp_listener(tmp_path: Path) -> None:
    make_certificate(RunningService(tmp_path))
    no_udp = dict.fromkeys(("radius_auth_bind", "radius_acct_bind"), "")
    addresses = no_udp | dict.fromkeys(("radsec_bind", "http_bind"), "127.0.0.1:0")
    settings = Settings.model_validate({"data_dir": tmp_path / "data", "disk_reserve_mib": 0, **addresses})
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        bound = await nursery.start(serve, settings, {}, stop)
        assert (len(bound.radsec), bound.radius_auth, bound.radius_acct) == (1, [], [])
        stop.set()
