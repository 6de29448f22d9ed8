"""tlsName and tlsFingerprint over the API, in a service whose tenants share a certificate authority."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.api.world import Tenant, World
from tests.running_service import running_service

ADD = "/network_device/AddClient"
LIST = "/network_device/ListClients"
UPDATE = "/network_device/UpdateClient"
DELETE = "/network_device/DeleteClient"
ADDRESS = "203.0.113.101"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Return a service with a certificate authority."""
    with running_service(tmp_path_factory.mktemp("certificates")) as service:
        service.call("cert.init", ca_name="Tests CA", hosts=["radius.example.org"])
        with httpx.Client(base_url=f"http://127.0.0.1:{service.ports.http}", timeout=30, trust_env=False) as http:
            yield World(service, http)


def issue(tenant: Tenant, name: str) -> dict[str, str]:
    """Issue a certificate for the tenant and return the fields that identify it in a RADIUS client."""
    made = tenant.world.service.call("cert.issue", name=name, org=tenant.org, tenant=tenant.number)
    return {"tlsName": name, "tlsFingerprint": str(made["sha256"])}


def test_a_certificate_of_another_tenant_is_refused(world: World) -> None:
    """If a name or fingerprint was not issued for the tenant, the answer is 403. The answer is the
    same for a certificate of another tenant and for an unknown one, and it repeats neither value.
    """
    owner, other = world.tenant(), world.tenant()
    client = other.ask(ADD, name="n", address=ADDRESS)["clientId"]
    theirs = issue(owner, "proxy.a.example.com")
    unknown = {"tlsName": "proxy.c.example.com", "tlsFingerprint": "12" * 32}
    for field in theirs:
        refusal = {
            other.refused(path, **fields, **{field: value[field]})
            for value in (theirs, unknown)
            for path, fields in (
                (ADD, {"name": "m", "address": "203.0.113.102"}),
                (UPDATE, {"clientId": client}),
            )
        }
        ((code, text),) = refusal
        assert code == 403
        assert field in text and "sallyport client add" in text
        assert not any(value in text for value in (*theirs.values(), *unknown.values()))
    assert [(each["tlsName"], each["tlsFingerprint"]) for each in other.ask(LIST)["clients"]] == [("", "")]
    other.ask(DELETE, clientId=client)


def test_a_certificate_belongs_to_one_client(world: World) -> None:
    """A second client of a tenant cannot have the TLS name or the fingerprint of the first. When the first client
    clears them, both are free again.
    """
    tenant = world.tenant()
    fields: dict[str, Any] = issue(tenant, "one.example.org")
    first = tenant.ask(ADD, name="tls", address=ADDRESS, **fields)["clientId"]
    second = tenant.ask(ADD, name="other", address="203.0.113.103")["clientId"]
    for field, value in fields.items():
        refusal = tenant.refused(UPDATE, clientId=second, **{field: value})
        assert refusal == (
            409,
            f"the RADIUS client tls already has this {field}: choose another {field}, or change that client",
        )
    tenant.ask(UPDATE, clientId=first, name="still it")
    tenant.ask(UPDATE, clientId=first, tlsName="", tlsFingerprint="")
    tenant.ask(UPDATE, clientId=second, tlsName="One.Example.org.", tlsFingerprint=fields["tlsFingerprint"].upper())
    shown = {each["clientId"]: (each["tlsName"], each["tlsFingerprint"]) for each in tenant.ask(LIST)["clients"]}
    assert (shown[first], shown[second]) == (("", ""), tuple(fields.values()))
    tenant.ask(DELETE, clientId=first)
    tenant.ask(DELETE, clientId=second)
