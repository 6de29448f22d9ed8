"""Random configurations survive export and apply, on the engine that the tests use."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import trio
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sallyport.areas.configuration.item import Prune
from sallyport.areas.configuration.planning import identity_of
from sallyport.areas.configuration.service import Engine
from sallyport.base.text import fold
from tests.areas import SetClock, running_areas
from tests.areas.configuration.made import authority, server
from tests.areas.configuration.test_apply import engine_of, export, items, signs

Object = tuple[str, Mapping[str, object]]

NAMES = st.text(alphabet="abXYéß-_.1 ", min_size=1, max_size=12).filter(lambda name: name == name.strip())
DOMAINS = ("alpha", "beta")
OF_DOMAIN = st.sampled_from(DOMAINS)
VLANS = st.one_of(st.just(""), st.integers(1, 4094).map(str))
TAGS = st.lists(st.sampled_from(["site=Berlin/1", "owner=net", "floor=2"]), unique=True)
REPLIES = st.lists(st.sampled_from([{"name": "Session-Timeout", "value": "60"}, {"name": "Class", "value": "é"}]))
SECRETS = st.binary(min_size=1, max_size=40).map(lambda octets: {"hex": octets.hex()})
KEYS = st.text(alphabet="abcdefgh12345678", min_size=8, max_size=63)
MOMENTS = st.integers(2030, 2090).map(lambda year: f"{year}-02-03T04:05:06Z")


def objects(
    kind: str, required: Mapping[str, st.SearchStrategy[object]], **others: object
) -> st.SearchStrategy[Object]:
    """Return a strategy for objects of a kind. others: the strategies of fields that may be absent."""
    return st.fixed_dictionaries(dict(required), optional=others).map(lambda fields: (kind, fields))  # type: ignore[arg-type]


RULES = objects(
    "rule",
    {"domain": OF_DOMAIN, "name": NAMES, "action": st.sampled_from(["allow", "block", "mfa_required"])},
    users=st.lists(NAMES, min_size=1, max_size=3),
    groups=st.lists(NAMES, min_size=1, max_size=3),
    priority=st.integers(0, 1000),
    enabled=st.booleans(),
    vlan=VLANS,
    replyAttributes=REPLIES,
    serviceTypes=st.just(["Framed-User"]),
    kinds=st.just(["machine"]),
    time=st.just({"days": ["mon", "fri"], "from": "08:00", "until": "17:30", "timezone": "Europe/Berlin"}),
    maxSessions=st.integers(0, 100),
    overLimit=st.sampled_from(["reject", "end_oldest"]),
).map(lambda each: (each[0], {**each[1], **({} if scoped(each[1]) else {"everyone": True})}))


def scoped(fields: Mapping[str, object]) -> bool:
    """Return whether a rule needs no confirmation."""
    scopes = ("users", "groups", "serviceTypes", "kinds", "time")
    return fields["action"] == "mfa_required" or any(name in fields for name in scopes)


KINDS = {
    "client": objects(
        "client",
        {"name": NAMES, "address": st.integers(1, 250).map(lambda n: f"192.0.2.{n}"), "secret": SECRETS},
        domains=st.lists(OF_DOMAIN, unique=True),
        product=st.sampled_from(["", "Cisco IOS", "own box"]),
        requireMessageAuthenticator=st.sampled_from(["yes", "no", "auto"]),
        passwordVerified=st.booleans(),
        coaPort=st.integers(0, 65535),
        macForms=st.just(["login-user", "no-station"]),
        tags=TAGS,
        note=NAMES,
    ),
    "role": objects(
        "role",
        {"domain": OF_DOMAIN, "role": NAMES},
        sets=st.lists(
            st.fixed_dictionaries(
                {"product": st.sampled_from(["", "Cisco IOS", "Aruba Wireless"])},
                optional={"vlan": VLANS, "replyAttributes": REPLIES},
            ),
            max_size=3,
            unique_by=lambda each: str(each["product"]),
        ),
    ),
    "rule": RULES,
    "bypass": objects(
        "bypass",
        {"domain": OF_DOMAIN, "station": st.integers(1, 99).map(lambda n: f"02-00-00-00-00-{n:02}")},
        name=NAMES,
        vlan=VLANS,
        until=MOMENTS,
        psk=KEYS,
        tags=TAGS,
    ),
    "provider": objects(
        "provider",
        {
            "domain": OF_DOMAIN,
            "provider": st.just("duo"),
            "ikey": KEYS,
            "skey": KEYS,
            "host": st.just("duo.example.org"),
        },
        timeoutSeconds=st.integers(5, 60),
        beside=st.booleans(),
    ),
    "first_factor": objects(
        "first_factor",
        {
            "domain": OF_DOMAIN,
            "firstFactor": st.just("ldap"),
            "ldap": st.fixed_dictionaries(
                {
                    "servers": st.just(["ldaps://ldap.example.org"]),
                    "baseDN": st.just("dc=example,dc=org"),
                    "bindDN": st.just("cn=x,dc=example,dc=org"),
                    "bindPassword": KEYS,
                },
                optional={"timeoutSeconds": st.integers(1, 5), "startTls": st.just(False)},
            ),
        },
    ),
}
KINDS |= {
    "authority": st.integers(1, 3).flatmap(
        lambda number: objects(
            "authority",
            {
                "name": st.just(f"A{number}"),
                "domains": st.lists(OF_DOMAIN, min_size=1, unique=True),
                "certificates": st.just(authority(number)),
            },
            kinds=st.just(["machines"]),
            realms=st.lists(st.sampled_from(["a.example", "É.example"]), unique=True),
            groups=st.lists(NAMES, max_size=2),
            sidPrefixes=st.just(["s-1-5-21-1"]),
            names=st.sampled_from([["sid"], ["upn", "cn"], ["cn", "upn"]]),
            strongOnly=st.booleans(),
            revocation=st.sampled_from(["soft", "hard"]),
            crlAddresses=st.just(["http://pki.example.com/ca.crl"]),
            ocspAddress=st.sampled_from(["", "http://ocsp.example.com"]),
            useCertificateAddresses=st.booleans(),
        )
    ),
    "server_certificate": st.integers(1, 2).flatmap(
        lambda number: objects(
            "server_certificate",
            {
                "domain": OF_DOMAIN,
                "certificate": st.just(server(number)[0]),
                "privateKey": st.just(server(number)[1]),
            },
        )
    ),
    "profile": objects(
        "profile",
        {"domain": OF_DOMAIN, "name": NAMES, "ssids": st.lists(NAMES, min_size=1, max_size=2)},
        hidden=st.booleans(),
        security=st.sampled_from(["wpa2", "wpa3"]),
        wired=st.booleans(),
        method=st.sampled_from(["tls", "peap", "ttls-pap"]),
        loginBy=st.sampled_from(["person", "both"]),
        outerIdentity=st.sampled_from(["", "anonymous@x.example"]),
        serverNames=st.lists(st.sampled_from(["A.example.com", "b.example.com"]), unique=True),
        anchors=st.sampled_from(["", authority(1)]),
    ),
    "password_policy": objects(
        "password_policy",
        {"policyName": NAMES},
        templateName=NAMES,
        minLen=st.integers(0, 20).map(str),
        firstChar=st.sampled_from(["", "Uppercase", "digit"]),
        allowUpperLower=st.sampled_from(["", "yes", "Yes", "true"]),
        ocredit=st.integers(-2, 2).map(str),
        usercheck=st.sampled_from(["", "yes", "0"]),
    ),
}
SERVERS = ("srv1", "srv2", "Srv3")
GROUPS = ("staff", "Admins")
KINDS |= {
    "instance": objects(
        "instance",
        {"domain": OF_DOMAIN, "instanceName": st.sampled_from(SERVERS)},
        osId=st.integers(0, 4),
        publicIp=st.sampled_from(["", "192.0.2.1", "2001:DB8::1"]),
        hostName=NAMES,
        authType=st.sampled_from(["", "ssh", "DID, Password"]),
        passwordPolicies=st.lists(NAMES, max_size=2),
    ),
    "group": objects(
        "group",
        {"domain": OF_DOMAIN, "groupName": st.sampled_from(GROUPS)},
        status=st.sampled_from(["Active", "enabled", "off"]),
        ou=NAMES,
        authFlow=st.sampled_from(["", "SSH"]),
        instances=st.lists(st.sampled_from(SERVERS), unique=True),
        credentialPolicy=st.fixed_dictionaries(
            {"ttlUser": st.sampled_from(["", "8h"])},
            optional={"priviligedUser": st.just("true"), "homeDir": st.just("/home/x"), "policy": NAMES},
        ),
    ),
    "user": objects(
        "user",
        {"domain": OF_DOMAIN, "userName": NAMES},
        userType=st.sampled_from(["", "Local User", "Guest"]),
        privilegedUser=st.sampled_from(["true", "no"]),
        did=st.just("did:key:z6Mk"),
        instances=st.lists(st.sampled_from(SERVERS), unique=True),
        groups=st.lists(st.sampled_from(GROUPS), unique=True),
    ),
    "agent_settings": objects(
        "agent_settings",
        {"domain": OF_DOMAIN, "rotateDays": st.integers(0, 90)},
        instance=st.sampled_from(SERVERS),
        removal=st.sampled_from(["lock", "delete"]),
        privilegeSeconds=st.integers(10, 600),
        endSessions=st.booleans(),
    ),
    "directory": objects(
        "directory",
        {"domain": OF_DOMAIN, "directoryName": NAMES, "appUrl": st.just("ldaps://dc.example.com")},
        baseDN=st.just("dc=example,dc=com"),
        filter=st.just("(objectClass=person)"),
        bindDN=st.just("cn=x,dc=example,dc=com"),
        secret=SECRETS,
        caCertificate=st.just(authority(1)),
        fieldMappings=st.fixed_dictionaries({}, optional={"email": st.just("mail"), "region": st.just("st,l")}),
        groupMappings=st.lists(
            st.fixed_dictionaries(
                {"groupName": NAMES, "fieldMappings": st.sampled_from([{}, {"email": "mail"}, {"region": "st,l"}])}
            ),
            max_size=3,
            unique_by=lambda each: fold(str(each["groupName"])),
        ),
        schedule=st.sampled_from([{"everyMinutes": 30}, {"timesOfDay": ["2:30"], "timeZone": "Europe/Berlin"}]),
    ),
}
SETTINGS = objects(
    "domain",
    {"domainName": OF_DOMAIN},
    enforcementMode=st.sampled_from(["monitor", "enforce"]),
    fallbackAction=st.sampled_from(["deny", "allow"]),
    realms=st.lists(st.sampled_from(["é.example", "REALM", "x y"]), unique=True),
    disconnectOnRevoke=st.booleans(),
    unknownStations=st.sampled_from(["reject", "rules"]),
    rememberHours=st.integers(0, 2160),
    lockOnNotMe=st.booleans(),
)


@st.composite
def folders(draw: st.DrawFn) -> list[Object]:
    """Return a folder in which each object has a name, and each client an address, of its own."""
    found: list[Object] = [("domain", {**draw(SETTINGS)[1], "domainName": name}) for name in DOMAINS]
    found[1] = ("domain", {**found[1][1], "realms": []})  # no two domains have one realm
    for strategy in KINDS.values():
        found += draw(st.lists(strategy, max_size=4))
    policies = {fold(str(fields["policyName"])) for kind, fields in found if kind == "password_policy"}
    places = {(kind, fields.get("domain"), str(fields.get(NAMED.get(kind, "")))) for kind, fields in found}
    return [(kind, known(fields, policies, places)) for kind, fields in found]


NAMED = {"instance": "instanceName", "group": "groupName"}


def known(
    fields: Mapping[str, object], policies: set[str], places: set[tuple[str, object, str]]
) -> Mapping[str, object]:
    """Return the fields of an object without names of policies, instances and groups that the folder does not have."""
    found = dict(fields)
    for name, kind in (("instances", "instance"), ("groups", "group")):
        if isinstance(given := fields.get(name), list) and ("userName" in fields or "groupName" in fields):
            found[name] = [each for each in given if (kind, fields["domain"], each) in places]
    if ("instance", fields.get("domain"), fields.get("instance")) not in places:
        found.pop("instance", None)
    if isinstance(given := fields.get("passwordPolicies"), list):
        found["passwordPolicies"] = [each for each in given if fold(each) in policies]
    if isinstance(policy := fields.get("credentialPolicy"), Mapping):
        own = {name: each for name, each in policy.items() if name != "policy" or fold(str(each)) in policies}
        found["credentialPolicy"] = own
    return found


@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],  # a smaller example takes minutes to find
    suppress_health_check=list(HealthCheck),
)
@given(first=folders(), second=folders())
def test_random_configurations_survive_export_and_apply(first: list[Object], second: list[Object]) -> None:
    """Random folders are applied, one over the other. Then neither the folder nor its export changes anything."""

    async def run(directory: Path) -> None:
        async with running_areas(directory, SetClock()) as areas:
            engine = engine_of(areas)
            assert KINDS.keys() | {"domain"} == {kind.name for kind in engine.kinds()}
            for folder in (distinct(engine, first), distinct(engine, second)):
                await engine.run(areas.tenant, items(folder), prune=Prune.ALL)
                assert await signs(areas, folder) == []
                assert await signs(areas, await export(areas), prune=Prune.ALL) == []

    with TemporaryDirectory() as directory:
        trio.run(run, Path(directory))


def distinct(engine: Engine, folder: list[Object]) -> list[Object]:
    """Return the objects of a folder without those that have the name, or the address, of another."""
    kinds = {kind.name: kind for kind in engine.kinds()}
    named = {(kind, identity_of(kinds[kind], fields)): (kind, fields) for kind, fields in folder}
    placed = {str(each[1].get("address", index)): each for index, each in enumerate(named.values())}
    return list(placed.values())
