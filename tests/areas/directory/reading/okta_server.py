"""The simulated Users and Groups APIs of Okta. Pages are linked by the Link header. A list of users without a filter
leaves deactivated users out.

The formats are those that Okta publishes: https://developer.okta.com/docs/api/
"""

import re
from dataclasses import dataclass, field
from urllib.parse import quote

from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.areas.mfa.web import Call, Reply, WebServer

TOKEN = "00QCjAl4MlV-WPXM_ApiTokenOfTheTests"
CLIENT_ID = "0oa1aservice"
Object = dict[str, object]


@dataclass
class OktaServer:
    """An organization. page: the number of objects on a page. key: the public key of its service application. asked:
    the ids of the groups whose members were requested. lists_all: whether a list without a filter has deactivated
    users."""

    page: int = 2
    users: list[Object] = field(default_factory=list)
    groups: list[Object] = field(default_factory=list)
    members: dict[str, list[str]] = field(default_factory=dict)
    key: RSAKey | None = None
    asked: set[str] = field(default_factory=set)
    lists_all: bool = False
    web: WebServer | None = None

    @property
    def url(self) -> str:
        """The origin of the APIs."""
        assert self.web is not None
        return f"http://127.0.0.1:{self.web.port}"

    def add_user(self, external_id: str, login: str, updated: str, status: str = "ACTIVE", **profile: object) -> None:
        """Add a user, or replace the user with that ID."""
        self.users = [user for user in self.users if user["id"] != external_id]
        self.users.append(
            {
                "id": external_id, "status": status, "created": "2025-06-01T08:00:00.000Z", "activated": None,
                "statusChanged": updated, "lastLogin": None, "lastUpdated": updated, "passwordChanged": None,
                "type": {"id": "oty1"}, "profile": {"login": login, "secondEmail": None, **profile},
                "credentials": {"provider": {"type": "OKTA", "name": "OKTA"}},
                "_links": {"self": {"href": f"{self.url}/api/v1/users/{external_id}"}},
            }
        )  # fmt: skip

    def add_group(self, external_id: str, name: str, updated: str, *members: str, kind: str = "OKTA_GROUP") -> None:
        """Add a group, or replace the group with that ID."""
        self.groups = [group for group in self.groups if group["id"] != external_id]
        self.groups.append(
            {"id": external_id, "type": kind, "lastUpdated": updated, "lastMembershipUpdated": updated,
             "profile": {"name": name, "description": None}}
        )  # fmt: skip
        self.members[external_id] = [*members]

    async def __call__(self, call: Call) -> Reply:
        assert call.headers["user-agent"].startswith("Sallyport/")
        if call.path == "/oauth2/v1/token":
            return self._token(call)
        if call.headers.get("authorization") not in (f"SSWS {TOKEN}", "Bearer of-the-application"):
            return Reply(401, {"errorCode": "E0000011"})
        if call.path == "/api/v1/users":
            return self._listed(call, [user for user in self.users if self._fits(user, call)])
        if call.path == "/api/v1/groups":
            return self._listed(call, self.groups)
        found = re.fullmatch(r"/api/v1/groups/(\w+)/users", call.path)
        assert found is not None
        self.asked.add(found[1])
        if found[1] not in self.members:
            return Reply(404, {"errorCode": "E0000007"})
        return self._listed(call, [user for user in self.users if user["id"] in self.members[found[1]]])

    def _fits(self, user: Object, call: Call) -> bool:
        wanted = call.parameters.get("filter")
        if wanted is None:
            return self.lists_all or user.get("status") != "DEPROVISIONED"
        found = re.fullmatch(r'lastUpdated gt "(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"', wanted)
        assert found is not None, wanted
        return str(user["lastUpdated"]) > found[1]

    def _listed(self, call: Call, objects: list[Object]) -> Reply:
        at = int(call.parameters.get("after", "0"))
        link = f'<{self.url}{call.path}?limit=9>; rel="self"'
        if at + self.page < len(objects):
            kept = f"&filter={quote(call.parameters['filter'])}" if "filter" in call.parameters else ""
            link += f', <{self.url}{call.path}?after={at + self.page}{kept}>; rel="next"'
        limits = {"X-Rate-Limit-Limit": "600", "X-Rate-Limit-Remaining": "599", "X-Rate-Limit-Reset": "1767225660"}
        return Reply(200, objects[at : at + self.page], {"Link": link, **limits})

    def _token(self, call: Call) -> Reply:
        assert self.key is not None
        token = jwt.decode(call.parameters["client_assertion"], self.key, algorithms=["RS256"])
        assert (token.claims["iss"], token.claims["sub"]) == (CLIENT_ID, CLIENT_ID)
        assert token.claims["aud"] == f"{self.url}/oauth2/v1/token"
        assert 0 < int(token.claims["exp"]) - int(token.claims["iat"]) <= 3600
        assert call.parameters["scope"] == "okta.users.read okta.groups.read"
        assert call.parameters["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        return Reply(200, {"token_type": "Bearer", "expires_in": 3600, "access_token": "of-the-application"})
