"""Ten operations through the client that openapi-python-client generates from /openapi.json.

Arguments: the directory of the generated package, the address of the service, a token, and the numbers of its
organization and tenant.
"""

import sys

sys.path.insert(0, sys.argv[1])

from sallyport_client import AuthenticatedClient, models
from sallyport_client.api.domains import add_domain, get_all_domains, update_domain
from sallyport_client.api.login_rules import add_login_rule, list_login_rules
from sallyport_client.api.logins import get_auth_log
from sallyport_client.api.network_devices import list_devices
from sallyport_client.api.radius_clients import add_client, delete_client, list_clients


def main(url: str, token: str, org: int, tenant: int) -> None:
    """Call the operations. Raise AssertionError if an answer is not an object of the generated class."""
    client = AuthenticatedClient(
        url, token, prefix="", auth_header_name="X-Authorization", raise_on_unexpected_status=True
    )
    scope = {"org_id": org, "tenant_id": tenant}
    added = add_domain.sync(client=client, body=models.AddDomain(domain_name="generated", **scope))
    assert isinstance(added, models.DomainAdded)
    domain = {**scope, "domain_id": added.domain_id}
    changed = update_domain.sync(client=client, body=models.UpdateDomain(add_realms=["generated.example"], **domain))
    assert isinstance(changed, models.DomainUpdated)
    listed = get_all_domains.sync(client=client, body=models.GetAllDomains(page_size=100, **scope))
    assert isinstance(listed, models.DomainList)
    (own,) = [each for each in listed.domains if each.domain_id == added.domain_id]
    assert own.realms == ["generated.example"]

    nas = models.AddClient(name="generated", address="192.0.2.202", domain_ids=[added.domain_id], **scope)
    made = add_client.sync(client=client, body=nas)
    assert isinstance(made, models.ClientAdded) and len(str(made.secret)) >= 16
    clients = list_clients.sync(client=client, body=models.ListClients(client_id=made.client_id, **scope))
    assert isinstance(clients, models.ClientList)
    assert [each.name for each in clients.clients] == ["generated"]
    devices = list_devices.sync(client=client, body=models.ListDevices(**domain))
    assert isinstance(devices, models.DeviceList) and devices.total_count == len(devices.network_devices)

    rule = models.AddLoginRule(name="generated", action=models.RuleAction.BLOCK, users=["ann"], **domain)
    ruled = add_login_rule.sync(client=client, body=rule)
    assert isinstance(ruled, models.RuleAdded)
    rules = list_login_rules.sync(client=client, body=models.ListLoginRules(rule_id=ruled.rule_id, **domain))
    assert isinstance(rules, models.RuleList) and rules.rules[0].users == ["ann"]
    events = get_auth_log.sync(client=client, body=models.GetAuthLog(**domain))
    assert isinstance(events, models.EventList) and events.events == []
    gone = delete_client.sync(client=client, body=models.DeleteClient(client_id=made.client_id, **scope))
    assert isinstance(gone, models.Done)
    refused = delete_client.sync(client=client, body=models.DeleteClient(client_id=made.client_id, **scope))
    assert isinstance(refused, models.RadiusProblem) and refused.code == 404
    print("ten operations done")


if __name__ == "__main__":
    main(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
