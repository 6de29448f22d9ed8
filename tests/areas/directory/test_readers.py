"""The reader that is made from the settings of a directory, and a complete run of a cloud directory."""

import json

import pytest
import trio
from joserfc.jwk import RSAKey

from sallyport.areas.directory.directory import DirectoryConfiguration, DirectoryKind
from sallyport.areas.directory.imports.job import ATTRIBUTES, DirectorySource
from sallyport.areas.directory.imports.readers import graph_source, ldap_source, okta_source
from sallyport.areas.directory.reading import ReadError
from sallyport.areas.directory.reading.connection import Account
from sallyport.areas.directory.reading.graph import GRAPH, LOGIN
from sallyport.areas.directory.reading.search import ACCOUNTS
from sallyport.base.clock import SECOND
from sallyport.base.errors import Invalid
from sallyport.base.secret import Secret
from sallyport.store.model import ListQuery
from tests.areas import Areas
from tests.areas.directory.reading.graph_server import CLIENT_ID, CLIENT_SECRET, TENANT, GraphServer
from tests.areas.directory.world import over
from tests.areas.mfa.web import serving
from tests.outgoing import costly_keys
from tests.waiting import until

SECRET = Secret(b"hunter2")


def source(app_url: str, account: str = "", secret: Secret | None = SECRET, **settings: str) -> DirectorySource:
    """Return the settings of a directory."""
    return DirectorySource(1, "ldap", app_url, account, settings, secret)


def test_ldap_settings_are_read() -> None:
    """appUrl may contain several servers. The account is bindDN or, if that is missing, accountName. Mapped attributes
    are added.
    """
    found = ldap_source(
        source("ldaps://dc1 , ldap://dc2:3268", "ann", baseDN="dc=x", startTls="true", **{ATTRIBUTES: "mail,nick"})
    )
    assert [(server.url, server.start_tls) for server in found.servers] == [
        ("ldaps://dc1", True),
        ("ldap://dc2:3268", True),
    ]
    assert (found.account, found.accounts, found.attributes) == (Account("ann", "hunter2"), ACCOUNTS, ("mail", "nick"))
    found = ldap_source(source("ldap://127.0.0.1:1", "ann", bindDN="cn=b", baseDN="dc=x", filter="uid=*"))
    assert (found.account, found.accounts) == (Account("cn=b", "hunter2"), "(uid=*)")
    assert ldap_source(source("ldap://dc1", baseDN="dc=x", secret=None)).account is None


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (source("", baseDN="dc=x"), "no appUrl"),
        (source("http://dc1", baseDN="dc=x"), "appUrl"),
        (source("ldaps://dc1/dc=x", baseDN="dc=x"), "appUrl"),
        (source("ldaps://dc1"), "baseDN"),
        (source("ldaps://dc1", baseDN="x"), "baseDN"),
        (source("ldaps://dc1", baseDN="dc=x", filter="(&(uid=*)"), "filter"),
        (source("ldaps://dc1", baseDN="dc=x", caCertificate="hunter2"), "caCertificate"),
        (source("ldaps://dc1", "ann", None, baseDN="dc=x"), "no bindPassword"),
        (source("ldap://dc1", "ann", baseDN="dc=x"), "unencrypted"),
    ],
)
def test_wrong_ldap_settings_are_reported(given: DirectorySource, why: str) -> None:
    """If a setting is wrong, the message names it and does not contain the secret."""
    with pytest.raises(ReadError, match=why) as error:
        ldap_source(given)
    assert "hunter2" not in str(error.value)


def test_graph_settings_are_read() -> None:
    """appUrl selects the cloud. The application is clientId or, if that is missing, accountName."""
    found = graph_source(source("", "app", tenant="corp"))
    assert (found.graph, found.login, found.client_id, found.tenant) == (GRAPH, LOGIN, "app", "corp")
    found = graph_source(source("https://graph.microsoft.us/v1.0", clientId="app", tenant="corp"))
    assert (found.graph, found.login) == ("https://graph.microsoft.us", "https://login.microsoftonline.us")
    found = graph_source(source("http://127.0.0.1:81", clientId="app", tenant="corp"))
    assert found.login == "http://127.0.0.1:81"


@pytest.mark.parametrize(
    "given",
    [
        source("https://evil.example", "app", tenant="corp"),
        source("http://graph.microsoft.com", "app", tenant="corp"),
        source("https://graph.microsoft.com@evil.example", "app", tenant="corp"),
        source("", "app"),
        source("", tenant="corp"),
        source("", "app", None, tenant="corp"),
    ],
)
def test_wrong_graph_settings_are_refused(given: DirectorySource) -> None:
    """The secret is sent only to the login host of the selected cloud."""
    with pytest.raises(ReadError):
        graph_source(given)


def test_okta_settings_are_read() -> None:
    """The URL is the origin of appUrl. If clientId is missing, the secret is an API token."""
    found = okta_source(source("corp.okta.com", "admin@corp.example"))
    assert (found.url, found.client_id) == ("https://corp.okta.com", "")
    assert okta_source(source("https://corp.okta.com/admin?x=1", clientId="app")).client_id == "app"


@pytest.mark.parametrize(
    "wrong",
    [source("http://corp.okta.com"), source("", "x"), source("https://corp.okta.com", secret=None)],
    ids=["unencrypted", "no URL", "no secret"],
)
def test_wrong_okta_settings_are_refused(wrong: DirectorySource) -> None:
    """If the settings are wrong, the reading fails before its first request."""
    with pytest.raises(ReadError):
        okta_source(wrong)


