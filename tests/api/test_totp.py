"""enrolTotp, confirmTotp, and the web page that the link of an enrolment opens."""

import html
import re
import time
from base64 import b64decode, b64encode
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pyotp
import pytest
import segno

from sallyport.base.clock import from_iso, now_us
from sallyport.base.totp import BORDER
from tests.api.world import Tenant, World, problem
from tests.running_service import running_service

ENROL = "/api/v1/endpointUsers/enrolTotp"
CONFIRM = "/api/v1/endpointUsers/confirmTotp"
NO_USER = (404, "user not found")
NOTHING_WAITS = (404, "no enrolment of this user is pending: start one first")
MARKUP = "<script>alert(1)</script>&amp;\"'"


def enrol(tenant: Tenant, **fields: Any) -> dict[str, Any]:
    """Return the answer of enrolTotp for ann."""
    made: dict[str, Any] = tenant.ask(ENROL, **{"domainId": tenant.domain, "userName": "ann", **fields})
    return made


def code(seed: str) -> str:
    """Return the code that an app shows now."""
    return pyotp.TOTP(seed).now()


def wrong(seed: str) -> str:
    """Return six digits that are not a valid code now or soon."""
    near = {pyotp.TOTP(seed).at(int(time.time()) + 30 * steps) for steps in range(-3, 6)}
    return next(f"{number:06}" for number in range(20) if f"{number:06}" not in near)


def path_of(link: str) -> str:
    """Return a link's path."""
    return str(httpx.URL(link).path)


def page(world: World, link: str, digits: str | None = None) -> httpx.Response:
    """Open the link without a token, or send the form of its page."""
    if digits is None:
        return world.http.get(path_of(link))
    return world.http.post(path_of(link), data={"code": digits})


def confirmed(tenant: Tenant, name: str = "ann") -> bool:
    """Return whether the list of users shows a seed."""
    rows = tenant.world.service.users(str(tenant.domain))
    return bool(next(row["hasTotp"] for row in rows if row["userName"] == name))


def test_an_operator_gets_no_seed_of_an_administrator(world: World, tenant: Tenant) -> None:
    """Making and confirming a seed, setting the seed or the password, and all other factors need the role admin if the
    user is an administrator. Other changes do not."""
    user_id = enrol(tenant)["userId"]
    world.service.execute(
        "insert into administrators (name, name_key, role, tenant_id, password, seed, created_at) "
        "select 'ann', 'ann', 'admin', tenant_id, '', '', 0 from domains where id = ?",
        tenant.domain,
    )
    operator = tenant.role("operator")
    asked: dict[str, Any] = {"domainId": tenant.domain, "token": operator}
    update = {"method": "PUT", "userId": user_id, **asked}
    changes = ({"password": "another horse, 43"}, {"motp": "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"})
    expected = (403, "the user is an administrator, whose factors only the role admin may change")
    try:
        assert tenant.refused(ENROL, userName="ann", **asked) == expected
        assert tenant.refused(ENROL, userId=user_id, **asked) == expected
        assert tenant.refused(CONFIRM, userName="ann", code="123456", **asked) == expected
        for change in changes:
            assert tenant.refused("/api/v1/endpointUsers/updateEpmUserInfo", **update, **change) == expected
        assert tenant.refused("/ad/RemovePasskey", userName="ann", passkeyId=1, **asked) == expected
        for path in ("/ad/MakeBypassCodes", "/ad/RemoveBypassCodes"):
            assert tenant.refused(path, userName="ann", **asked) == expected, path
        tenant.ask("/api/v1/endpointUsers/updateEpmUserInfo", **update, userType="AD")
        enrol(tenant)
    finally:
        world.service.execute("delete from administrators")


def test_the_answer_of_an_enrolment(world: World, tenant: Tenant) -> None:
    """The answer has exactly the documented fields.

    The seed has 160 bits, and the image is an SVG. The link leads to the service and is valid for an hour.
    """
    answer = enrol(tenant)
    user_id, seed = answer.pop("userId"), answer.pop("seed")
    assert isinstance(user_id, int) and len(pyotp.TOTP(seed).byte_secret()) == 20
    assert answer.pop("otpauth") == (
        f"otpauth://totp/corp:ann?secret={seed}&issuer=corp&algorithm=SHA1&digits=6&period=30"
    )
    kind, _, image = answer.pop("qrCode").partition(",")
    assert kind.startswith("data:image/svg+xml") and unquote(image).startswith("<svg")
    base, _, token = answer.pop("link").rpartition("/")
    assert base == f"http://127.0.0.1:{world.service.ports.http}/enrol" and len(token) == 43
    assert 3500_000_000 < from_iso(answer.pop("expiresAt")) - now_us() <= 3600_000_000
    (warning,) = answer.pop("warnings")
    assert "set public_url" in warning
    assert answer == {"code": 200, "status": "Success", "message": "the seed becomes valid with its first correct code"}
    assert not confirmed(tenant)


