"""Tests of the reload of the settings: at SIGHUP, and by `sallyport server reload`."""

import json
import os
import signal
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_network
from pathlib import Path
from typing import Final

import pytest
import trio

from sallyport.areas.events.outlets.transport import parse_target
from sallyport.base import log as logs
from sallyport.base.clock import SECOND
from sallyport.base.errors import ConfigError, LimitReached, StoreError
from sallyport.host.notify import Notifier
from sallyport.service.app import App
from sallyport.service.installation import CertificatesArea
from sallyport.service.reload import Reloads, reload
from sallyport.settings.identity_provider import GroupRole, IdentityProvider
from sallyport.settings.mail import MailServer
from sallyport.settings.restart import REASONS
from sallyport.settings.settings import EAP_FILES, LIVE, TLS_FILES, Settings, load
from sallyport.web.server import Tls
from tests.areas import Areas
from tests.areas.configuration.test_slices import MANY, begin, clients
from tests.areas.mfa.certificates import self_signed
from tests.running_service import RunningService, running_service
from tests.service.test_supervise import manager, next_message

WAIT_S = 30.0
HOUR = 3600 * SECOND
PROVIDER: Final = IdentityProvider(
    title="Corp",
    issuer="https://id.example.com",
    client_id="sallyport",
    client_secret_env="OIDC_SECRET",
    roles=(GroupRole(group="admins", role="installation"),),
)
MAIL: Final = {
    "smtp_host": "mail.example.com",
    "smtp_port": 2525,
    "smtp_tls": "tls",
    "smtp_user": "ann",
    "smtp_password_file": Path("/etc/smtp"),
    "smtp_from": "sallyport@example.com",
}
KEY: Final = {"profile_certificate": Path("/etc/profile.pem"), "profile_key": Path("/etc/profile.key")}
APPLIED: Final[dict[str, tuple[dict[str, object], Callable[[App], object], object]]] = {
    "sessions of the console": (
        {"console_idle_minutes": 7, "console_hours": 3},
        lambda app: (app.signin.sessions.idle_us, app.signin.sign_ins.longest_us),
        (7 * 60 * SECOND, 3 * HOUR),
    ),
    "identity providers": (
        {"identity_providers": {"corp": PROVIDER}},
        lambda app: app.signin.open_id.titles(),
        [("corp", "Corp")],
    ),
    "mail": (MAIL, lambda app: app.parts.mail._server, MailServer(*MAIL.values())),
    "proxies": (
        {"trusted_proxies": (ip_network("192.0.2.0/24"),)},
        lambda app: app.proxies,
        [ip_network("192.0.2.0/24")],
    ),
    "egress": (
        {"egress": (ip_network("127.0.0.1/32"),)},
        lambda app: [app.parts.http.of(1).egress.allows(each) for each in ("127.0.0.1", "127.0.0.2", "192.0.2.1")],
        [True, False, False],
    ),
    "hosts of did:web": (
        {"did_web_hosts": ("ID.example.org",)},
        lambda app: app.did.resolver._hosts,
        frozenset({"id.example.org"}),
    ),
    "key of profiles": (KEY, lambda app: app.profiles._signer._files, (*KEY.values(),)),
    "folder of files": ({"apply": Path("/etc/x")}, lambda app: app.configured.startup._folder, Path("/etc/x")),
    "end of the service": ({"drain_s": 33.0}, lambda app: app.parts.settings.drain_s, 33.0),
    "lock-outs": (
        {"lockout_failures": 5, "lockout_minutes": 2},
        lambda app: {(each.limit, each.lock_us) for each in app.lockouts.service._tables},
        {(5, 120 * SECOND)},
    ),
    "links": (
        {"enrolment_link_hours": 9},
        lambda app: (app.me.links.life_us, app.me.mailing.life_us, app.users.seeds.life_us),
        (9 * HOUR,) * 3,
    ),
    "disk": ({"disk_warning_mib": 9}, lambda app: app.parts.settings.disk_warning_mib, 9),
    "retention": (
        {"event_days": 8, "event_limit_mib": 2, "audit_days": 9},
        lambda app: (app.events.retention.days, app.events.retention.limit, app.audit.retention.days),
        (8, 2 << 20, 9),
    ),
    "log": (
        {"log_level": "error", "log_levels": {"login": "debug"}, "log_logins": False},
        lambda app: (logs.level(), logs.is_silent("debug"), app.events.login_log.is_on),
        ("error", False, False),
    ),
    "form of the log": ({"log_format": "text"}, lambda _app: len(logs._processors), 6),
    "names in the log": ({"log_identities": "hashed"}, lambda _app: logs.pseudonyms() is not None, True),
    "URL of DIDs": (
        {"did_url": "https://did.example.org"},
        lambda app: app.did.dids._base(),
        "https://did.example.org",
    ),
    "metrics by tag": ({"metrics_tag": "site"}, lambda app: app.login.metrics.tag_key, "site"),
    "program of winbind": (
        {"ntlm_auth": Path("/opt/ntlm_auth")},
        lambda app: app.login._winbind.program,
        Path("/opt/ntlm_auth"),
    ),
    "delay of rejects": ({"reject_delay_s": 2.5}, lambda app: app.parts.settings.reject_delay_s, 2.5),
    "waiting requests": (
        {"max_waiting_requests": 40},
        lambda app: (app.login.slots.proven.free, app.login.slots.unproven.limit),
        (30, 10),
    ),
    "spool": (  # which only PostgreSQL has
        {"accounting_spool_mib": 3},
        lambda app: 3 << 20 if app.login.spool is None else app.login.spool.limit,
        3 << 20,
    ),
    "outlets": (
        {"event_outlets": ("tcp://192.0.2.1:601",), "audit_outlets": False},
        lambda app: (app.events.outlets._targets, len(app.events.outlets._queues)),
        ((parse_target("tcp://192.0.2.1:601"),), 1),
    ),
}
"""By topic: the new values of settings, what the service then uses, and its expected value."""


