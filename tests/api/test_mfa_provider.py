"""/ad/...MFAProvider(s)."""

import time
from pathlib import Path
from typing import Any

import pyotp
import pytest

from tests.api.world import PASSWORD, Tenant, World
from tests.running_service import running_service

GET = "/ad/GetMFAProvider"
SET = "/ad/SetMFAProvider"
DELETE = "/ad/DeleteMFAProvider"
CHECK = "/ad/CheckMFAProvider"
ADD = "/ad/AddMFAProvider"
LIST = "/ad/ListMFAProviders"
MODE = "/ad/updateDomainEnforcement"
LOG = "/ad/GetAuthLog"
NONE = (404, "the domain has no MFA provider: set one first")
STATE = ("workedAt", "failsSince", "lastError")
HIDDEN = "hunter2-is-what-nobody-may-see"
AWAY = {"provider": "webhook", "url": "http://127.0.0.1:9/hook", "secret": HIDDEN}

PROVIDERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "totp": ({}, {}),
    "duo": ({"ikey": "DI1", "skey": HIDDEN, "host": "api-1.duosecurity.com"}, {"skey": None}),
    "okta": ({"domain": "corp.okta.com", "apiToken": HIDDEN}, {"apiToken": None}),
    "privacyidea": (
        {"url": "https://pi.example.com", "realm": "corp", "adminToken": HIDDEN}, {"adminToken": None},
    ),
    "webhook": ({"url": "https://hook.example.com/x", "secret": HIDDEN}, {"secret": None}),
    "radius": ({"host": "192.0.2.7", "port": 1645, "secret": HIDDEN}, {"secret": None}),
    "wallet": ({"issuerDid": "did:web:id.example.com", "schemaId": 7}, {}),
}  # fmt: skip
"""A valid provider of each kind, and which of its fields are never returned."""
EACH = pytest.mark.parametrize("name", PROVIDERS)


def put(tenant: Tenant, name: str = "totp", **fields: Any) -> None:
    """Set the provider of the tenant's domain."""
    answer = tenant.ask(SET, **{"domainId": tenant.domain, "provider": name, **fields})
    assert answer == {"code": 200, "status": "Success", "message": f"{name.strip().casefold()} is the MFA provider"}


def shown(tenant: Tenant, **options: Any) -> dict[str, Any]:
    """Return the provider of the tenant's domain, without its state."""
    answer: dict[str, Any] = tenant.ask(GET, domainId=tenant.domain, **options)
    assert (answer.pop("code"), answer.pop("status")) == (200, "Success")
    return {name: value for name, value in answer.items() if name not in STATE}


def refused(tenant: Tenant, **fields: Any) -> tuple[int, str]:
    """Return the refusal of a request that sets the provider."""
    return tenant.refused(SET, **{"domainId": tenant.domain, **fields})


# --- fields -------------------------------------------------------------------------------------------------------


@EACH
def test_the_fields_of_a_provider(tenant: Tenant, name: str) -> None:
    """A provider is returned as it was given, but without its secrets. The default timeout is 60 s."""
    fields, secrets = PROVIDERS[name]
    put(tenant, name, **fields)
    public = {key: value for key, value in fields.items() if key not in secrets}
    assert shown(tenant) == {"provider": name, "timeoutSeconds": 60, **public}
    put(tenant, name.upper(), timeoutSeconds="45", unknown="x", **fields)
    assert shown(tenant) == {"provider": name, "timeoutSeconds": 45, **public}


def test_the_state_of_a_provider(tenant: Tenant) -> None:
    """The state is unknown until the provider is asked. It is unknown again after the provider was set again."""

    def state() -> list[str]:
        answer = tenant.ask(GET, domainId=tenant.domain)
        return [answer[name] for name in STATE]

    put(tenant, "webhook", **{name: value for name, value in AWAY.items() if name != "provider"})
    assert state() == ["", "", ""]
    checked = tenant.ask("/ad/CheckMFAProvider", domainId=tenant.domain)
    worked, since, error = state()
    assert (worked, error) == ("", checked["problem"]) and error
    tenant.ask("/ad/CheckMFAProvider", domainId=tenant.domain)
    assert state()[1] == since
    put(tenant)
    assert state() == ["", "", ""]
    tenant.ask("/ad/CheckMFAProvider", domainId=tenant.domain)
    worked, since, error = state()
    assert worked and (since, error) == ("", "")