def test_a_seed_is_confirmed_once(tenant: Tenant) -> None:
    """A seed is confirmed by user id or by user name, and the code may be given in two groups of digits.

    A wrong code is answered with 400 and keeps the enrolment. A second confirmation is answered with 404.
    """
    made = enrol(tenant, userName="ANN")
    who = {"domainId": tenant.domain, "userId": made["userId"]}
    assert tenant.refused(CONFIRM, **who, code=wrong(made["seed"])) == (400, "wrong code; tries left: 4")
    assert tenant.refused(CONFIRM, **who, code="12345") == (400, "the code must have six digits")
    right = code(made["seed"])
    assert tenant.ask(CONFIRM, **who, code=f"{right[:3]} {right[3:]}") == {
        "code": 200, "status": "Success", "message": "the seed is valid now",
    }  # fmt: skip
    assert confirmed(tenant)
    assert tenant.refused(CONFIRM, **who, code=right) == NOTHING_WAITS
    assert page(tenant.world, made["link"]).status_code == 404


def test_five_wrong_codes(world: World, tenant: Tenant) -> None:
    """Five wrong codes, sent to the operation or to the page, end the enrolment and its link. Then the right code is
    refused as well.
    """
    made = enrol(tenant)
    no = wrong(made["seed"])
    who = {"domainId": tenant.domain, "userName": "ann"}
    assert [page(world, made["link"], no).status_code for _ in range(2)] == [400, 400]
    assert [tenant.refused(CONFIRM, **who, code=no)[0] for _ in range(2)] == [400, 400]
    assert tenant.refused(CONFIRM, **who, code=no) == (400, "wrong code; the enrolment has ended")
    assert tenant.refused(CONFIRM, **who, code=code(made["seed"])) == NOTHING_WAITS
    assert page(world, made["link"], code(made["seed"])).status_code == 404


def test_the_user_of_an_enrolment(world: World, tenant: Tenant) -> None:
    """If the user is unknown or of another tenant or domain, the answer is 404.

    A request without a user is answered with 400. If a scope is given, it must match.
    """
    other = world.tenant()
    theirs = enrol(other)
    branch = tenant.ask("/ad/AddDomain", domainName="branch")["domainId"]
    mine = enrol(tenant)["userId"]
    for domain, user in ((tenant.domain, theirs["userId"]), (branch, mine), (tenant.domain, 10**12), (branch, "ann")):
        named = {"userName": user} if isinstance(user, str) else {"userId": user}
        assert tenant.refused(ENROL, domainId=domain, **named) == NO_USER
        assert tenant.refused(CONFIRM, domainId=domain, **named, code=code(theirs["seed"])) == NO_USER
    for fields in ({}, {"userId": None}, {"userName": ""}):
        assert tenant.refused(ENROL, domainId=tenant.domain, **fields)[0] == 400
    for fields in ({"userId": "hunter2"}, {"userId": 2**70}, {"userId": True}):
        assert tenant.refused(ENROL, domainId=tenant.domain, **fields) == (400, "invalid userId")
    assert tenant.refused(CONFIRM, domainId=tenant.domain, userName="ann") == (400, "missing code")
    for scope in ({"orgId": other.org}, {"tenantId": 8}, {"orgId": other.org, "tenantId": 7}):
        answer = world.post(ENROL, tenant.token, json={"domainId": tenant.domain, "userName": "ann", **scope})
        assert problem(answer) == (403, "scope mismatch")
    assert page(world, theirs["link"]).status_code == 200


def test_a_bearer_and_no_scope(world: World, tenant: Tenant) -> None:
    """As in all operations under /api/v1, the token may be sent as Bearer, and the domain is sufficient without orgId
    and tenantId.
    """
    headers = {"authorization": f"Bearer {tenant.token}"}
    answer = world.http.post(ENROL, headers=headers, json={"domainId": tenant.domain, "userName": "ann"})
    assert answer.status_code == 200


