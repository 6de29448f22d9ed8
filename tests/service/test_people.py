"""The addresses of the pages of people in a running service: their paths, their limits, and the log."""

import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.ports import free_port
from tests.running_service import RunningService, running_service
from tests.web.serving import make_certificate

CODE = "K7M4PQ2X"
FORM = {"sec-fetch-site": "same-origin"}


@dataclass
class WithPages:
    """A service with pages of people, and their URL."""

    service: RunningService
    url: str
    certificate: Path

    def client(self, source: str = "198.51.100.7") -> httpx.Client:
        """Return a client of the pages, at an address that the proxy on loopback names."""
        headers = {"x-forwarded-for": source}
        trust = ssl.create_default_context(cafile=self.certificate)
        return httpx.Client(base_url=self.url, verify=trust, headers=headers, trust_env=False)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithPages]:
    """Yield a service with TLS and pages of people, behind a proxy on loopback."""
    folder, port = tmp_path_factory.mktemp("people"), free_port()
    tls = make_certificate(folder)
    url = f"https://127.0.0.1:{port}"
    settings = {
        "SALLYPORT_PEOPLE_BIND": f"127.0.0.1:{port},127.0.0.2:{port}", "SALLYPORT_PUBLIC_URL": url,
        "SALLYPORT_TLS_CERTIFICATE": str(tls.certificate), "SALLYPORT_TLS_KEY": str(tls.key),
        "SALLYPORT_TRUSTED_PROXIES": "127.0.0.1", "SALLYPORT_LOG_LEVEL": "debug",
        "SALLYPORT_SMTP_HOST": "127.0.0.1", "SALLYPORT_SMTP_FROM": "sallyport@example.org",
    }  # fmt: skip
    with running_service(folder, settings) as service:
        yield WithPages(service, url, tls.certificate)


def test_the_two_addresses_have_nothing_in_common(pages: WithPages) -> None:
    """The address of the pages has no API, console, metrics, health and documentation. The other one has no pages."""
    others = ["/", "/sign-in", "/metrics", "/healthz", "/readyz", "/docs", "/openapi.json", "/profile/x"]
    token = {"x-authorization": pages.service.token}
    with pages.client() as client:
        assert client.get("/mfa").status_code == client.get(f"/mfa/{CODE}").status_code == 200
        assert {client.get(path, headers=token).status_code for path in others} == {404}
        assert "This link is not valid" in client.get("/enrol/x").text
        asked = client.post("/network_device/ListDevices", json={"orgId": 1, "tenantId": 1}, headers=token)
        assert (asked.status_code, asked.headers["content-type"]) == (404, "text/html; charset=utf-8")
        api = f"https://127.0.0.1:{pages.service.ports.http}"
        assert client.get(f"{api}/healthz").status_code == 200
        assert client.get(f"{api}/mfa", headers={"accept": "application/json"}).status_code == 404


def test_the_pages_have_several_addresses(pages: WithPages) -> None:
    """Each address of people_bind has the pages."""
    with pages.client() as client:
        second = pages.url.replace("127.0.0.1", "127.0.0.2")
        answer = client.get(f"{second}/mfa", extensions={"sni_hostname": "127.0.0.1"})
    assert answer.status_code == 200


def test_no_code_is_logged_or_measured(pages: WithPages) -> None:
    """The log and the metrics have no code, also of a request that fails, and no address of a page."""
    with pages.client() as client:
        client.get(f"/mfa/{CODE}")
        client.post(f"/mfa/{CODE}", data={"code": CODE}, headers=FORM)
        client.put(f"/mfa/{CODE}")
        client.get(f"/mfa/{CODE}/more")
        metrics = client.get(f"https://127.0.0.1:{pages.service.ports.http}/metrics").text
    assert 'route="/mfa/{code}"' in metrics and CODE not in metrics + pages.service.log()


def test_wrong_codes_count_for_the_address_that_the_proxy_names(pages: WithPages) -> None:
    """After too many wrong codes, an address is refused. Another address behind the same proxy is not."""
    with pages.client("203.0.113.1") as guesser, pages.client("203.0.113.2") as other:
        statuses = [guesser.post("/mfa", data={"code": CODE}, headers=FORM).status_code for _ in range(30)]
        assert other.post("/mfa", data={"code": CODE}, headers=FORM).status_code == 404
    assert statuses[0] == 404 and statuses[-1] == 429


def test_another_site_cannot_send_forms(pages: WithPages) -> None:
    """A form of another origin is refused before anything is looked up."""
    with pages.client() as client:
        refused = client.post("/mfa", data={"code": CODE}, headers={"origin": "https://evil.test"})
        same = client.post("/mfa", data={"code": CODE}, headers={"origin": pages.url})
    assert (refused.status_code, same.status_code) == (403, 404)


def test_codes_by_mail_need_an_smtp_server(pages: WithPages) -> None:
    """This service has one, so a domain may name the factor."""
    pages.service.add_domain("by-mail")
    pages.service.ok("provider", "set", "by-mail", "own", "--factors", "mail")


def test_a_company_sign_in_is_set_by_command(pages: WithPages, tmp_path: Path) -> None:
    """The commands of docs/guides/entra-second-factor.md. The secret is shown by no command, and sealed in the store.
    The check names the provider that cannot be reached."""
    service, secret = pages.service, "hunter2-is-what-nobody-may-see"
    service.add_domain("company")
    (tmp_path / "entra.secret").write_text(f"{secret}\n")
    own = ("provider", "set", "company", "own", "--factors", "oidc", "--issuer", "https://127.0.0.1:1/tenant/v2.0")
    missing = service.cli(*own, "--client-id", "4b1f")
    assert (missing.returncode, "the factor oidc needs" in missing.stderr) == (1, True)
    service.ok(*own, "--client-id", "4b1f", "--secret", str(tmp_path / "entra.secret"), "--user-suffix", "@example.org")
    shown = service.ok("provider", "show", "company", "--json")
    assert '"userSuffix": "@example.org"' in shown and secret not in shown
    checked = service.cli("provider", "check", "company")
    assert (checked.returncode, "identity provider: 127.0.0.1" in checked.stdout) == (1, True), checked.stdout
    assert secret.encode() not in service.stored() and secret not in service.log()
    with pages.client() as client:
        assert client.get(f"/mfa/openid/1/{'0' * 32}").status_code == 404