@pytest.mark.parametrize(("name", "nulls"), [("privacyidea", ["realm", "adminToken"]), ("radius", ["port"])])
def test_optional_fields(tenant: Tenant, name: str, nulls: list[str]) -> None:
    """Optional fields may be absent or null. The stored provider can then be read."""
    fields = {key: value for key, value in PROVIDERS[name][0].items() if key not in nulls}
    put(tenant, name, **fields)
    without = shown(tenant)
    put(tenant, name, **fields, **dict.fromkeys(nulls))
    assert shown(tenant) == without


@EACH
def test_required_fields(tenant: Tenant, name: str) -> None:
    """If a required field is missing, the error names it and nothing is stored. realm, adminToken, port and schemaId
    are optional.
    """
    fields, _ = PROVIDERS[name]
    for missing in set(fields) - {"realm", "adminToken", "port", "schemaId"}:
        without = {key: value for key, value in fields.items() if key != missing}
        assert refused(tenant, provider=name, **without) == (400, f"missing {missing}")
        wrongs: list[object] = ["", None, [1], {}, "\0", "x" * 10_000]
        for wrong in wrongs:
            assert refused(tenant, provider=name, **{**fields, missing: wrong}) == (400, f"invalid {missing}")
    assert tenant.refused(GET, domainId=tenant.domain) == NONE


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("duo", "host", "evil.example.com/path"),
        ("duo", "host", "a:b@evil.example.com"),
        ("duo", "host", "169.254.169.254:80"),
        ("okta", "domain", "http://corp.okta.com"),
        ("okta", "apiToken", "two words"),
        ("privacyidea", "url", "http://pi.example.com"),
        ("privacyidea", "url", "https://user:hunter2@pi.example.com"),
        ("webhook", "url", "file:///etc/passwd"),
        ("webhook", "url", "http://169.254.169.254/latest"),
        ("radius", "port", 0),
        ("radius", "port", "65536"),
        ("radius", "host", "a b"),
        ("wallet", "issuerDid", "no DID"),
        ("wallet", "issuerDid", "did:key:z\n"),
        ("wallet", "schemaId", 0),
        ("wallet", "schemaId", "x"),
    ],
)
def test_malformed_fields(tenant: Tenant, name: str, field: str, value: Any) -> None:
    """A malformed field is answered with 400. The message names the field but not its value."""
    fields, _ = PROVIDERS[name]
    assert refused(tenant, provider=name, **{**fields, field: value}) == (400, f"invalid {field}")


def test_a_provider_is_needed(tenant: Tenant) -> None:
    """A body that does not contain a provider is refused."""
    assert refused(tenant) == (400, "missing provider")
    assert tenant.refused(GET, domainId=tenant.domain) == NONE


@pytest.mark.parametrize("provider", [HIDDEN, "", 5, None, ["totp"]], ids=repr)
def test_an_unknown_provider(tenant: Tenant, provider: object) -> None:
    """An unknown provider is refused and not stored. The error names the field."""
    assert refused(tenant, provider=provider) == (400, "invalid provider")
    assert tenant.refused(GET, domainId=tenant.domain) == NONE


@pytest.mark.parametrize("seconds", [4, 301, "x", -1, 1.5, True], ids=repr)
def test_a_time_limit_is_5_to_300_seconds(tenant: Tenant, seconds: object) -> None:
    """A timeout outside of 5 to 300 seconds is refused, and nothing is stored."""
    assert refused(tenant, provider="totp", timeoutSeconds=seconds) == (400, "invalid timeoutSeconds")
    assert tenant.refused(GET, domainId=tenant.domain) == NONE


def test_a_refused_provider_changes_nothing(tenant: Tenant) -> None:
    """A refused provider does not change the stored one, even if that is of another kind."""
    put(tenant, "webhook", **PROVIDERS["webhook"][0])
    before = shown(tenant)
    assert refused(tenant, provider="duo", ikey="DI1") == (400, "missing skey")
    assert refused(tenant, provider="nobody") == (400, "invalid provider")
    assert shown(tenant) == before