def test_the_page_of_a_link(world: World, tenant: Tenant) -> None:
    """The page needs no token.

    It shows the user, the domain and the QR code any number of times. After a wrong code it is shown again with an
    error. The right code confirms the seed and ends the page.
    """
    made = enrol(tenant)
    for _ in range(3):
        opened = page(world, made["link"])
        assert opened.status_code == 200
        assert world.http.head(path_of(made["link"])).status_code == 200
    text = html.unescape(opened.text)
    assert "<strong>ann</strong> at <strong>corp</strong>" in text
    assert made["otpauth"] in text and " ".join(re.findall("....", made["seed"])) in text
    assert str(tenant.org) not in re.findall(r"\w+", re.sub(r"(?s)<style>.*?</style>|data:image[^\"]*", "", text))
    refused = page(world, made["link"], wrong(made["seed"]))
    assert refused.status_code == 400 and "4 more tries" in refused.text and made["seed"] in refused.text
    assert "six digits" in page(world, made["link"], "<b>x</b>").text
    done = page(world, made["link"], code(made["seed"]))
    assert done.status_code == 200 and made["seed"] not in done.text and "ann" not in done.text
    assert confirmed(tenant)
    assert tenant.refused(CONFIRM, domainId=tenant.domain, userName="ann", code=code(made["seed"])) == NOTHING_WAITS


def test_the_content_security_policy_of_the_page(world: World, tenant: Tenant) -> None:
    """The content security policy of the page allows only its own style and image. Nothing is loaded from another
    host.
    """
    answer = page(world, enrol(tenant)["link"])
    (style,) = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    allowed = b64encode(sha256(style.encode()).digest()).decode()
    assert answer.headers["content-security-policy"] == (
        f"default-src 'none'; style-src 'sha256-{allowed}'; img-src data:; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    assert [each[:5] for each in re.findall(r'(?:src|href)="([^"]*)"', answer.text)] == ["otpau", "data:"]
    assert not re.search(r"style=|on\w+=|<script|<link", answer.text.replace(" content=", ""))


def test_links_that_open_nothing_look_the_same(world: World, tenant: Tenant) -> None:
    """An unknown, malformed, used or replaced link returns the same page for GET and POST."""
    used, replaced = enrol(tenant), enrol(tenant)
    last = enrol(tenant)
    assert page(world, last["link"], code(last["seed"])).status_code == 200
    token = path_of(last["link"]).removeprefix("/enrol/")
    paths = [path_of(each["link"]) for each in (used, replaced, last)]
    paths += ["/enrol/x", f"/enrol/{'A' * 43}", f"/enrol/{token}x", f"/enrol/{token[:-1]}", f"/enrol/{'x' * 5000}"]
    paths += ["/enrol/%00", "/enrol/%ff%fe", "/enrol/..%5c", "/enrol/' or 1=1 --"]
    answers = [world.http.get(path) for path in paths]
    answers += [world.http.post(path, data={"code": code(last["seed"])}) for path in paths]
    assert {(each.status_code, each.content) for each in answers} == {(404, answers[0].content)}
    assert {each.headers["referrer-policy"] for each in answers} == {"no-referrer"}


def test_names_with_markup(world: World, tenant: Tenant) -> None:
    """Names that contain markup are shown as plain text on the page and in the app."""
    domain = tenant.ask("/ad/AddDomain", domainName=MARKUP)["domainId"]
    tenant.user(MARKUP, domain=domain)
    made = enrol(tenant, domainId=domain, userName=MARKUP)
    read = pyotp.parse_uri(made["otpauth"])
    assert (read.issuer, read.name) == (MARKUP, MARKUP)
    text = page(world, made["link"]).text
    assert "<script" not in text and text.count("<strong>") == 2
    assert html.unescape(text).count(MARKUP) == 2


def test_long_names_fit(world: World, tenant: Tenant) -> None:
    """The longest user name in the longest domain name gets a QR code and a page."""
    domain = tenant.ask("/ad/AddDomain", domainName="上" * 255)["domainId"]
    tenant.user("海" * 84, domain=domain)
    made = enrol(tenant, domainId=domain, userName="海" * 84)
    assert page(world, made["link"]).status_code == 200
    assert page(world, made["link"], code(made["seed"])).status_code == 200


def test_concurrent_confirmations(world: World, tenant: Tenant) -> None:
    """Of twenty concurrent right confirmations, by operation and by page, exactly one succeeds."""
    made = enrol(tenant)
    body = {"domainId": tenant.domain, "userName": "ann", "code": code(made["seed"])}

    def confirm(number: int) -> int:
        if number % 2:
            return page(world, made["link"], body["code"]).status_code
        return world.post(CONFIRM, tenant.token, json=body).status_code

    with ThreadPoolExecutor(10) as pool:
        assert sorted(pool.map(confirm, range(20))) == [200] + [404] * 19


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"code=" + b"1" * (2 << 20), "application/x-www-form-urlencoded", 413),
        (b'{"code": "123456"}', "application/json", 415),
        (b"code=123456", "text/plain", 415),
        (b"code=123456&" * 1000, "application/x-www-form-urlencoded", 413),
        (b"&" * 3000, "application/x-www-form-urlencoded", 400),
        (b"", "application/x-www-form-urlencoded", 400),
    ],
)
def test_malformed_forms_of_the_page(world: World, tenant: Tenant, content: bytes, kind: str, status: int) -> None:
    """A malformed form of the page does not count as a wrong code."""
    made = enrol(tenant)
    answer = world.http.post(path_of(made["link"]), content=content, headers={"content-type": kind})
    assert answer.status_code == status
    assert page(world, made["link"], wrong(made["seed"])).text.count("4 more tries") == 1


