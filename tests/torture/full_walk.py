"""The costly requests of a tenant at its limits: through the API and through the console, by each kind of actor.

Four clients send the requests at the same time. During the last part, many live pages are open while logins with costly
names arrive.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import httpx

from sallyport.console.guard import TOKEN, form_token
from tests.torture.attack import Sent
from tests.torture.full import ACTORS, ORG, REALMS, SECRET, SOURCE, Actor, FullTenant, hostile

AT_ONCE: Final = 4
LIVE_PAGES: Final = 8
"""Number of live pages of each actor."""
LOGINS: Final = 300
_SEARCH: Final = hostile(0)[:60]
PAGES: Final = (
    *("/", "/clients", "/clients?search=é", f"/clients?search={_SEARCH}", "/clients?column=name&column=lastUnsigned"),
    *("/clients?format=csv", "/devices", "/devices?search=xx", "/devices?format=csv", "/stations?search=xx"),
    *("/domains", "/domains?format=csv", "/account", "/account?search=xx", "/tokens", "/tokens?search=xx"),
    *("/tokens?format=csv", "/audit", "/audit?search=xx&all=1", "/audit?format=csv", "/logins?search=xx"),
    *("/logins?format=csv", "/rules", "/people?search=xx", "/sessions", "/keys"),
)
"""The pages of the console whose cost grows with the rows of the tenant."""


@dataclass(frozen=True)
class Deed:
    """A request. owner: who sends it, for the report. cookie: the key of a session, or empty. token: an access token,
    or empty. form: the fields of a form. body: a JSON body."""

    owner: str
    path: str
    cookie: str = ""
    token: str = ""
    form: dict[str, str] | None = None
    body: dict[str, Any] | None = None


@dataclass
class FullWalk:
    """The requests, and their results."""

    tenant: FullTenant
    sent: list[Sent] = field(default_factory=list)

    def run(self) -> None:
        """Send all requests, then open the live pages."""
        deeds = chain(self._of_tokens(), *map(self._of_person, ACTORS))
        with self._connected() as http, ThreadPoolExecutor(AT_ONCE) as threads:
            self.sent += threads.map(lambda deed: _sent(http, deed), deeds)
        self._watch_logins()

    def _connected(self) -> httpx.Client:
        url = f"http://127.0.0.1:{self.tenant.service.ports.http}"
        return httpx.Client(base_url=url, timeout=60, trust_env=False, limits=httpx.Limits(max_connections=100))

    def _of_tokens(self) -> Iterator[Deed]:
        """Yield the requests of programs."""
        domain, scope = self.tenant.domain, {"orgId": ORG, "tenantId": 1}
        realms, others = ([hostile(10**6 * first + number) for number in range(REALMS)] for first in (1, 2))
        one = self.tenant.last_client
        for path, body in (
            ("/network_device/ListClients", {"pageSize": 1000}),
            ("/network_device/ListClients", {"pageSize": 1000, "search": _SEARCH}),
            ("/network_device/ListClients", {"pageId": 50, "pageSize": 1000, "search": "é"}),
            ("/network_device/ClientActivity", {"pageSize": 1000}),
            ("/network_device/ClientActivity", {"pageSize": 1000, "state": "silent"}),
            ("/network_device/UpdateClient", {"clientId": one, "name": hostile(10**6)}),
            ("/network_device/AddClient", {"name": hostile(10**6 + 1), "address": "198.18.0.1"}),
            ("/network_device/ListDevices", {"domainId": domain, "pageSize": 100, "search": "xx"}),
            ("/ad/GetAllDomains", {"pageSize": 100, "search": _SEARCH}),
            ("/ad/UpdateDomain", {"domainId": domain, "addRealms": realms}),
            ("/ad/AddDomain", {"domainName": hostile(10**6), "realms": others}),
            ("/ad/AddLoginRule", {
                "domainId": domain, "name": "rule", "action": "allow",
                "clients": [hostile(10**7 + number) for number in range(200)],
            }),
        ):  # fmt: skip
            yield Deed("admin token", path, token=self.tenant.token, body={**scope, **body})

    def _of_person(self, actor: Actor) -> Iterator[Deed]:
        """Yield the requests of a person of the console."""
        for path in PAGES:
            yield Deed(actor.name, path, actor.key)
        place, domain = 1 + ACTORS.index(actor), self.tenant.domain
        words, others = (
            ",".join(hostile(10**6 * (place + first) + number) for number in range(REALMS)) for first in (3, 6)
        )
        for path, form in (
            (
                f"/clients/{self.tenant.last_client - place}/settings",
                {"name": hostile(10**6 + 10 + place), "address": f"198.18.1.{place}", "port": "3799"},
            ),
            ("/clients/add", {"name": hostile(10**6 + 20 + place), "address": "198.18.0.2"}),
            (f"/domains/{domain}/settings", {"name": "full", "realms": words}),
            ("/domains/add", {"name": hostile(10**6 + 30 + place), "realms": others}),
            ("/tokens/add", {"name": f"é{place}", "role": "auditor", "scope": f"{ORG}/1"}),
        ):
            yield Deed(actor.name, path, actor.key, form={**form, TOKEN: form_token(actor.key)})

    def _watch_logins(self) -> None:
        """Open live pages with different filters, and send logins whose names are costly to fold."""
        with self._connected() as http, ExitStack() as streams:
            for actor in ACTORS:
                for number in range(LIVE_PAGES):
                    path = f"/logins/live?search={number}{_SEARCH}"
                    began, cookies = time.time(), {"cookie": f"sallyport={actor.key}"}
                    answer = streams.enter_context(http.stream("GET", path, headers=cookies))
                    self.sent.append(Sent(f"GET {path}", actor.name, 0, began, time.time(), answer.status_code))
            began = time.time()
            with self.tenant.service.radius(SECRET, source=SOURCE) as client:
                for number in range(LOGINS):
                    client.send(client.packet(hostile(number)[:120], "wrong", NAS_IDENTIFIER=b"nas"))
                    time.sleep(0.01)
            self.sent.append(Sent("RADIUS", f"{LOGINS} logins", 0, began, time.time(), 200))


def _sent(http: httpx.Client, deed: Deed) -> Sent:
    """Send a request, and return its result."""
    headers = {"cookie": f"sallyport={deed.cookie}"} if deed.cookie else {"x-authorization": deed.token}
    method = "GET" if deed.form is None and deed.body is None else "POST"
    began, status = time.time(), 0
    with suppress(httpx.HTTPError):
        answer = http.request(method, deed.path, headers=headers, data=deed.form, json=deed.body)
        status = answer.status_code
    return Sent(f"{method} {deed.path[:80]}", deed.owner, 0, began, time.time(), status)