def test_a_new_provider_replaces_the_old_one(tenant: Tenant) -> None:
    """A new provider replaces all fields of the old one. Removing it a second time is answered with 404."""
    put(tenant, "radius", **PROVIDERS["radius"][0])
    put(tenant)
    assert shown(tenant) == {"provider": "totp", "timeoutSeconds": 60}
    removed = {"code": 200, "status": "Success", "message": "MFA provider removed"}
    assert tenant.ask(DELETE, domainId=tenant.domain) == removed
    assert tenant.refused(DELETE, domainId=tenant.domain) == NONE
    assert tenant.refused(GET, domainId=tenant.domain) == NONE


# --- several ------------------------------------------------------------------------------------------------------


def listed(tenant: Tenant, **options: Any) -> list[dict[str, Any]]:
    """Return the providers of the tenant's domain."""
    found: list[dict[str, Any]] = tenant.ask(LIST, domainId=tenant.domain, **options)["providers"]
    return found


@EACH
def test_a_provider_beside_the_default_one(tenant: Tenant, name: str) -> None:
    """Each kind of provider can be beside the default one, which the other operations still mean if no provider is
    named."""
    default = "duo" if name == "totp" else "totp"
    put(tenant, default, **PROVIDERS[default][0])
    fields, hidden = PROVIDERS[name]
    told = tenant.ask(ADD, domainId=tenant.domain, provider=name.upper(), **fields)["message"]
    assert told == f"{name} is an MFA provider for login rules that name it"
    assert shown(tenant)["provider"] == default
    kept = {**{key: value for key, value in fields.items() if key not in hidden}, "provider": name}
    assert shown(tenant, provider=name.upper()).items() >= kept.items()
    assert HIDDEN not in str(listed(tenant))
    assert [(each["provider"], each["isDefault"]) for each in listed(tenant)] == [(default, True), (name, False)]
    again = tenant.refused(ADD, domainId=tenant.domain, provider=default, **PROVIDERS[default][0])
    assert again == (409, f"{default} is the default provider of the domain: change it with SetMFAProvider")
    tenant.ask(DELETE, domainId=tenant.domain, provider=name)
    missing = (404, f"the domain has no MFA provider {name}; existing: {default}")
    for path in (GET, CHECK, DELETE):
        assert tenant.refused(path, domainId=tenant.domain, provider=name) == missing
    assert shown(tenant)["provider"] == default


def test_a_provider_that_a_rule_names(tenant: Tenant) -> None:
    """A provider that a login rule names is neither removed nor replaced. The list names the rule, and the rule has the
    provider."""
    put(tenant)
    rule = {"domainId": tenant.domain, "name": "admins", "action": "mfa_required", "users": ["ann"]}
    number = tenant.ask("/ad/AddLoginRule", **rule, provider="totp")["ruleId"]
    names = (409, f"the MFA provider totp is named by rule {number} admins: change them first")
    assert tenant.refused(DELETE, domainId=tenant.domain) == names
    assert refused(tenant, provider="webhook", **PROVIDERS["webhook"][0]) == names
    assert [each["usedBy"] for each in listed(tenant)] == [[f"rule {number} admins"]]
    (entry,) = tenant.ask("/ad/ListLoginRules", domainId=tenant.domain)["rules"]
    assert (entry["provider"], entry["strength"]) == ("totp", "any")
    tested = tenant.ask("/ad/TestLoginRules", domainId=tenant.domain, user="ann")
    assert (tested["secondFactor"], tested["strength"]) == ("totp", "any")
    for field, value in (("provider", "duo"), ("strength", "phishing_resistant"), ("strength", "strong")):
        answer = tenant.refused("/ad/AddLoginRule", **{**rule, field: value})
        assert answer == (400, f"invalid {field}")
    tenant.ask("/ad/UpdateLoginRule", domainId=tenant.domain, ruleId=number, provider="")
    tenant.ask(DELETE, domainId=tenant.domain)
    assert listed(tenant) == []


