"""Tests of the metrics for certificates in the configurations of domains, and for the clock."""

import json
import math
from pathlib import Path

import pytest

from sallyport.areas.domains.domain import FirstFactor
from sallyport.base.clock import is_synchronized
from sallyport.certs.folder import CertificateFolder, present, read_certificates
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


async def test_the_clock_is_the_kernel_s(areas: Areas) -> None:
    """The gauge has what the kernel reports."""
    known = {True: 1.0, False: 0.0, None: math.nan}[is_synchronized()]
    value = areas.registry.get_sample_value("sallyport_clock_synchronized")
    assert value == pytest.approx(known, nan_ok=True)


async def test_the_certificates_of_the_data_directory(areas: Areas) -> None:
    """A certificate that `sallyport cert init` makes while the service runs is in the next scrape."""
    name = "sallyport_certificate_expiry_timestamp_seconds"
    assert not areas.sample(name, use="eap")
    path: Path = areas.settings.data_dir
    CertificateFolder(path.absolute()).make("Tests CA", ["radius.example.org"], present())
    assert areas.sample(name, use="eap") > present().timestamp() + 300 * 86400
