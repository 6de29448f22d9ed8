"""Data for the pictures of all pages: each area of a running service gets a few rows, over HTTP and RADIUS."""

import time
from typing import Any

import httpx

from sallyport.base.secret import new_key, token_hash
from sallyport.web.examples import EXAMPLE_AUTHORITY
from tests.radius_client import RadiusClient

SECRET, SOURCE, UNKNOWN = "furnished", "127.0.0.9", "127.0.0.77"
LDIF = "".join(
    f"dn: uid={name},dc=example,dc=com\nobjectClass: inetOrgPerson\nuid: {name}\ncn: {name.title()} Example\n"
    f"mail: {name}@example.com\n\n"
    for name in ("ann", "erin")
) + (
    "dn: cn=staff,dc=example,dc=com\nobjectClass: groupOfNames\ncn: staff\n"
    "member: uid=ann,dc=example,dc=com\nmember: uid=erin,dc=example,dc=com\n"
)
SCHEMA = {"type": "object", "properties": {"epmUsername": {"type": "string"}}, "required": ["epmUsername"]}


class Furnisher:
    """A program that fills a domain of the demo, whose only users are those of the demo.

    base: the address of the service. token: an admin's access token. auth: the RADIUS authentication port.
    """

    def __init__(self, base: str, token: str, auth: int) -> None:
        self._base, self._token, self._auth = base, token, auth
        self._domain = 0

    def fill(self) -> None:
        """Fill all areas of the domain corp, and remove the empty domain of the first start."""
        listed = self.post("/ad/GetAllDomains", pageSize=10)["domains"]
        ids = {each["domainName"]: each["domainId"] for each in listed}
        self._domain = ids["corp"]
        self.post("/ad/RemoveDomain", domainId=ids["default"])
        self._add_policy()
        self._add_agent(*self._add_endpoints())
        self._import_people()
        self._add_credentials()
        self._log_in()

    def post(self, path: str, *, token: str = "", verb: str = "POST", **fields: object) -> Any:
        """Run an operation in the domain, and return its answer."""
        return self._send(path, token, verb, json={"orgId": 1, "tenantId": 1, "domainId": self._domain, **fields})

    def _send(self, path: str, token: str = "", verb: str = "POST", **options: Any) -> Any:
        headers = {"X-Authorization": token or self._token}
        answer = httpx.request(verb, self._base + path, headers=headers, trust_env=False, timeout=60, **options)
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    def _add_policy(self) -> None:
        self.post("/ad/AddDomain", domainName="branch", realms=["branch.example.com"])
        self.post("/ad/AddLoginRule", name="printers", action="allow", users=["printer-1", "printer-2"], priority=10)
        self.post("/ad/AddLoginRule", name="VPN", action="mfa_required", media=["Virtual"], priority=20)
        self.post("/ad/AddLoginRule", name="contractors", action="block", users=["guest"], priority=30)
        self.post("/ad/AddAuthority", name="Intune", certificates=EXAMPLE_AUTHORITY, names=["sid", "upn"])
        self.post("/ad/AddBypassStation", station="02:00:00:00:00:01", name="printer on floor 3")
        self.post("/network_device/AddClient", name="floor-3", address=SOURCE, secret=SECRET)
        self.post(
            "/ad/updateDomainEnforcement", enforcementMode="enforce", fallbackAction="deny", revertAfterMinutes=600
        )

    def _add_endpoints(self) -> tuple[int, list[int]]:
        """Add a machine, a group and a password policy. Return the ID of the group and those of the users."""
        instance = self.post(
            "/api/v1/instances/addInstance", instanceName="build-1", osId=1, hostName="build-1.example.com",
            privateIp="10.0.0.7",
        )["instanceId"]  # fmt: skip
        self.post("/api/v1/instanceGroup/addInstanceGroup", groupName="builders")
        group = self.post("/api/v1/instanceGroup/listEndpointGroup", pageSize=10)["groups"][0]["groupId"]
        listed = self.post("/api/v1/endpointUsers/listAllEpmUsers", pageSize=10)["epmUsers"]
        users = [each["userId"] for each in listed]
        self.post("/api/v1/instanceGroup/assignUsersToEndpointGroup", groupId=group, userIds=users, action="add")
        self.post("/api/v1/instances/updateCredentialPolicyToEndpointGroup", verb="PUT", groupId=group, ttlUser="8h")
        policy = self.post("/api/v1/instances/addPasswordPolicy", policyName="twelve", minLen=12)["policyId"]
        self.post("/api/v1/instances/assignPolicyToMachine", policyId=policy, instanceId=instance)
        return group, users

    def _add_agent(self, group: int, users: list[int]) -> None:
        """Register a machine as an agent does, with a report that has drift and discovered accounts."""
        key, own, now = self.post("/api/v1/agent/createKey", name="build machines")["apiKey"], new_key(), time.time_ns()
        body = {"machineKey": key, "instanceName": "build-2", "osId": 1, "privateIpAddress": "10.0.0.8"}
        body |= {"hostName": "build-2.example.com", "agentVersion": "1.0"}
        machine = int(self._send("/api/v1/machine/add-machine", key, json=body)["instanceId"])
        hashed = {"keyHash": token_hash(own), "instanceId": machine}
        self._send("/api/v1/agent/exchangeKey", key, json=hashed)
        self.post(
            "/api/v1/instances/assignGroupToMachines", verb="PUT", instanceId=machine, groupId=group, actions="add"
        )
        self.post("/api/v1/instances/assignUsersToMachines", instanceIds=[machine], userIds=users[:1], action="add")
        self._send("/api/v1/agent/desiredState", own, json={"version": 0, "waitS": 0})
        found = [{"name": name, "uid": 1000 + at, "gid": 1000, "home": f"/home/{name}", "shell": "/bin/bash"}
                 for at, name in enumerate(("eve", "deploy"))]  # fmt: skip
        drift = [{"kind": "privilege", "name": "eve", "detail": "member of sudo"}]
        status = {
            "at": now // 1000, "version": 1, "drift": drift,
            "privileged": [{"name": "root", "via": ["uid 0"]}, {"name": "eve", "via": ["group sudo"]}],
        }  # fmt: skip
        report = {
            "id": "report-0001", "at": now // 1000, "version": 1, "agent": "1.0", "system": "Debian 13", "drift": drift,
            "discovery": {"at": now // 1000, "accounts": found},
            "actions": [{"kind": "create", "name": "alice"}, {"kind": "delete", "name": "bob", "error": "busy"}],
        }  # fmt: skip
        self._send("/api/v1/agent/report", own, json=report)
        self._send("/api/v1/agent/privilegeStatus", own, json=status)
        self.post("/api/v1/agent/order", instanceId=machine, kind="discover")

    def _import_people(self) -> None:
        fields = {"domainId": str(self._domain), "directoryName": "branch office", "fileName": "people.ldif"}
        self._send("/api/v1/integrations/directory/importLdif", data=fields, files={"file": ("people.ldif", LDIF)})
        self.post(
            "/api/v1/saveDirectoryConfig", directoryName="head office", appUrl="ldaps://dc1.example.com",
            baseDN="dc=example,dc=com", bindDN="sallyport@example.com", bindPassword="Correct-Horse-9-Battery",
        )  # fmt: skip
        self.post("/api/v1/directory/setSchedule", directoryName="head office", everyMinutes=60)

    def _add_credentials(self) -> None:
        wallet = self.post("/api/v1/walletService/registerWalletUser", username="ann", emailAddress="ann@example.com")
        who = {"walletUserId": wallet["walletId"], "name": "ann"}
        issuer = self.post("/api/v1/did/createIssuerDid", method="key", name="head office")["id"]
        holder = self.post("/api/v1/did/createHolderDid", method="key", **who)["id"]
        self.post("/api/v1/schema/createSchema", author=issuer, name="badge", schema=SCHEMA, sign=True)
        for name in ("badge of ann", "second badge"):
            self.post(
                "/api/v1/credential/createCredential", issuerDid=issuer, holderDid=holder, schemaId=1,
                credentialName=name, metadata={"epmUsername": "ann"},
            )  # fmt: skip
        self.post("/api/v1/walletService/assignWalletUser", walletId=1, userId=wallet["userId"], credentialId=[1])
        self.post("/api/v1/verifierService/issuePR", issuerDid=issuer, holderDid=holder, endpoint="build-1")

    def _log_in(self) -> None:
        """Lock out carol, send the login of an unregistered switch, and log in at a switch."""
        with RadiusClient(self._auth, SECRET, source=SOURCE, timeout=20) as client:
            for at in range(12):
                client.login("carol", f"wrong {at}", NAS_IDENTIFIER=b"floor-3", CALLING_STATION_ID=b"02-00-00-00-00-07")
        with RadiusClient(self._auth, "other", source=UNKNOWN) as unknown:
            unknown.send(unknown.packet("ann", "hello", NAS_IDENTIFIER=b"switch-77"))