def test_an_added_provider_belongs_to_its_domain(world: World, tenant: Tenant) -> None:
    """Another tenant cannot add, list or remove it. Every reader lists it, and only an admin adds one."""
    tenant.ask(ADD, domainId=tenant.domain, provider="webhook", **PROVIDERS["webhook"][0])
    other, foreign = world.tenant(), (403, "domain not in tenant")
    for path in (ADD, GET, CHECK, DELETE):
        assert other.refused(path, domainId=tenant.domain, provider="webhook") == foreign
    assert other.refused(LIST, domainId=tenant.domain) == foreign
    branch = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    assert tenant.refused(DELETE, domainId=branch, provider="webhook") == NONE
    for role in ("operator", "auditor"):
        token = tenant.role(role)
        assert [each["provider"] for each in listed(tenant, token=token)] == ["webhook"]
        answer = tenant.refused(ADD, token=token, domainId=tenant.domain, provider="totp")
        assert answer == (403, "role not allowed")


# --- who ----------------------------------------------------------------------------------------------------------


def test_domains_have_their_own(world: World, tenant: Tenant) -> None:
    """A provider belongs to one domain. Another domain does not have it, and another tenant cannot name this domain."""
    branch = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    put(tenant)
    assert tenant.refused(GET, domainId=branch) == NONE
    assert tenant.refused(DELETE, domainId=branch) == NONE
    other = world.tenant()
    foreign = (403, "domain not in tenant")
    assert other.refused(GET, domainId=tenant.domain) == foreign
    assert other.refused(SET, domainId=tenant.domain, provider="webhook", url="https://evil.example", secret="x") == (
        foreign
    )
    assert other.refused(DELETE, domainId=tenant.domain) == foreign
    assert shown(tenant)["provider"] == "totp"


def test_roles(tenant: Tenant) -> None:
    """Every reader sees the provider without its secrets. Only an admin may change it."""
    put(tenant, "webhook", **PROVIDERS["webhook"][0])
    for role in ("operator", "auditor"):
        token = tenant.role(role)
        assert "secret" not in shown(tenant, token=token)
        for path in (SET, DELETE):
            answer = tenant.refused(path, token=token, domainId=tenant.domain, provider="totp")
            assert answer == (403, "role not allowed")
    assert shown(tenant)["provider"] == "webhook"


# --- secrets ------------------------------------------------------------------------------------------------------


@EACH
def test_secrets_are_nowhere(world: World, tenant: Tenant, name: str) -> None:
    """No secret is in an answer, an error, the log or the metrics. The files of the database do not contain it in clear
    text.
    """
    fields, secrets = PROVIDERS[name]
    hidden = f"{HIDDEN}-{name}-{tenant.org}"
    fields = {key: hidden if key in secrets else value for key, value in fields.items()}
    answers = [
        world.post(SET, tenant.token, json=tenant.scoped(domainId=tenant.domain, provider=name, **fields)),
        world.post(GET, tenant.token, json=tenant.scoped(domainId=tenant.domain)),
        world.post(SET, tenant.token, json=tenant.scoped(domainId=tenant.domain, provider=hidden, **fields)),
        world.post(SET, tenant.token, json=tenant.scoped(domainId=tenant.domain, **fields, timeoutSeconds=hidden)),
        world.http.get("/metrics"),
    ]
    for key in secrets:  # malformed, because it contains a space or is too long
        wrong = {**fields, key: f"{hidden} \0" + "x" * 9000}
        answers.append(
            world.post(SET, tenant.token, json=tenant.scoped(domainId=tenant.domain, provider=name, **wrong))
        )
    assert [answer.status_code for answer in answers[:2]] == [200, 200]
    assert not any(hidden in answer.text for answer in answers)
    assert hidden not in world.service.log()
    for path in world.service.data_dir.glob("sallyport.db*"):
        assert hidden.encode() not in path.read_bytes(), path.name


# --- what it does -------------------------------------------------------------------------------------------------


def last(tenant: Tenant) -> tuple[str, str, str]:
    """Return the applied decision, the reason and the factor of the last login."""
    event = tenant.ask(LOG, domainId=tenant.domain)["events"][0]
    return event["appliedDecision"], event["reason"], event["factor"]


