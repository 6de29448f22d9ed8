"""Every operation: who may call it, and the smallest body that passes its checks.

A new operation needs its line here, and a test of its own in this folder; `test_refusals.py` looks after both.
"""

from dataclasses import dataclass, field
from typing import Any

ADMIN = frozenset({"admin"})
OPERATOR = ADMIN | {"operator"}
READER = OPERATOR | {"auditor"}


@dataclass(frozen=True)
class Operation:
    """path, the roles that may call it, the body beside orgId and tenantId. in_domain: it takes a domainId."""

    path: str
    roles: frozenset[str]
    body: dict[str, Any] = field(default_factory=dict)
    in_domain: bool = True

    def fields(self, domain: int) -> dict[str, Any]:
        """A body that passes, acting on that domain."""
        return {**self.body, "domainId": domain} if self.in_domain else self.body


OPERATIONS = (
    Operation("/network_device/ListDevices", READER),
    Operation("/network_device/DeleteDevice", OPERATOR, {"deviceId": 1}),
    Operation("/network_device/ListStations", READER),
    Operation("/network_device/DeviceHistory", READER),
    Operation("/network_device/AddClient", ADMIN, {"name": "n", "address": "203.0.113.77"}),
    Operation("/network_device/ListClients", READER, in_domain=False),
    Operation("/network_device/UpdateClient", OPERATOR, {"clientId": 1}),
    Operation("/network_device/DeleteClient", OPERATOR, {"clientId": 1}, in_domain=False),
    Operation("/ad/GetAllDomains", READER, in_domain=False),
    Operation("/ad/AddDomain", OPERATOR, {"domainName": "d"}, in_domain=False),
    Operation("/ad/updateDomainEnforcement", ADMIN, {"enforcementMode": "monitor"}),
    Operation("/ad/GetAuthLog", READER),
)