def logged(service: RunningService, event: str, count: int = 1) -> list[dict[str, object]]:
    """Wait until the log has `count` lines of an event, and return these lines."""
    deadline = time.monotonic() + WAIT_S
    while True:
        lines = [json.loads(line) for line in service.log().splitlines() if line.startswith("{")]
        if len(found := [line for line in lines if line["event"] == event]) >= count:
            return found
        assert time.monotonic() < deadline, f"{event} is not in the log"
        time.sleep(0.05)


def test_each_setting_of_a_reload_is_tried() -> None:
    """No setting is of the type `Live` without a case below. Each other one has the reason for a restart."""
    assert {name for values, _, _ in APPLIED.values() for name in values} | TLS_FILES | EAP_FILES | {"limits"} == LIVE
    assert Settings.model_fields.keys() - LIVE == REASONS.keys() - TLS_FILES


@pytest.mark.parametrize("topic", APPLIED)
async def test_a_reload_applies_a_setting(areas: Areas, topic: str) -> None:
    """After a reload, the service uses the new value of each setting that a reload applies."""
    values, used, expected = APPLIED[topic]
    app, former, processors = areas.app, areas.settings, list(logs._processors)
    before = used(app)
    try:
        done = await reload(app, lambda: former.model_copy(update=values))
        assert set(done.applied) == values.keys()
        assert done.waiting == []
        assert used(app) == expected
    finally:
        await reload(app, lambda: former)
        logs._processors[:] = processors
    assert used(app) == before or topic == "egress"  # the clients of tests reach more than the settings allow


async def test_a_setting_that_needs_a_restart_waits(areas: Areas) -> None:
    """Its former value stays in force, and each reload names it until the restart."""
    wanted = areas.settings.model_copy(update={"workers": 3, "event_days": 5})
    first = await reload(areas.app, lambda: wanted)
    second = await reload(areas.app, lambda: wanted)
    assert (first.applied, first.waiting) == (["event_days"], ["workers"])
    assert (second.applied, second.waiting) == ([], ["workers"])
    assert (areas.parts.settings.workers, areas.parts.settings.event_days) == (1, 5)


