"""Tests of the metrics for certificates in the configurations of domains, and for the clock."""

import json
import math
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from sallyport.areas.certificates.service import ServerCertificates
from sallyport.areas.domains.domain import Domain, FirstFactor
from sallyport.base.clock import SECOND, is_synchronized
from sallyport.certs.credentials import LOOK_S
from sallyport.certs.folder import CertificateFolder, present, read_certificates
from sallyport.service.certificates import in_shares
from tests.areas import Areas, areas, clock

__all__ = ["areas", "clock"]
DOMAINS = "sallyport_domain_certificate_expiry_timestamp_seconds"


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, float]:
    """Return an authority's certificate in PEM, and the time of its expiry."""
    directory = CertificateFolder(tmp_path_factory.mktemp("authority"))
    directory.make("Tests CA", ["radius.example.org"], present())
    return directory.ca_pem(), read_certificates(directory.ca)[0].not_valid_after_utc.timestamp()


async def test_a_directory_s_certificate(areas: Areas, authority: tuple[str, float]) -> None:
    """The expiry of a directory's authority is exported by domain."""
    settings = json.dumps({"baseDN": "dc=x", "caCertificate": authority[0]})
    sql = (
        "insert into directories (domain_id, name, name_key, kind, account_name, app_url, settings, created_at, "
        "updated_at) values (:d, 'hq', 'hq', 'ldap', '', '', :settings, 0, 0)"
    )
    await areas.store.write(lambda tx: tx.execute(sql, d=areas.domain, settings=settings))
    await areas.app.certificate_files.watch.look()
    assert areas.sample(DOMAINS, domain=str(areas.domain), use="directory") == authority[1]


async def test_a_first_factor_s_certificate(areas: Areas, authority: tuple[str, float]) -> None:
    """The expiry of the authority of a domain's LDAP servers is exported, and ends when the certificate is removed."""
    domain = areas.domains.table.by_id[areas.domain]
    ldap = {"servers": ["ldaps://ldap.example.org"], "baseDN": "dc=x"}
    await areas.first_settings.set(domain, FirstFactor.LDAP, {"ldap": {**ldap, "caCertificate": authority[0]}})
    await areas.app.certificate_files.watch.look()
    assert areas.sample(DOMAINS, domain=str(areas.domain), use="first_factor") == authority[1]
    await areas.first_settings.set(domain, FirstFactor.LDAP, {"ldap": ldap})
    await areas.app.certificate_files.watch.look()
    assert not areas.sample(DOMAINS, domain=str(areas.domain), use="first_factor")


async def test_the_server_certificate_of_a_domain(areas: Areas, tmp_path: Path) -> None:
    """The first expiry of a domain's server certificates is exported. The tenant's audit trail and the log have each
    that expires soon, once for 30, 7, 1 and 0 days, also after a restart. A new certificate is told again."""
    domain, service = areas.domains.table.by_id[areas.domain], areas.app.server_certificates.service
    folder = CertificateFolder(tmp_path)
    folder.make("Tests CA", ["radius.example.org"], present())
    pair = (folder.server.read_text(), folder.server_key.read_text())
    await service.set(domain, "", *pair)
    ends = read_certificates(folder.server)[0].not_valid_after_utc.timestamp()
    again = ServerCertificates(areas.configuration, areas.app.parts.vault, areas.clock)
    await areas.configuration.reload()
    logged = list[tuple[str, int]]()
    for days in (31, 30, 29, 7, 6, 1, 0, -1):
        areas.clock.now = round((ends - days * 86_400) * SECOND)
        with capture_logs() as logs:
            for each in (service, service, again):
                await each.tell_expiries(areas.store)
        logged += [(each["realm"], each["days"]) for each in logs if each["event"] == "server_certificate_expires"]
    assert logged == [("", 30), ("", 7), ("", 1), ("", 0)]
    sql = "select changes from audit_trail where action = 'server_certificate.expire' order by id"
    told = await areas.store.read(lambda tx: tx.rows(sql))
    assert [json.loads(str(changes))["daysLeft"] for (changes,) in told] == [[None, days] for days in (30, 7, 1, 0)]
    areas.clock.now = round((ends - 29 * 86_400) * SECOND)
    await service.set(domain, "", *pair)
    await service.tell_expiries(areas.store)
    assert len(await areas.store.read(lambda tx: tx.rows(sql))) == 5
    await areas.app.certificate_files.watch.look()
    assert areas.sample(DOMAINS, domain=str(areas.domain), use="server_certificate") == ends


async def test_the_clock_is_the_kernel_s(areas: Areas) -> None:
    """The gauge has what the kernel reports."""
    known = {True: 1.0, False: 0.0, None: math.nan}[is_synchronized()]
    value = areas.registry.get_sample_value("sallyport_clock_synchronized")
    assert value == pytest.approx(known, nan_ok=True)


async def test_the_certificates_of_the_data_directory(areas: Areas) -> None:
    """A certificate that `sallyport cert init` makes while the service runs is in a scrape that comes later than LOOK_S
    after it."""
    name = "sallyport_certificate_expiry_timestamp_seconds"
    assert not areas.sample(name, use="eap")
    path: Path = areas.settings.data_dir
    CertificateFolder(path.absolute()).make("Tests CA", ["radius.example.org"], present())
    await trio.sleep(LOOK_S)
    assert areas.sample(name, use="eap") > present().timestamp() + 300 * 86400


def test_the_tenants_share_the_metric() -> None:
    """A tenant with many certificates that expire first does not take the place of another tenant's certificate."""
    domains = {number: Domain(number, 1 if number < 10 else 2, f"d{number}") for number in range(1, 12)}
    found = {(number, "directory"): float(number) for number in domains}
    assert in_shares(found, domains, 3) == [((1, "directory"), 1.0), ((10, "directory"), 10.0), ((2, "directory"), 2.0)]
    assert len(in_shares(found, {}, 20)) == len(found)
