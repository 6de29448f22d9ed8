"""A crowd of users, groups, machines and devices of the hostile tenant, so that operations on all of them are large."""

import httpx

from tests.api.story import PASSWORD, SECRET
from tests.running_service import RunningService

USERS, GROUPS, MACHINES, DEVICES = 1000, 200, 200, 200


def populate(service: RunningService) -> None:
    """Add the crowd to the first domain, which has the RADIUS client and the user of the examples."""
    rows = [{"userName": f"user {number}", "password": "a password of the crowd"} for number in range(USERS)]
    service.call("user.import", domain="default", rows=rows, apply=True)
    url, headers = f"http://127.0.0.1:{service.ports.http}", {"x-authorization": service.token}
    with httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False) as http:
        for path, name, number in (
            ("/api/v1/instanceGroup/addInstanceGroup", "groupName", GROUPS),
            ("/api/v1/instances/addInstance", "instanceName", MACHINES),
        ):
            for each in range(number):
                assert http.post(path, json={"domainId": 1, name: f"{name} {each}"}).status_code == 200
    with service.radius(SECRET) as client:
        for number in range(DEVICES):
            client.login("ann", PASSWORD, NAS_IDENTIFIER=b"device %d" % number)
