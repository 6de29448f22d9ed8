"""The operations of network profiles, and the page and the files behind their link."""

import json
import plistlib
from base64 import b64decode
from typing import Any

import httpx
import pytest
from markupsafe import escape

from tests.api.world import Tenant, World
from tests.peers.authority import Authority

SET, LIST, SHOW, REMOVE = "/ad/SetProfile", "/ad/ListProfiles", "/ad/ShowProfile", "/ad/RemoveProfile"
FILE, LINK = "/ad/GetProfileFile", "/ad/MakeProfileLink"
MARKUP = "<b>&amp;\"'x"
APPLE = "application/x-apple-aspen-config"


@pytest.fixture(autouse=True)
def certificate(world: World) -> None:
    """Give the service a certificate, unless it has one."""
    if not (world.service.data_dir / "certs" / "ca.pem").exists():
        world.service.call("cert.init", ca_name="Tests CA", hosts=["radius.example.org"])


def set_profile(tenant: Tenant, name: str = "Office", **fields: Any) -> None:
    """Set a profile of the tenant's domain."""
    tenant.ask(SET, domainId=tenant.domain, name=name, **{"ssids": ["Office"], **fields})


def link_of(tenant: Tenant, name: str = "Office", **fields: Any) -> str:
    """Make a link, and return its path."""
    return str(httpx.URL(tenant.ask(LINK, domainId=tenant.domain, name=name, **fields)["link"]).path)


def test_profiles_are_set_listed_shown_and_removed(tenant: Tenant) -> None:
    """The answer has all fields. A second change keeps the fields that it does not have."""
    set_profile(tenant, "guests", wired=True, ssids=[])
    set_profile(
        tenant, ssids=["Office", "Büro \U0001f600", "Office"], serverNames="RADIUS.example.org", security="wpa3"
    )
    tenant.ask(SET, domainId=tenant.domain, name="office", hidden="yes", loginBy="both")
    answer = tenant.ask(LIST, domainId=tenant.domain)
    assert (answer["totalCount"], [each["name"] for each in answer["profiles"]]) == (2, ["guests", "Office"])
    assert [each["name"] for each in tenant.ask(LIST, domainId=tenant.domain, search="FIC")["profiles"]] == ["Office"]
    shown = tenant.ask(SHOW, domainId=tenant.domain, name="Office")
    entry = answer["profiles"][1]
    assert entry.items() <= shown.items()
    assert entry == {
        "profileId": entry["profileId"], "domainId": tenant.domain, "name": "Office",
        "ssids": ["Office", "Büro \U0001f600"], "hidden": True, "security": "wpa3", "wired": False, "method": "peap",
        "loginBy": "both", "outerIdentity": "anonymous@corp", "serverNames": ["radius.example.org"], "anchors": "",
        "linkExpiresAt": "",
        "warnings": ["the domain's first factor is local, which knows no passwords of machines: use tls for machines"],
    }  # fmt: skip
    assert shown["trustedNames"] == ["radius.example.org"] and shown["problem"] == ""
    (anchor,) = shown["trustedAnchors"]
    assert anchor["name"] == "Tests CA" and len(anchor["sha1"]) == 40
    assert [each["file"] for each in shown["files"]] == [
        "office.mobileconfig", "office-1.xml", "office-2.xml", "office-onc.json", "office-1.nmconnection",
        "office-2.nmconnection", "office-wpa_supplicant.conf", "office-authority.crt",
    ]  # fmt: skip
    assert {"title": "EAP method", "value": "PEAP"} in shown["androidSettings"]
    tenant.ask(REMOVE, domainId=tenant.domain, name="OFFICE")
    assert tenant.refused(SHOW, domainId=tenant.domain, name="Office") == (404, "profile not found")


