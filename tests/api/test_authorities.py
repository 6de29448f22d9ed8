"""The operations of authorities."""

from sallyport.web.examples import EXAMPLE_AUTHORITY
from tests.api.world import Tenant

ADD, LIST, GET = "/ad/AddAuthority", "/ad/ListAuthorities", "/ad/GetAuthority"
UPDATE, REMOVE = "/ad/UpdateAuthority", "/ad/DeleteAuthority"
KEY = "certificates"


def test_an_authority_is_added_changed_and_removed(tenant: Tenant) -> None:
    """The answers have all fields; only the answer about one authority has its certificates."""
    number = tenant.ask(ADD, name="Intune", certificates=EXAMPLE_AUTHORITY, domainIds=[tenant.domain])["authorityId"]
    (listed,) = tenant.ask(LIST)["authorities"]
    assert KEY not in listed
    shown = tenant.ask(GET, authorityId=number)
    assert shown.pop(KEY) == EXAMPLE_AUTHORITY
    assert shown == listed
    (anchor,) = listed.pop("anchors")
    assert (anchor["subject"], anchor["validUntil"], len(anchor["key"])) == (
        "CN=Example Issuing CA", "2126-01-01T00:00:00.000000Z", 64,
    )  # fmt: skip
    assert listed == {
        "authorityId": number, "name": "Intune", "domainIds": [tenant.domain], "kinds": ["people", "machines"],
        "realms": [], "groups": [], "sidPrefixes": [], "names": ["upn", "mail", "dns", "cn"], "strongNames": [],
        "strongOnly": False, "revocation": "soft", "crlAddresses": [], "ocspAddress": "", "ocspNonce": False,
        "useCertificateAddresses": True, "warnings": [],
    }  # fmt: skip
    change = {
        "names": ["sid", "upn"], "kinds": "machines", "sidPrefixes": ["s-1-5-21-7"], "realms": ["@corp.example"],
        "revocation": "hard", "ocspAddress": "http://pki.example.com/ocsp",
    }  # fmt: skip
    tenant.ask(UPDATE, authorityId=number, **change)
    shown = tenant.ask(GET, authorityId=number)
    expected = {
        **change, "kinds": ["machines"], "strongNames": ["sid"], "sidPrefixes": ["S-1-5-21-7"],
        "realms": ["corp.example"],
    }  # fmt: skip
    assert {name: shown[name] for name in expected} == expected
    assert tenant.ask(LIST, domainId=tenant.domain, search="INT")["totalCount"] == 1
    assert tenant.ask(LIST, search="x")["totalCount"] == 0
    tenant.ask(REMOVE, authorityId=number)
    assert tenant.refused(GET, authorityId=number)[0] == 404


def test_wrong_fields_are_named(tenant: Tenant) -> None:
    """The error names the field, also if the certificates were read in a worker thread."""
    given = {"name": "x", "certificates": EXAMPLE_AUTHORITY, "domainIds": [tenant.domain]}
    for field, value in {
        "certificates": "-----BEGIN CERTIFICATE-----",
        "domainIds": [],
        "kinds": ["robots"],
        "names": [],
        "realms": ["a@b"],
        "sidPrefixes": ["S-1-x"],
        "crlAddresses": ["ldap://dc/cn=ca"],
        "ocspAddress": "http://user@host/",
        "revocation": "never",
    }.items():
        status, text = tenant.refused(ADD, **{**given, field: value})
        assert (status, field in text) == (400, True), (field, text)


def test_authorities_of_another_tenant_are_unknown(tenant: Tenant) -> None:
    """Neither an id nor a domain of another tenant is accepted, and only an admin changes authorities."""
    other = tenant.world.tenant()
    given = {"name": "x", "certificates": EXAMPLE_AUTHORITY}
    number = other.ask(ADD, **given, domainIds=[other.domain])["authorityId"]
    assert tenant.refused(GET, authorityId=number)[0] == 404
    assert tenant.refused(UPDATE, authorityId=number, name="y")[0] == 404
    assert tenant.refused(REMOVE, authorityId=number)[0] == 404
    assert tenant.refused(ADD, **given, domainIds=[other.domain])[0] == 403
    assert tenant.refused(UPDATE, authorityId=number, domainIds=[other.domain])[0] == 403
    assert tenant.ask(LIST)["totalCount"] == 0
    assert tenant.refused(ADD, token=tenant.role("operator"), **given, domainIds=[tenant.domain])[0] == 403


def test_the_revocation_lists_of_an_authority_are_listed(tenant: Tenant) -> None:
    """A list of the settings is shown with the reason why it is missing, and is fetched again on request."""
    given = {"name": "Lists", "certificates": EXAMPLE_AUTHORITY, "domainIds": [tenant.domain]}
    address = "http://127.0.0.1:9/ca.crl"
    number = tenant.ask(ADD, crlAddresses=[address], **given)["authorityId"]
    found: list[dict[str, object]] = []
    while not found or not found[0]["error"]:
        found = tenant.ask("/ad/ListRevocationLists", authorityId=number)["lists"]
    (shown,) = found
    assert (shown["address"], shown["state"], shown["entries"], shown["thisUpdate"]) == (address, "missing", 0, None)
    assert "127.0.0.1" in str(shown["error"])
    assert tenant.ask("/ad/FetchRevocationLists", authorityId=number)["message"] == (
        "fetching 1 revocation list of authority Lists"
    )
    tenant.ask(REMOVE, authorityId=number)
    assert tenant.refused("/ad/ListRevocationLists", authorityId=number)[0] == 404