async def test_systemd_shows_what_a_reload_has_changed(areas: Areas, tmp_path: Path) -> None:
    """The status names the applied settings, those that need a restart, and the reason of a failed reload."""
    with manager(tmp_path / "notify") as sock:
        wanted = areas.settings.model_copy(update={"workers": 3, "event_days": 5})
        reloads = Reloads(areas.app, Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")}), lambda: wanted)
        await reloads.reload()
        status = next_message(sock, "READY=1")["STATUS"]
        assert status == "every listener answers; reloaded event_days; a restart is needed for workers"
        wanted = areas.settings.model_copy(update={"event_outlets": ("tcp://h",)})
        with pytest.raises(ConfigError):
            await reloads.reload()
        assert "not reloaded: setting event_outlets: tcp:// requires a port" in next_message(sock, "READY=1")["STATUS"]


async def test_an_error_of_the_program_ends_one_reload_only(areas: Areas, tmp_path: Path) -> None:
    """systemd learns that the reload has ended, and the next one applies the settings."""
    wanted = areas.settings.model_copy(update={"event_days": 5})
    errors: list[Exception] = [LookupError("a mistake")]

    def read() -> Settings:
        if errors:
            raise errors.pop()
        return wanted

    with manager(tmp_path / "notify") as sock:
        reloads = Reloads(areas.app, Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify")}), read)
        send, receive = trio.open_memory_channel[None](2)
        async with trio.open_nursery() as nursery, send:
            nursery.start_soon(reloads.run, receive)
            for status in ("an error of the program has ended the reload", "reloaded event_days"):
                send.send_nowait(None)
                found = await trio.to_thread.run_sync(next_message, sock, "READY=1")
                assert found["STATUS"] == f"every listener answers; {status}"


def test_sighup_reloads_the_settings(tmp_path: Path) -> None:
    """A new log level applies at once.

    Settings that need a restart are named. If the file is broken, nothing is changed.
    """
    file = tmp_path / "sallyport.toml"
    file.write_text('log_level = "info"\n')
    with running_service(tmp_path, fresh=True) as service:
        file.write_text('log_level = "debug"\nevent_days = 7\nduplicate_window_s = 9\n')
        os.kill(service.process_id, signal.SIGHUP)
        (line,) = logged(service, "settings_reloaded")
        assert (line["log_level"], line["need_a_restart"]) == ("debug", ["duplicate_window_s"])
        assert line["applied"] == ["event_days", "log_level"]
        assert service.ok("log", "level") == "debug"
        file.write_text('log_level = "shout"\n')
        os.kill(service.process_id, signal.SIGHUP)
        (line,) = logged(service, "settings_not_reloaded")
        assert "shout" not in str(line)
        assert service.call("log.level") == "debug"


@pytest.mark.parametrize(
    ("text", "why"), [("[" * 9000, "nested too deeply"), ("9" * 9000, "too many digits")], ids=["nested", "digits"]
)
async def test_a_hostile_settings_file(areas: Areas, tmp_path: Path, text: str, why: str) -> None:
    """It changes nothing, and the error has the reason."""
    file, before = tmp_path / "sallyport.toml", areas.app.parts.settings
    file.write_text(f'log_level = "debug"\nevent_days = {text}\n')
    reloads = Reloads(areas.app, Notifier({}), lambda: load(file, {}))
    with pytest.raises(ConfigError, match=why):
        await reloads.reload()
    assert areas.app.parts.settings == before


async def test_a_reload_does_not_wait_for_an_apply(areas: Areas) -> None:
    """While the apply of a tenant is unfinished, new settings apply at once. The configuration is read at its end."""
    left = await begin(areas, clients())
    done = await reload(areas.app, lambda: areas.settings.model_copy(update={"event_days": 7}))
    assert (done.applied, areas.app.parts.settings.event_days) == (["event_days"], 7)
    assert not areas.clients.of_tenant(areas.tenant)
    for part in left[:-1]:
        await areas.store.write(part)
    await areas.configuration.change(left[-1])
    assert len(areas.clients.of_tenant(areas.tenant)) == MANY


async def test_a_failed_reload_applies_no_setting(areas: Areas) -> None:
    """If a certificate cannot be used, the new log level and the new limits do not apply either."""
    areas.app.tls = Tls(Path("/there/is/no.pem"), Path("/there/is/no.key"))
    before, limits = logs.level(), {**areas.settings.limits, "domains": 1}
    with pytest.raises(ConfigError, match="tls_certificate"):
        await reload(areas.app, lambda: areas.settings.model_copy(update={"log_level": "debug", "limits": limits}))
    assert logs.level() == before != "debug"
    sql = "select most from limits where name = 'domains'"
    assert await areas.store.read(lambda tx: tx.value(int, sql)) == areas.settings.limits["domains"]


async def test_a_failed_reload_keeps_the_certificate(areas: Areas, tmp_path: Path) -> None:
    """If the store cannot be read, new connections still get the former certificate. The next reload uses the new
    one."""
    context, chain = self_signed(tmp_path, "first")
    areas.app.tls = Tls(chain, chain.with_suffix(".key"))
    areas.app.tls.load(context)
    first = presented(context)
    _, other = self_signed(tmp_path, "second")
    for suffix in (".pem", ".key"):
        other.with_suffix(suffix).replace(chain.with_suffix(suffix))
    await areas.store.write(lambda tx: tx.execute("alter table config_version rename to away"))
    with pytest.raises(StoreError):
        await reload(areas.app, lambda: areas.settings)
    assert presented(context) == first
    await areas.store.write(lambda tx: tx.execute("alter table away rename to config_version"))
    await reload(areas.app, lambda: areas.settings)
    assert presented(context) != first


async def test_a_reload_uses_other_files_of_tls(areas: Areas, tmp_path: Path) -> None:
    """New connections get the certificate of the new path. TLS itself begins and ends at a restart only."""
    context, chain = self_signed(tmp_path, "first")
    _, other = self_signed(tmp_path, "second")
    first, second = (
        {"tls_certificate": path, "tls_key": path.with_suffix(".key"), "public_url": "https://s.example.org"}
        for path in (chain, other)
    )
    plain, app = areas.app.parts.settings, areas.app
    waiting = await reload(app, lambda: plain.model_copy(update=first))
    assert set(waiting.waiting) == first.keys()
    app.parts.settings = plain.model_copy(update=first)
    app.tls = Tls(chain, chain.with_suffix(".key"))
    app.tls.load(context)
    before = presented(context)
    try:
        done = await reload(app, lambda: plain.model_copy(update=second))
        assert (set(done.applied), done.waiting) == (TLS_FILES, [])
        assert presented(context) != before
        ended = await reload(app, lambda: plain.model_copy(update={"public_url": first["public_url"]}))
        assert (ended.applied, set(ended.waiting)) == ([], TLS_FILES)
        assert app.parts.settings.tls_certificate == other
    finally:
        app.parts.settings = plain


async def test_a_reload_uses_other_files_of_eap(areas: Areas, tmp_path: Path) -> None:
    """The next conversation uses the new files, and metrics and `cert list` name them. A file that EAP cannot use is
    refused, and the former files stay in use."""
    _, first = self_signed(tmp_path, "first")
    _, second = self_signed(tmp_path, "second")
    plain, app = areas.settings, areas.app
    (files,) = (area for area in app.areas if isinstance(area, CertificatesArea))

    def named(path: Path, key: Path) -> Settings:
        return plain.model_copy(update={"eap_certificate": path, "eap_key": key, "eap_ca": path})

    def used() -> Path | None:
        found = app.parts.certificates.server()
        return found and found.certificate_file

    without = used()
    try:
        done = await reload(app, lambda: named(first, first.with_suffix(".key")))
        assert (set(done.applied), done.waiting) == (EAP_FILES, [])
        assert used() == first
        for path, key, error in (
            (tmp_path / "none.pem", first.with_suffix(".key"), "none.pem does not exist"),
            (second, first.with_suffix(".key"), "first.key: the file"),
        ):
            with pytest.raises(ConfigError, match=error):
                await reload(app, lambda path=path, key=key: named(path, key))
            assert (used(), app.parts.settings.eap_certificate) == (first, first)
        await reload(app, lambda: named(second, second.with_suffix(".key")))
        assert used() == files._named_files()["eap_certificate"] == second
        assert ("eap",) in files._expiries.read()
    finally:
        await reload(app, lambda: plain)
    assert used() == without


async def test_a_reload_changes_the_limits_of_tenants(areas: Areas) -> None:
    """The store refuses from then on what the new limit does not allow."""
    former = areas.settings
    limits = {**former.limits, "domains": 1}
    done = await reload(areas.app, lambda: former.model_copy(update={"limits": limits}))
    assert done.applied == ["limits"]
    with pytest.raises(LimitReached):
        await areas.domains.add(areas.tenant, "beyond")
    await reload(areas.app, lambda: former)
    assert await areas.domains.add(areas.tenant, "within")


def presented(server: ssl.SSLContext) -> bytes:
    """Return the certificate that a client gets from a server's context."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    here, there = client.wrap_bio(to_client, to_server), server.wrap_bio(to_server, to_client, server_side=True)
    for side in (here, there, here):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return here.getpeercert(binary_form=True) or b""


def test_a_command_reloads_the_settings(tmp_path: Path) -> None:
    """It lists each changed setting. If the file is wrong it fails with the reason, and nothing is changed."""
    file = tmp_path / "sallyport.toml"
    file.write_text("event_days = 7\n")
    with running_service(tmp_path, fresh=True) as service:
        file.write_text("event_days = 8\nworkers = 1\nduplicate_window_s = 9\n")
        rows = json.loads(service.ok("server", "reload", "--json"))
        assert {row["setting"]: (row["state"], row["reason"]) for row in rows} == {
            "event_days": ("applied", ""),
            "duplicate_window_s": ("needs a restart", REASONS["duplicate_window_s"]),
        }
        assert REASONS["duplicate_window_s"] in service.ok("server", "reload")
        file.write_text("event_days = 0\n")
        done = service.cli("server", "reload")
        assert done.returncode == 1
        assert "event_days" in done.stderr
        assert {row["name"]: row["value"] for row in service.call("settings.show")}["event_days"] == "8"
    done = service.cli("server", "reload")
    assert (done.returncode, done.stdout) == (1, "")