async def test_a_cloud_directory_is_read_into_users(areas: Areas) -> None:
    """The first reading adds all users, and the second one writes the changes. A failed reading changes nothing."""
    graph, directories = GraphServer(), areas.directory.directories
    async with serving(graph) as graph.web, trio.open_nursery() as nursery:
        nursery.start_soon(areas.directory.jobs.run)
        for number in range(1, 4):
            graph.add_user(f"u{number}", f"user{number}@corp.example", city=f"City {number}", employeeId=f"00{number}")
        graph.add_group("g1", "vpn", "u1", "g2")
        graph.add_group("g2", "admins", "u2")
        settings = {"tenant": TENANT, "clientId": CLIENT_ID}
        said = DirectoryConfiguration(
            "entra", DirectoryKind.GRAPH, app_url=graph.url, settings=settings, secret=CLIENT_SECRET.encode()
        )
        await directories.save([(areas.domain, said)])
        job = await over(areas, await directories.sync(areas.domain, "entra"))
        assert (job.state, job.added, job.failed, job.message) == ("DONE", 5, 0, "")
        stretch = ListQuery(areas.domain, 0, 100)
        users, _ = await directories.users(stretch, "", cloud=True)
        assert [(user.name, user.source, user.status) for user in users] == [
            (f"user{number}@corp.example", "graph", "active") for number in range(1, 4)
        ]
        (vpn,) = [group for group in (await directories.groups(stretch, ""))[0] if group.name == "vpn"]
        assert [user.name for user in (await directories.users_of_group(vpn.id, stretch, ""))[0]] == [
            "user1@corp.example", "user2@corp.example",
        ]  # fmt: skip

        graph.add_user("u1", "user1@corp.example", accountEnabled=False)
        graph.remove("users", "u3")
        job = await over(areas, await directories.sync(areas.domain, "entra"))
        assert (job.state, job.total, job.updated, job.removed) == ("DONE", 2, 1, 1)
        users, _ = await directories.users(stretch, "", cloud=True)
        assert [(user.name, user.status) for user in users] == [
            ("user1@corp.example", "disabled"), ("user2@corp.example", "active"),
        ]  # fmt: skip

        graph.leads_to = "http://127.0.0.1:1"
        await directories.save([(areas.domain, DirectoryConfiguration("entra", secret=b"wrong"))])
        job = await over(areas, await directories.sync(areas.domain, "entra"))
        assert (job.state, job.message) == (
            "FAILED",
            "Entra ID refuses the application: check tenant, clientId and clientSecret",
        )
        assert (await directories.users(stretch, "", cloud=True))[1] == 2
        domain, counted = str(areas.domain), areas.registry.get_sample_value
        failed = {"domain": domain, "state": "FAILED"}
        await until(
            lambda: counted("sallyport_import_jobs_total", failed) == 1.0
        )  # the counter is incremented after the job has ended
        for state, number in (("DONE", 2.0), ("FAILED", 1.0)):
            assert counted("sallyport_import_jobs_total", {"domain": domain, "state": state}) == number
        entries = {"domain": domain, "result": "removed"}
        assert counted("sallyport_directory_sync_entries_total", entries) == 1.0
        assert counted("sallyport_directory_sync_duration_seconds_count", {"kind": "graph"}) == 2.0
        last = counted("sallyport_directory_sync_last_success_timestamp_seconds", {"domain": domain})
        assert last == areas.clock.now / SECOND
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    "key",
    [
        costly_keys.ENCRYPTED["PKCS#8"],
        costly_keys.pem(costly_keys.LONG_RSA),
        json.dumps(RSAKey.import_key(costly_keys.LONG_RSA).as_dict(private=True)),
        '{"kty": "RSA"}',
        "an API token",
    ],
    ids=["encrypted", "RSA of 6144 bits", "JWK of RSA of 6144 bits", "part of a JWK", "API token"],
)
async def test_an_unusable_private_key_is_not_saved(areas: Areas, key: str) -> None:
    """A clientSecret that is not a usable private key, in PEM or as a JWK, is refused. Nothing is saved."""
    directories = areas.directory.directories
    said = DirectoryConfiguration("okta", DirectoryKind.OKTA, settings={"clientId": "0oa1"}, secret=key.encode())
    with pytest.raises(Invalid) as refused:
        await directories.save([(areas.domain, DirectoryConfiguration("other")), (areas.domain, said)])
    assert [each.field for each in refused.value.fields] == ["clientSecret"]
    assert not await directories.of_domain(areas.domain)


async def test_other_secrets_are_not_checked_as_keys(areas: Areas) -> None:
    """A valid JWK is saved. Without a clientId, any password or API token is saved."""
    key = json.dumps(RSAKey.generate_key(2048).as_dict(private=True)).encode()
    saved = [
        DirectoryConfiguration("app", DirectoryKind.OKTA, settings={"clientId": "0oa1"}, secret=key),
        DirectoryConfiguration("okta", DirectoryKind.OKTA, secret=b"{an API token"),
        DirectoryConfiguration("ldap", DirectoryKind.LDAP, secret=b"{a password"),
    ]
    await areas.directory.directories.save([(areas.domain, each) for each in saved])
    assert len(await areas.directory.directories.of_domain(areas.domain)) == 3
