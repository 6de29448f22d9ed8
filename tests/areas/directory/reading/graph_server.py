"""A simulated Microsoft Graph with its token endpoint. Delta queries are answered in pages, and delta tokens expire.

The formats are those that Microsoft publishes: https://learn.microsoft.com/graph/delta-query-overview
"""

from dataclasses import dataclass, field

from tests.areas.mfa.web import Call, Reply, WebServer

TENANT, CLIENT_ID, CLIENT_SECRET = "corp.example", "11111111-2222-3333-4444-555555555555", "s3cret~of.the-application"
Object = dict[str, object]


@dataclass
class GraphServer:
    """A tenant. page: the number of objects on a page. busy: the number of further requests that are answered with 429.
    leads_to: the origin of the links in its answers, if it is not the server's own. lost: a path at which the server
    fails. forbidden: a path that the application may not read.
    """

    page: int = 2
    users: dict[str, Object] = field(default_factory=dict)
    groups: dict[str, Object] = field(default_factory=dict)
    devices: dict[str, Object] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)
    busy: int = 0
    tokens: int = 0
    token_ends: bool = False
    leads_to: str = ""
    lost: str = ""
    forbidden: str = ""
    rounds: dict[str, tuple[str, list[Object]]] = field(default_factory=dict)
    web: WebServer | None = None

    @property
    def url(self) -> str:
        """The origin of Graph and of the token endpoint."""
        assert self.web is not None
        return f"http://127.0.0.1:{self.web.port}"

    def add_user(self, external_id: str, name: str, **values: object) -> None:
        """Add or change a user."""
        self.users[external_id] = {"id": external_id, "userPrincipalName": name, "accountEnabled": True, **values}
        self.change("users", self.users[external_id])

    def add_device(self, external_id: str, device_id: str, name: str, **values: object) -> None:
        """Add or change a device."""
        known: Object = {"id": external_id, "deviceId": device_id, "displayName": name, "accountEnabled": True}
        self.devices[external_id] = {**known, "trustType": "AzureAd", "operatingSystem": "Windows", **values}
        self.change("devices", self.devices[external_id])

    def add_group(self, external_id: str, name: str, *members: str) -> None:
        """Add or change a group."""
        self.groups[external_id] = {"id": external_id, "displayName": name}
        self.members[external_id] = [*members]
        self.change("groups", {**self.groups[external_id], "members@delta": []})

    def remove(self, kind: str, external_id: str) -> None:
        """Delete a user or a group."""
        getattr(self, kind).pop(external_id)
        self.change(kind, {"id": external_id, "@removed": {"reason": "changed"}})

    def change(self, kind: str, found: Object) -> None:
        """Add an object to the next round of the delta queries, as it is."""
        for token, (of, waiting) in self.rounds.items():
            if of == kind and token.startswith("delta"):
                waiting.append(found)

    async def __call__(self, call: Call) -> Reply:
        if call.path.endswith("/token") or call.path == self.forbidden:
            denied = Reply(403, {"error": {"code": "Authorization_RequestDenied"}})
            return denied if call.path == self.forbidden else self._token(call)
        if call.path == self.lost or self.busy:
            self.busy -= 0 if call.path == self.lost else 1
            reply = Reply(429, {"error": {"code": "TooManyRequests"}}, {"Retry-After": "17"})
            return Reply(400, {"error": {"code": "BadRequest"}}) if call.path == self.lost else reply
        if self.token_ends:
            self.token_ends, self.tokens = False, self.tokens + 1
        if call.headers.get("authorization") != f"Bearer token-{self.tokens}":
            return Reply(401, {"error": {"code": "InvalidAuthenticationToken"}})
        _, version, kind, *rest = call.path.split("/")
        assert version == "v1.0"
        if rest == ["delta"]:
            return self._delta(kind, call)
        external_id, last = rest
        assert (kind, last) == ("groups", "members")
        if external_id not in self.groups:
            return Reply(404, {"error": {"code": "Request_ResourceNotFound"}})
        return self._members(external_id, call)

    def _token(self, call: Call) -> Reply:
        assert call.method == "POST"
        assert call.path == f"/{TENANT}/oauth2/v2.0/token"
        given = {
            "grant_type": "client_credentials", "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET,
            "scope": f"{self.url}/.default",
        }  # fmt: skip
        if call.parameters != given:
            return Reply(401, {"error": "invalid_client"})
        self.tokens += 1
        return Reply(200, {"token_type": "Bearer", "expires_in": 3599, "access_token": f"token-{self.tokens}"})

    def _delta(self, kind: str, call: Call) -> Reply:
        assert call.headers["prefer"].startswith("odata.maxpagesize=")
        token = call.parameters.get("$deltatoken") or call.parameters.get("$skiptoken")
        if token is None:
            assert call.parameters["$select"].startswith("id,")
            objects: list[Object] = [*getattr(self, kind).values()]
        elif token in self.rounds:
            objects = self.rounds[token][1]
        else:
            return Reply(410, {"error": {"code": "syncStateNotFound"}})
        page, left = objects[: self.page], objects[self.page :]
        following = f"{'skip' if left else 'delta'}-{len(self.rounds)}"
        self.rounds[following] = (kind, left)
        link = f"{self.leads_to or self.url}/v1.0/{kind}/delta?{'$skiptoken' if left else '$deltatoken'}={following}"
        context = f"{self.url}/v1.0/$metadata#{kind}"
        return Reply(
            200, {"@odata.context": context, "@odata.nextLink" if left else "@odata.deltaLink": link, "value": page}
        )

    def _members(self, external_id: str, call: Call) -> Reply:
        at = int(call.parameters.get("$skiptoken", "0"))
        ids = self.members[external_id]
        document: Object = {
            "value": [{"@odata.type": "#microsoft.graph.user", "id": each} for each in ids[at : at + self.page]]
        }
        if at + self.page < len(ids):
            document["@odata.nextLink"] = f"{self.url}/v1.0/groups/{external_id}/members?$skiptoken={at + self.page}"
        return Reply(200, document)
