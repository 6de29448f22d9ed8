"""The engine of `sallyport apply`: plan, apply, prune, and the round trip with `export`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from sallyport.areas.configuration.exporting import exported
from sallyport.areas.configuration.item import KEEP, Item, Prune, Sign
from sallyport.areas.configuration.service import Engine
from sallyport.areas.users.accounts.account import UserChange, UserQuery
from sallyport.base.errors import Conflict, Invalid
from tests.areas import Areas, SetClock, running_areas
from tests.areas.configuration.made import AGENTS, DIRECTORIES, ENDPOINTS, POLICY, authority, trust

CLIENT = {"name": "vpn", "address": "192.0.2.1", "secret": "correct horse battery", "domains": ["corp"]}
FOLDER = [
    ("domain", {"domainName": "lab", "realms": ["lab.example"], "unknownStations": "rules", "rememberHours": 8}),
    ("client", {**CLIENT, "domains": ["lab", "corp"], "tags": ["site=Berlin/1", "owner=net"], "coaPort": 0}),
    ("client", {"name": "wifi", "address": "198.51.100.0/28", "secret": {"hex": "00ff"}, "product": "aruba wireless"}),
    ("role", {"domain": "lab", "role": "staff", "sets": [{"vlan": "20"}, {"product": "Cisco IOS", "vlan": "21"}]}),
    ("rule", {"domain": "lab", "name": "people", "action": "mfa_required", "groups": ["Staff"], "role": "STAFF"}),
    ("rule", {"domain": "lab", "name": "rest", "action": "block", "everyone": True, "priority": 900}),
    ("rule", {"domain": "lab", "name": "rest", "action": "allow", "serviceTypes": ["Framed-User"], "enabled": False}),
    ("bypass", {"domain": "lab", "station": "02-00-00-00-00-01", "name": "printer", "vlan": "30", "psk": "12345678"}),
    ("provider", {"domain": "lab", "provider": "webhook", "url": "https://192.0.2.9/", "secret": {"hex": "61" * 32}}),
    ("provider", {"domain": "lab", "provider": "totp", "beside": True, "timeoutSeconds": 30}),
    ("rule", {"domain": "lab", "name": "codes", "action": "mfa_required", "users": ["a"], "provider": "totp"}),
    (
        "first_factor",
        {
            "domain": "lab",
            "firstFactor": "radius",
            "radius": {"servers": [{"host": "192.0.2.8", "secret": {"hex": "62" * 20}}]},
        },
    ),
    ("bypass", {"domain": "lab", "station": "020000000002", "until": "2030-01-01T00:00:00Z", "role": "staff"}),
    POLICY,
    *trust(),
    *ENDPOINTS,
    *AGENTS,
    *DIRECTORIES,
]


def items(folder: Sequence[tuple[str, Mapping[str, object]]]) -> list[Item]:
    """Return objects as files describe them."""
    return [
        Item(kind, str(next(iter(fields.values()))), fields, f"{kind}.toml:{number}")
        for number, (kind, fields) in enumerate(folder, 1)
    ]


def secrets_in(value: object) -> list[str]:
    """Return the secrets of the form {"hex": octets} in the fields of an object, in hex."""
    if isinstance(value, Mapping):
        own = [str(value["hex"])] if "hex" in value else []
        return own + [secret for each in value.values() for secret in secrets_in(each)]
    return [secret for each in value for secret in secrets_in(each)] if isinstance(value, list) else []


def engine_of(areas: Areas) -> Engine:
    """Return the engine of the areas."""
    return areas.app.configured.engine


async def export(areas: Areas, tenant: int | None = None) -> list[tuple[str, Mapping[str, object]]]:
    """Return the objects of a tenant as `sallyport export` writes them."""
    engine = engine_of(areas)
    present = await engine.present(areas.tenant if tenant is None else tenant)
    return [(kind.name, each) for kind in engine.kinds() for each in exported(kind, present.objects[kind.name])]


async def signs(areas: Areas, folder: Sequence[tuple[str, Mapping[str, object]]], **options: object) -> list[str]:
    """Return the plan as lines such as `+ client vpn`."""
    plan = await engine_of(areas).plan(areas.tenant, items(folder), **options)  # type: ignore[arg-type]
    return [f"{step.sign} {step.kind.name} {step.name}" for step in plan.changes]


async def test_a_folder_is_applied_once(areas: Areas) -> None:
    """The folder has each kind. All objects are added. The same folder then changes nothing, and what was applied is in
    effect."""
    engine = engine_of(areas)
    assert {kind for kind, _ in FOLDER} == {kind.name for kind in engine.kinds()}
    plan = await engine.run(areas.tenant, items(FOLDER))
    assert {step.sign for step in plan.steps} == {Sign.ADDED}
    assert await signs(areas, FOLDER) == []
    lab = areas.app.domains.service.named(areas.tenant, "lab")
    client = next(each for each in areas.app.clients.service.of_tenant(areas.tenant) if each.name == "vpn")
    assert client.domain_ids[0] == lab.id and client.secret.octets == b"correct horse battery"
    assert areas.app.bypass.service.has(lab.id, "020000000001")
    assert [rule.name for rule in areas.app.rules.service.all_of(lab.id)] == ["people", "rest", "rest", "codes"]


@pytest.mark.parametrize("prune", [Prune.NOTHING, Prune.ALL])
async def test_a_replaced_provider_and_its_last_rule_change_together(areas: Areas, prune: Prune) -> None:
    """One folder gives a domain another default provider, and the rule that named the former one too. One apply is
    enough. Without the change of the rule, nothing changes."""
    rule = {"domain": "corp", "name": "people", "action": "mfa_required", "users": ["a"]}
    hook = {"provider": "webhook", "url": "https://192.0.2.9/", "secret": {"hex": "61" * 32}}
    former = [("provider", {"domain": "corp", **hook}), ("rule", {**rule, "provider": "webhook"})]
    wanted = [("provider", {"domain": "corp", "provider": "totp"}), ("rule", {**rule, "provider": "totp"})]
    await engine_of(areas).run(areas.tenant, items(former))
    with pytest.raises(Conflict, match="the MFA provider webhook is named by"):
        await engine_of(areas).run(areas.tenant, items(wanted[:1]))
    assert await signs(areas, former) == []
    await engine_of(areas).run(areas.tenant, items(wanted), prune=prune, only=["provider", "rule"])
    assert await signs(areas, wanted, prune=prune, only=["provider", "rule"]) == []
    assert [row.provider for row in areas.app.mfa.service.all_of(areas.domain)] == ["totp"]


async def test_an_export_changes_nothing(areas: Areas) -> None:
    """An export that is applied again changes nothing. Its secrets are `keep`."""
    await engine_of(areas).run(areas.tenant, items(FOLDER))
    folder = await export(areas)
    assert await signs(areas, folder) == []
    assert {fields["secret"] for kind, fields in folder if kind == "client"} == {KEEP}
    secrets = [secret for _, fields in FOLDER for secret in secrets_in(fields)]
    assert len(secrets) == 7
    for secret in (b"correct horse".hex(), b"12345678".hex(), *secrets):
        assert secret not in str(folder) and bytes.fromhex(secret).decode(errors="replace") not in str(folder)


async def test_two_installations_from_one_folder_are_equal(areas: Areas, tmp_path: Path, clock: SetClock) -> None:
    """Two installations that were made from one folder have the same export."""
    (tmp_path / "other").mkdir()
    async with running_areas(tmp_path / "other", clock) as other:
        for each in (areas, other):
            await engine_of(each).run(each.tenant, items(FOLDER))
        assert await export(areas) == await export(other)


async def test_a_private_key_is_kept(areas: Areas) -> None:
    """The export of a server certificate has its chain and `keep`. One that has expired meanwhile may stay."""
    engine = engine_of(areas)
    await engine.run(areas.tenant, items(FOLDER))
    folder = await export(areas)
    (first, second) = [fields for kind, fields in folder if kind == "server_certificate"]
    assert first["privateKey"] == KEEP and "BEGIN CERTIFICATE" in str(first["certificate"])
    assert "realm" not in first and second["realm"] == "LAB.example"
    areas.clock.pass_by(400 * 86_400)
    assert await signs(areas, folder) == []
    changed = [(kind, {**fields, "domain": "corp"}) for kind, fields in folder if fields is first]
    with pytest.raises(Invalid, match=r"privateKey: is `keep`"):
        await engine.plan(areas.tenant, items(changed))


async def test_a_profile_keeps_what_followed_from_its_domain(areas: Areas) -> None:
    """A file without the method and the outer identity keeps them. Other fields that it leaves out are reset."""
    engine = engine_of(areas)
    profile = {"domain": "corp", "name": "wifi", "ssids": ["office"]}
    await engine.run(areas.tenant, items([("profile", {**profile, "method": "tls", "hidden": True})]))
    (step,) = (await engine.plan(areas.tenant, items([("profile", profile)]))).changes
    assert step.fields == {"hidden": [True, False]}
    with pytest.raises(Invalid, match="give an SSID"):
        await engine.plan(areas.tenant, items([("profile", {"domain": "corp", "name": "cable"})]))


async def test_an_authority_is_removed(areas: Areas) -> None:
    """An authority that has left the files is removed. Each authority has a domain."""
    engine = engine_of(areas)
    both = [("authority", {"name": f"a{n}", "domains": ["corp"], "certificates": authority(n)}) for n in (1, 2)]
    await engine.run(areas.tenant, items(both))
    assert [each.name for each in areas.app.authorities.service.of_tenant(areas.tenant)] == ["a1", "a2"]
    await engine.run(areas.tenant, items(both[1:]), prune=Prune.ALL)
    assert [each.name for each in areas.app.authorities.service.of_tenant(areas.tenant)] == ["a2"]
    with pytest.raises(Invalid, match="domains"):
        await engine.plan(areas.tenant, items([("authority", {"name": "a3", "certificates": authority(3)})]))


async def test_users_leave_groups_and_instances_that_their_file_does_not_name(areas: Areas) -> None:
    """Assignments are those of the files. A user keeps the password, which no file has."""
    engine, lab = engine_of(areas), [("domain", {"domainName": "lab"}), POLICY, *ENDPOINTS]
    await engine.run(areas.tenant, items(lab))
    domain_id, accounts = areas.app.domains.service.named(areas.tenant, "lab").id, areas.app.users.accounts
    await accounts.update(domain_id, "ann", UserChange(password=b"CorrectHorse12"))
    moved = ("user", {"domain": "lab", "userName": "ann", "groups": ["Staff"], "instances": ["srv1"]})
    (step,) = (await engine.plan(areas.tenant, items([moved]))).changes
    assert step.fields == {"groups": [["admins", "staff"], ["staff"]], "instances": [["srv2"], ["srv1"]]}
    await engine.run(areas.tenant, items([moved]))
    found, _ = await accounts.page(UserQuery(domain_id, "name", "ann"))
    assert list(found[0].groups) == ["Staff"] and found[0].host_names == ["srv1"] and found[0].has_password
    assert not [each for kind, fields in await export(areas) if kind == "user" for each in fields if "assw" in each]


async def test_endpoints_are_pruned_with_what_depends_on_them(areas: Areas) -> None:
    """Groups, instances, users and policies that have left the files are removed, with their assignments."""
    engine, lab = engine_of(areas), [("domain", {"domainName": "lab"}), POLICY, *ENDPOINTS]
    await engine.run(areas.tenant, items(lab))
    await engine.run(areas.tenant, items([lab[0], *ENDPOINTS[1:3]]), prune=Prune.ALL)
    kinds = ("password_policy", "instance", "group", "user")
    left = [str(each.get("instanceName", kind)) for kind, each in await export(areas) if kind in kinds]
    assert left == ["srv2", "group"]
    assert await signs(areas, [lab[0], *ENDPOINTS[1:3]], prune=Prune.ALL) == []


async def test_a_secret_that_is_kept_is_not_sent_elsewhere(areas: Areas) -> None:
    """A person who may write files, but does not know the secret, cannot have it sent to another server."""
    engine, lab = engine_of(areas), ("domain", {"domainName": "lab"})
    await engine.run(areas.tenant, items(FOLDER))
    folder = {(kind, str(fields.get("directoryName"))): fields for kind, fields in await export(areas)}
    stored = folder["directory", "AD"]
    other = {**stored, "appUrl": "ldaps://evil.example.com"}
    without = {name: value for name, value in other.items() if name != "secret"}
    for wrong in (other, without):
        with pytest.raises(Invalid, match="appUrl changes"):
            await engine.plan(areas.tenant, items([lab, ("directory", wrong)]))
    factor = {"domain": "lab", "firstFactor": "radius", "radius": {"servers": [{"host": "192.0.2.66", "secret": KEEP}]}}
    with pytest.raises(Invalid, match="host changes"):
        await engine.plan(areas.tenant, items([("first_factor", factor)]))
    hook = {"domain": "lab", "provider": "webhook", "url": "https://192.0.2.66/", "secret": KEEP}
    with pytest.raises(Invalid, match="url changes"):
        await engine.plan(areas.tenant, items([("provider", hook)]))
    given = {**other, "secret": {"hex": b"of the reader".hex()}}
    await engine.run(areas.tenant, items([("directory", given)]))
    assert await signs(areas, [("directory", given)]) == []


@pytest.mark.parametrize(
    ("provider", "server", "other", "secret"),
    [
        ("duo", {"host": "api-1.duosecurity.com"}, {"host": "evil.example.com"}, "skey"),
        ("okta", {"oktaDomain": "corp.okta.com"}, {"oktaDomain": "evil.example.com"}, "apiToken"),
        ("privacyidea", {"url": "https://pi.example.com"}, {"url": "https://evil.example.com"}, "adminToken"),
        ("radius", {"host": "192.0.2.7"}, {"host": "192.0.2.66"}, "secret"),
        ("own", {"issuer": "https://id.example.com"}, {"issuer": "https://evil.example.com"}, "clientSecret"),
    ],
)
async def test_each_provider_keeps_its_secret_for_its_server(
    areas: Areas, provider: str, server: dict[str, str], other: dict[str, str], secret: str
) -> None:
    """A file that keeps the secret may change anything but the server."""
    needs = {"duo": {"ikey": "DI1"}, "own": {"factors": "totp"}}.get(provider, {})
    head = {"domain": "corp", "provider": provider, **needs}
    engine = engine_of(areas)
    await engine.run(areas.tenant, items([("provider", {**head, **server, secret: {"hex": "61" * 32}})]))
    kept = {**head, **server, secret: KEEP, "timeoutSeconds": 30}
    assert await signs(areas, [("provider", kept)]) == ["~ provider corp"]
    with pytest.raises(Invalid, match=f"{next(iter(other))} changes"):
        await engine.plan(areas.tenant, items([("provider", {**kept, **other})]))


async def test_the_domain_of_okta_is_not_that_of_the_provider(areas: Areas) -> None:
    """Both have the name `domain` in the API. The export has both, and an apply of the export changes nothing. Without
    the domain of Okta, the message names the field of files."""
    okta = {"domain": "corp", "provider": "okta", "oktaDomain": "corp.okta.com", "apiToken": {"hex": "61" * 32}}
    await engine_of(areas).run(areas.tenant, items([("provider", okta)]))
    assert areas.providers.shown(areas.domain).fields == {"domain": "corp.okta.com"}
    folder = await export(areas)
    (exported,) = [fields for kind, fields in folder if kind == "provider"]
    assert (exported["domain"], exported["oktaDomain"]) == ("corp", "corp.okta.com")
    assert await signs(areas, folder) == []
    without = {name: value for name, value in okta.items() if name != "oktaDomain"}
    with pytest.raises(Invalid, match="oktaDomain is missing"):
        await engine_of(areas).plan(areas.tenant, items([("provider", without)]))


async def test_a_directory_is_removed_in_the_background(areas: Areas) -> None:
    """A directory that has left the files is removed by a job, and is not planned again meanwhile."""
    engine, lab = engine_of(areas), ("domain", {"domainName": "lab"})
    await engine.run(areas.tenant, items([lab, *DIRECTORIES]))
    await engine.run(areas.tenant, items([lab, *DIRECTORIES[:1]]), prune=Prune.ALL)
    assert await signs(areas, [lab, *DIRECTORIES[:1]], prune=Prune.ALL) == []


async def test_names_of_other_objects_are_checked_before_anything_changes(areas: Areas) -> None:
    """A rule that names a role or a provider which neither the store nor the files have is a problem of the plan."""
    rule = {"domain": "corp", "name": "a", "action": "mfa_required", "users": ["x"]}
    wrong = [("rule", {**rule, "role": "Staff"}), ("rule", {**rule, "name": "b", "provider": "duo"})]
    with pytest.raises(Invalid) as found:
        await engine_of(areas).plan(areas.tenant, items(wrong))
    assert "role: there is no role corp/Staff" in str(found.value)
    assert "provider: there is no provider corp/duo" in str(found.value)
    role = ("role", {"domain": "corp", "role": "STAFF", "sets": []})
    await engine_of(areas).plan(areas.tenant, items([*wrong[:1], role]))


async def test_a_change_names_its_fields_without_secrets(areas: Areas) -> None:
    """A plan shows the values before and after. A secret is hidden, and `keep` keeps it."""
    engine = engine_of(areas)
    await engine.run(areas.tenant, items([("client", CLIENT)]))
    changed = {**CLIENT, "secret": "another secret of it", "note": "by the door"}
    (step,) = (await engine.plan(areas.tenant, items([("client", changed)]))).changes
    assert step.fields == {"note": ["", "by the door"], "secret": ["********", "********"]}
    await engine.run(areas.tenant, items([("client", {**CLIENT, "secret": KEEP, "note": "x"})]))
    (client,) = [each for each in areas.app.clients.service.of_tenant(areas.tenant) if each.name == "vpn"]
    assert client.secret.octets == b"correct horse battery" and client.note == "x"


async def test_all_problems_are_listed_before_anything_changes(areas: Areas) -> None:
    """Unknown fields, kinds and domains, wrong values, and `keep` without a stored secret are listed, each with its
    place. Nothing is changed, and no value is repeated."""
    wrong = [
        ("client", {**CLIENT, "name": "a", "secret": KEEP}),
        ("client", {**CLIENT, "name": "b", "address": "not-an-address"}),
        ("client", {**CLIENT, "name": "c", "tlsNmae": "x"}),
        ("client", {**CLIENT, "name": "d", "domains": ["cropp"]}),
        ("client", {**CLIENT, "name": "e", "domainIds": [1]}),
        ("rule", {"name": "f", "action": "allow", "users": ["x"]}),
        ("clients", {"name": "g"}),
        ("bypass", {"domain": "corp", "station": "02:00:00:00:00:01", "vlan": "5000"}),
        ("client", {"name": "h", "address": "203.0.113.9"}),
        ("client", CLIENT),
    ]
    with pytest.raises(Invalid) as found:
        await engine_of(areas).run(areas.tenant, items(wrong))
    lines = str(found.value).splitlines()
    assert sorted(int(line.split(":")[1]) for line in lines) == list(range(1, 10)), lines
    assert "not-an-address" not in str(found.value) and "keep" in str(found.value)
    assert not areas.app.clients.service.of_tenant(areas.tenant)


async def test_only_objects_of_files_are_pruned(areas: Areas) -> None:
    """`prune` removes objects that files have managed and that are gone, never others; not the last of a kind, and not
    more than a third, unless all are meant."""
    engine = engine_of(areas)
    clients = [("client", {**CLIENT, "name": f"c{n}", "address": f"192.0.2.{n}"}) for n in range(1, 8)]
    await engine.run(areas.tenant, items(clients[1:]))
    by_hand = await engine.plan(areas.tenant, items(clients[:1]))
    await engine.apply(by_hand)
    assert await signs(areas, clients[2:]) == []
    assert await signs(areas, clients[2:], prune=Prune.MANAGED) == ["- client c2", "- client c1"]
    with pytest.raises(Invalid, match="--prune=all"):
        await engine.plan(areas.tenant, items(clients[4:]), prune=Prune.MANAGED)
    await engine.run(areas.tenant, items(clients[6:]), prune=Prune.ALL)
    assert [each.name for each in areas.app.clients.service.of_tenant(areas.tenant)] == ["c7"]
    with pytest.raises(Invalid, match="--prune=all"):
        await engine.plan(areas.tenant, [], prune=Prune.MANAGED)


async def test_a_plan_is_not_applied_after_another_change(areas: Areas) -> None:
    """A plan that was made before another change is refused, and `run` makes a new one."""
    engine = engine_of(areas)
    plan = await engine.plan(areas.tenant, items([("client", CLIENT)]))
    await areas.app.domains.service.add(areas.tenant, "other")
    with pytest.raises(Conflict, match="has changed"):
        await engine.apply(plan)


async def test_another_tenant_is_not_touched(areas: Areas) -> None:
    """Objects of another tenant are neither read nor found by their names. An address of another tenant is refused."""
    other = await areas.app.tenancy.service.ensure_tenant(1, 9)
    await engine_of(areas).run(areas.tenant, items([("client", CLIENT)]))
    with pytest.raises(Invalid, match="no domain named corp"):
        await engine_of(areas).plan(other, items([("client", CLIENT)]))
    with pytest.raises(Conflict, match="address is not available"):
        await engine_of(areas).run(other, items([("client", {**CLIENT, "domains": []})]))
    assert not [each for each in await export(areas, other) if each[0] == "client"]


async def test_break_glass_stays_outside(areas: Areas) -> None:
    """During break-glass, a folder sets the mode to which the domain returns. Without a mode, the mode stays."""
    domains, engine = areas.app.domains.service, engine_of(areas)
    await engine.run(areas.tenant, items([("domain", {"domainName": "corp", "enforcementMode": "enforce"})]))
    await domains.break_glass()
    assert await signs(areas, [("domain", {"domainName": "corp"})]) == []
    assert domains.named(areas.tenant, "corp").mode == "monitor"
    await domains.restore()
    assert domains.named(areas.tenant, "corp").mode == "enforce"


async def test_an_exported_rule_stays_disabled(areas: Areas) -> None:
    """Also if no rule shows the defaults, because a rule that allows is not valid with the required fields alone."""
    rule = {"domain": "lab", "name": "guests", "action": "allow", "enabled": False, "everyone": True}
    folder = [("domain", {"domainName": "lab"}), ("rule", rule)]
    await engine_of(areas).run(areas.tenant, items(folder))
    exported_rule = next(fields for kind, fields in await export(areas) if kind == "rule")
    assert exported_rule["enabled"] is False
    assert await signs(areas, await export(areas)) == []