def test_secrets_are_nowhere(world: World, tenant: Tenant) -> None:
    """No token, seed or code is in the log, the metrics or a file. The metrics have the route as a template."""
    made = enrol(tenant)
    page(world, made["link"])
    world.http.request("PATCH", path_of(made["link"]))
    world.http.get(path_of(made["link"]) + "/more")
    page(world, made["link"], code(made["seed"]))
    token, metrics = path_of(made["link"]).removeprefix("/enrol/"), world.http.get("/metrics").text
    assert 'route="/enrol/{token}"' in metrics
    for where in (world.service.log().encode(), metrics.encode(), world.service.stored()):
        assert token.encode() not in where
        assert made["seed"].encode() not in where
        assert b64decode(token + "=", altchars=b"-_") not in where
    assert "/enrol/" not in world.http.get("/openapi.json").text


def test_a_restart_and_another_base_of_links(tmp_path: Path) -> None:
    """A link and a confirmed seed stay valid after a restart. A new link begins with the configured base URL."""
    with running_service(tmp_path, {"SALLYPORT_PUBLIC_URL": "https://door.example.org/sally/"}) as service:
        service.add_user("ann", b"hello")
        made = service.run("/api/v1/endpointUsers/enrolTotp", {"userName": "ann"}, domain="default")
        prefix = "https://door.example.org/sally/enrol/"
        assert made["link"].startswith(prefix)
        service.kill()
        service.start()
        path = "/enrol/" + made["link"].removeprefix(prefix)
        answer = service.request("POST", path, token="", data={"code": code(made["seed"])})
        assert answer.status_code == 200
        service.kill()
        service.start()
        assert service.users()[0]["hasTotp"] is True


def test_a_restore_brings_back_the_seeds_of_the_backup(world: World, tenant: Tenant, tmp_path: Path) -> None:
    """A restore brings back the seeds of the backup at once and removes later ones."""
    copy = str(tmp_path / "copy.db")
    assert world.service.cli("db", "backup", copy).returncode == 0
    made = enrol(tenant)
    assert page(world, made["link"], code(made["seed"])).status_code == 200
    assert confirmed(tenant)
    assert world.service.cli("db", "restore", copy, "--yes").returncode == 0
    assert not confirmed(tenant)
    assert page(world, made["link"]).status_code == 404


def test_the_issuer_name_of_the_domain(tenant: Tenant) -> None:
    """The URI and the QR code of an enrolment contain the issuer name of the domain."""
    tenant.ask("/ad/UpdateDomain", domainId=tenant.domain, issuerName="Exämple VPN")
    answer = enrol(tenant)
    assert pyotp.parse_uri(answer["otpauth"]).issuer == "Exämple VPN"
    assert answer["qrCode"] == segno.make_qr(answer["otpauth"], error="m").svg_data_uri(
        scale=4, border=BORDER, dark="#000", light="#fff"
    )
    listed = tenant.ask("/ad/GetAllDomains")["domains"]
    assert [each["issuerName"] for each in listed] == ["Exämple VPN"]
