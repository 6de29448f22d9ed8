"""The service's answers outside of the operations, and its answers over TLS."""

import re
import ssl
from pathlib import Path

import httpx

from tests.api.operations import OPERATIONS
from tests.api.world import LIST_DEVICES, Tenant, World
from tests.areas import Areas, SetClock, running_store
from tests.running_service import running_service
from tests.web.serving import make_certificate


def test_health(world: World) -> None:
    """/healthz and /readyz answer without a token."""
    for path, status in (("/healthz", "alive"), ("/readyz", "ready")):
        answer = world.http.get(path)
        assert (answer.status_code, answer.json()) == (200, {"status": status})


def test_metrics_count_logins(world: World, tenant: Tenant) -> None:
    """/metrics has Prometheus' text format and needs no token. A login is counted with labels that are ids or closed
    sets.
    """
    with tenant.nas(name=f"client of {tenant.org}") as nas:
        nas.login("ann", "wrong")
    answer = world.http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    text = answer.text
    # The first thousand domains have their id as label, and the rest the label 'other'. If many tests ran before, this
    # domain is one of the rest.
    domain = tenant.domain if f'{{domain="{tenant.domain}"}}' in text else "other"
    for line in (
        f'sallyport_devices_registered_total{{domain="{domain}"}}',
        f'sallyport_mfa_decisions_total{{decision="deny",domain="{domain}",mode="monitor"}}',
        'sallyport_enforcement_mode{domain="1",mode="monitor"}',
    ):
        assert re.search(f"^{re.escape(line)} [1-9]", text, re.MULTILINE), line
    assert 'sallyport_radius_inflight_requests{listener="auth"} 0.0' in text
    assert "ann" not in re.sub("channel|cannot", "", text)


def test_the_description_names_every_operation(world: World) -> None:
    """/openapi.json has each operation with its models and errors. No name of a model contains the name of a module."""
    answer = world.http.get("/openapi.json")
    document = answer.json()
    for operation in OPERATIONS:
        described = document["paths"][operation.path][operation.method.lower()]
        assert described["description"]
        assert described["security"] == [{"X-Authorization": []}] + [{"Bearer": []}] * (not operation.scoped)
        assert {"200", "400", "401", "403"} <= set(described["responses"])
    schemas = document["components"]["schemas"]
    assert set(re.findall(r'"#/components/schemas/([^"]+)"', answer.text)) <= schemas.keys()
    assert not [name for name in schemas if "__" in name]
    assert {"RuleAction", "MembershipAction", "DidKind"} <= schemas.keys()
    properties = document["components"]["schemas"]["DeviceEntry"]["properties"]
    assert list(properties)[:4] == ["ip_address", "client_ip", "device_type", "nas_port_type"]


def test_the_description_shows_messages_of_agents_as_they_are_sent(world: World) -> None:
    """The description of an agent's message has its fields beside orgId and tenantId. Names are in camel case, also in
    inner messages.
    """
    schemas = world.http.get("/openapi.json").json()["components"]["schemas"]
    assert list(schemas["PollBody"]["properties"]) == ["orgId", "tenantId", "version", "waitS", "key"]
    assert schemas["ReportBody"]["required"] == ["id", "at", "version"]
    assert {"fullName", "lastLogin"} <= schemas["FoundAccount"]["properties"].keys()


def test_each_field_has_a_description(world: World) -> None:
    """Each field of each body and answer has a description."""
    schemas = world.http.get("/openapi.json").json()["components"]["schemas"]
    lacking = [
        f"{model}.{name}"
        for model, schema in schemas.items()
        for name, field in schema.get("properties", {}).items()
        if not field.get("description")
    ]
    assert lacking == []


async def test_a_backup_under_another_master_key(world: World, tenant: Tenant, tmp_path: Path) -> None:
    """A backup that was made under another master key is refused before anything is changed, and the service
    continues.
    """
    async with running_store(tmp_path / "other.db") as store:
        other = Areas(store, SetClock(), key=b"1" * 32)
        await other.prepare()
        await other.client("203.0.113.99/32")
    done = world.service.cli("db", "restore", str(tmp_path / "other.db"), "--yes")
    assert (done.returncode, done.stdout) == (1, "")
    assert "another master key" in done.stderr
    assert world.http.get("/readyz").status_code == 200
    assert tenant.device("switch")
    assert tenant.names() == ["switch"]


def test_tls_by_two_settings(tmp_path: Path) -> None:
    """If a certificate and its key are configured, the HTTP port accepts only TLS."""
    (tmp_path / "keys").mkdir()
    (tmp_path / "service").mkdir()
    tls = make_certificate(tmp_path / "keys")
    settings = {"SALLYPORT_TLS_CERTIFICATE": str(tls.certificate), "SALLYPORT_TLS_KEY": str(tls.key)}
    with running_service(tmp_path / "service", settings) as service:
        trust = ssl.create_default_context(cafile=tls.certificate)
        address = f"127.0.0.1:{service.ports.http}"
        with httpx.Client(base_url=f"https://{address}", verify=trust, trust_env=False) as http:
            assert http.get("/readyz").json() == {"status": "ready"}
            domains = http.post(
                "/ad/GetAllDomains", headers={"x-authorization": service.token}, json={"orgId": 1, "tenantId": 1}
            ).json()["domains"]
            assert [each["domainName"] for each in domains] == ["default"]
            body = {"orgId": 1, "tenantId": 1, "domainId": domains[0]["domainId"]}
            listed = http.post(LIST_DEVICES, headers={"x-authorization": service.token}, json=body)
            assert listed.json() == {"network_devices": [], "totalCount": 0}
        with httpx.Client(trust_env=False) as plain:
            try:
                status = plain.get(f"http://{address}/readyz").status_code
            except httpx.HTTPError:
                status = 0
            assert status != 200