def test_a_change_holds_for_the_next_request(tenant: Tenant) -> None:
    """Each change of the provider applies to the next login. Without a provider the fallback decides."""
    tenant.ask(MODE, domainId=tenant.domain, enforcementMode="enforce")
    with tenant.nas() as client:
        assert client.login("ann", PASSWORD) == 3
        assert last(tenant) == ("reject", "no provider", "local")
        put(tenant)
        assert client.login("ann", PASSWORD) == 3
        assert last(tenant) == ("reject", "not enrolled", "local+totp")
        put(tenant, **{**AWAY, "name": "webhook"})
        assert client.login("ann", PASSWORD) == 3
        assert last(tenant) == ("reject", "provider unreachable", "local+webhook")
        tenant.ask(MODE, domainId=tenant.domain, enforcementMode="enforce", fallbackAction="allow")
        assert client.login("ann", PASSWORD) == 2
        assert last(tenant) == ("accept", "provider unreachable", "local+webhook")
        tenant.ask(DELETE, domainId=tenant.domain)
        assert client.login("ann", PASSWORD) == 2
        assert last(tenant) == ("accept", "no provider", "local")
        tenant.ask(MODE, domainId=tenant.domain, enforcementMode="enforce", fallbackAction="deny")


def test_a_code_of_an_app(tenant: Tenant) -> None:
    """With the built-in provider, a one-time code that is appended to the password is accepted once."""
    who: dict[str, Any] = {"domainId": tenant.domain, "userName": "ann"}
    seed = tenant.ask("/api/v1/endpointUsers/enrolTotp", **who)["seed"]
    app = pyotp.TOTP(seed)
    tenant.ask("/api/v1/endpointUsers/confirmTotp", **who, code=app.now())
    put(tenant)
    tenant.ask(MODE, domainId=tenant.domain, enforcementMode="enforce")
    with tenant.nas() as client:
        code = app.at(time.time() + 30)  # the current code has been used
        assert client.login("ann", PASSWORD + code) == 2
        assert client.login("ann", PASSWORD + code) == 3
        assert last(tenant) == ("reject", "wrong code", "local+totp")


def test_an_unreadable_provider(tmp_path: Path) -> None:
    """If the secret of a provider cannot be read, this counts as an outage: the fallback decides, and no provider is
    called. The rest of the service works. Setting the provider again repairs it.
    """
    with running_service(tmp_path, {"SALLYPORT_REJECT_DELAY_S": "0"}) as service:
        scope = {"orgId": 1, "tenantId": 1, "domainId": 1}
        service.ok("client", "add", "nas", "--address", "127.0.0.1", "--secret", "s3", "--org", "1", "--tenant", "1")
        service.ok("user", "add", "ann", "--domain", "default", "--password", "-", input="hello")
        service.post(SET, {**scope, **AWAY})
        service.post(MODE, {**scope, "enforcementMode": "enforce"})
        service.stop()
        service.execute("update mfa_providers set provider = 'totp'")
        service.start()
        with service.radius("s3") as client:
            assert client.login("ann", "hello") == 3
            service.post(MODE, {**scope, "enforcementMode": "enforce", "fallbackAction": "allow"})
            assert client.login("ann", "hello") == 2
            events = service.post(LOG, scope)["events"]
            assert {event["reason"] for event in events} == {"provider configuration unreadable"}
            answer = service.request("POST", GET, json=scope)
            assert answer.status_code == 409 and HIDDEN not in answer.text
            service.post(SET, {**scope, "provider": "totp"})
            assert client.login("ann", "hello") == 3
        assert HIDDEN not in service.log()


def test_a_check_asks_the_provider(tenant: Tenant) -> None:
    """A check reports the fault in `problem`, without secrets. A domain may run five checks a minute."""
    check = "/ad/CheckMFAProvider"
    assert tenant.refused(check, domainId=tenant.domain) == NONE
    put(tenant, "totp")
    works = {"code": 200, "status": "Success", "provider": "totp", "works": True, "problem": ""}
    assert tenant.ask(check, domainId=tenant.domain) == {
        **works, "message": "codes are checked by this service; no server is asked",
    }  # fmt: skip
    tenant.ask(SET, domainId=tenant.domain, **AWAY)
    answered = tenant.ask(check, domainId=tenant.domain)
    assert (answered["works"], answered["message"]) == (False, answered["problem"])
    assert "port 9 is closed" in answered["problem"]
    assert HIDDEN not in str(answered)
    for _ in range(2):
        tenant.ask(check, domainId=tenant.domain)
    assert tenant.refused(check, domainId=tenant.domain) == (
        429,
        "the limit of 5 checks in a minute is reached: try again later",
    )