def test_each_file_is_returned(tenant: Tenant) -> None:
    """A file is in base64. The user name is in those files that have one."""
    set_profile(tenant, wired=True)
    for each in tenant.ask(SHOW, domainId=tenant.domain, name="Office")["files"]:
        got = tenant.ask(FILE, domainId=tenant.domain, name="Office", file=each["file"], userName="ann")
        assert (got["file"], got["mediaType"]) == (each["file"], each["mediaType"])
        content = b64decode(got["content"])
        assert content
        assert (b"ann" in content.replace(b"anonymous", b"")) >= (each["kind"] in ("apple", "networkmanager"))
    refused = tenant.refused(FILE, domainId=tenant.domain, name="Office", file="office.exe")
    assert refused[0] == 404 and "no such file" in refused[1]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"name": "x" * 65}, id="name"),
        pytest.param({"name": "a\u202eb"}, id="a name that reads backwards"),
        pytest.param({"ssids": ["x" * 33]}, id="a long ssids"),
        pytest.param({"ssids": ["ü" * 17]}, id="ssids of many octets"),
        pytest.param({"ssids": [""]}, id="an empty ssids"),
        pytest.param({"ssids": ["a\nb"]}, id="ssids with a line break"),
        pytest.param({"ssids": ["a\x00b"]}, id="ssids with a null"),
        pytest.param({"ssids": ["a\ufffe"]}, id="ssids that XML cannot carry"),
        pytest.param({"ssids": [f"n{number}" for number in range(17)]}, id="many ssids"),
        pytest.param({"ssids": []}, id="no ssids"),
        pytest.param({"serverNames": ["*.example.org"]}, id="serverNames with a wildcard"),
        pytest.param({"serverNames": ["a.example;b.example"]}, id="serverNames with a semicolon"),
        pytest.param({"serverNames": ["192.0.2.1"]}, id="serverNames with an address"),
        pytest.param({"serverNames": [f"r{number}.example" for number in range(17)]}, id="many serverNames"),
        pytest.param({"outerIdentity": "a\n[wifi]"}, id="outerIdentity with a line break"),
        pytest.param({"outerIdentity": "x" * 254}, id="a long outerIdentity"),
        pytest.param({"anchors": "x"}, id="anchors without a certificate"),
        pytest.param({"anchors": "x" * 16_385}, id="long anchors"),
        pytest.param({"security": "wep"}, id="security"),
        pytest.param({"method": "md5"}, id="method"),
    ],
)
def test_invalid_fields_are_named(tenant: Tenant, fields: dict[str, Any]) -> None:
    """A refused field is named, and nothing is stored."""
    body = {"domainId": tenant.domain, "name": "Office", "ssids": ["Office"], **fields}
    answer = tenant.world.post(SET, tenant.token, json=tenant.scoped(**body))
    assert answer.status_code == 400 and next(iter(fields)) in answer.text
    assert all(next(iter(fields)) in each["field"] for each in answer.json()["errors"])
    assert tenant.ask(LIST, domainId=tenant.domain)["totalCount"] == 0


def test_text_that_is_no_unicode(tenant: Tenant) -> None:
    """A lone surrogate, which UTF-8 cannot encode, is refused."""
    text = json.dumps(tenant.scoped(domainId=tenant.domain, name="x", ssids=["SSID"])).replace("SSID", "\\ud800")
    headers = {"content-type": "application/json"}
    assert tenant.world.post(SET, tenant.token, content=text, headers=headers).status_code == 400


def test_the_page_and_the_files_of_a_link(world: World, tenant: Tenant) -> None:
    """Without a token, the page has the files and the settings for Android, with all values escaped. The content type
    makes an iPhone offer to install the profile.
    """
    set_profile(tenant, MARKUP, ssids=[MARKUP])
    path = link_of(tenant, MARKUP)
    page = world.http.get(path)
    assert page.status_code == 200 and MARKUP not in page.text and str(escape(MARKUP)) in page.text
    assert "radius.example.org" in page.text and "script" not in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"
    names = [each["file"] for each in tenant.ask(SHOW, domainId=tenant.domain, name=MARKUP)["files"]]
    for name in names:
        file = world.http.get(f"{path}/{name}")
        assert file.status_code == 200 and file.headers["x-content-type-options"] == "nosniff"
        assert (f'{path.rpartition("/")[2]}/{name}"' in page.text) == (not name.endswith("onc.json"))
        assert file.headers["content-disposition"].endswith(f'; filename="{name}"')
    profile = world.http.get(f"{path}/{names[0]}")
    assert profile.headers["content-type"] == APPLE and profile.headers["content-disposition"].startswith("inline")
    assert plistlib.loads(profile.content)["PayloadContent"][1]["SSID_STR"] == MARKUP
    assert world.http.get(f"{path}/{names[0]}x").status_code == 404
    assert world.http.get(f"{path}/..%2f..%2fetc%2fpasswd").status_code == 404


def test_a_link_that_is_not_valid(world: World, tenant: Tenant) -> None:
    """An unknown, an incomplete and a replaced link give no page and no file, and say nothing about profiles."""
    set_profile(tenant)
    old = link_of(tenant)
    new = link_of(tenant, days="3")
    for path in (old, new[:-1], f"{new}x", "/profile/%2e%2e%2f", f"/profile/{'A' * 43}"):
        assert world.http.get(path).status_code == 404
        assert world.http.get(f"{path}/office.mobileconfig").status_code == 404
    assert world.http.get(new).status_code == 200 and world.http.post(new, data={"a": "b"}).status_code == 200
    ended = tenant.ask(LINK, domainId=tenant.domain, name="Office", days=0)
    assert (ended["link"], ended["linkExpiresAt"]) == ("", "") and world.http.get(new).status_code == 404
    for days in (-1, 367, "x"):
        assert tenant.refused(LINK, domainId=tenant.domain, name="Office", days=days)[0] == 400


def test_a_profile_whose_authority_is_foreign(world: World, tenant: Tenant) -> None:
    """A profile with an authority that did not issue the server's certificate has no files."""
    ca = world.service.data_dir / "certs" / "ca.pem"
    set_profile(tenant, anchors=ca.read_text())
    assert tenant.ask(SHOW, domainId=tenant.domain, name="Office")["problem"] == ""
    set_profile(tenant, anchors=Authority("foreign").pem)
    shown = tenant.ask(SHOW, domainId=tenant.domain, name="Office")
    assert "none of the anchors issued" in shown["problem"] and shown["trustedAnchors"] == []
    refused = tenant.refused(FILE, domainId=tenant.domain, name="Office", file="office.mobileconfig")
    assert refused[0] == 409
    path = link_of(tenant)
    for each in (path, f"{path}/office.mobileconfig"):
        answer = world.http.get(each)
        assert answer.status_code == 409 and "cannot be made at present" in answer.text and "anchors" not in answer.text
        assert (answer.headers["cache-control"], answer.headers["referrer-policy"]) == ("no-store", "no-referrer")


@pytest.mark.parametrize("path", [SET, LIST, SHOW, REMOVE, FILE, LINK])
def test_another_tenants_profiles(tenant: Tenant, path: str) -> None:
    """A tenant reaches no profile of another tenant, by the domain or in its own domain."""
    set_profile(tenant)
    other = tenant.world.tenant()
    fields = {"file": "office.mobileconfig", "ssids": ["x"], "name": "Office"}
    needed = {FILE: ("name", "file"), SET: ("name", "ssids"), LIST: ()}.get(path, ("name",))
    body = {name: fields[name] for name in needed}
    assert other.refused(path, domainId=tenant.domain, **body) == (403, "domain not in tenant")
    if path in (SHOW, REMOVE, FILE, LINK):
        assert other.refused(path, domainId=other.domain, **body) == (404, "profile not found")


def test_who_may_do_what(tenant: Tenant) -> None:
    """An auditor reads, an operator makes links, and only an admin decides which server devices trust."""
    set_profile(tenant)
    body: dict[str, Any] = {"domainId": tenant.domain, "name": "Office"}
    auditor, operator = tenant.role("auditor"), tenant.role("operator")
    tenant.ask(FILE, token=auditor, file="office.mobileconfig", **body)
    tenant.ask(LINK, token=operator, **body)
    assert tenant.refused(LINK, token=auditor, **body) == (403, "role not allowed")
    for path in (SET, REMOVE):
        assert tenant.refused(path, token=operator, **body) == (403, "role not allowed")
