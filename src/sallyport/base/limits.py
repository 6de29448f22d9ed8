"""The limits of a tenant: how many rows of each kind it may have. The setting `limits` changes them.

    [limits]                                            # in sallyport.toml
    domains = 50

    SALLYPORT_LIMITS="domains=50, wallets=20000"        # in the environment

The store counts and checks the rows of a tenant in the transaction that adds them (`store/schema/limits.py`). A
transaction that exceeds a limit raises `errors.LimitReached`. If `keeps_newest` is true, the oldest row is deleted
instead. If `leaves_out` is true, the store raises no error: the repository does not add the row, and the transaction
continues.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit for each tenant. most: the default number of rows. counts: a description of the counted rows, for
    administrators."""

    name: str
    most: int
    counts: str
    keeps_newest: bool = False
    leaves_out: bool = False


LIMITS: Final = (
    Limit("access_tokens", 1_000_000, "access tokens, including those of wallets"),
    Limit("agent_orders", 1_000_000, "orders to endpoint agents"),
    Limit("agent_grants", 10_000_000, "users that an enrolled machine admits, by each of their groups"),
    Limit("api_keys", 500_000, "API keys"),
    Limit("api_key_machines", 1_000_000, "machines that enrolled with an API key"),
    Limit("bypass_stations", 1_000_000, "stations of the MAC authentication bypass"),
    Limit("client_domains", 500_000, "domains of RADIUS clients"),
    Limit("credentials", 5_000_000, "credentials"),
    Limit("devices", 1_000_000, "network devices; further ones are not registered", leaves_out=True),
    Limit("did_keys", 4_000_000, "keys of DIDs"),
    Limit("dids", 2_000_000, "DIDs, including deleted issuers"),
    Limit("directories", 1_000, "directories"),
    Limit("directory_groups", 1_000_000, "imported groups of directories"),
    Limit("directory_members", 20_000_000, "imported memberships of directories"),
    Limit("directory_units", 1_000_000, "imported organizational units of directories"),
    Limit("directory_users", 2_000_000, "imported people of directories"),
    Limit("discovered_accounts", 10_000_000, "accounts and groups that agents discovered"),
    Limit("domains", 1_000, "domains"),
    Limit("endpoint_assignments", 20_000_000, "users and groups of machines, and users of endpoint groups"),
    Limit("endpoint_groups", 100_000, "endpoint groups"),
    Limit("endpoint_instances", 200_000, "endpoint instances"),
    Limit("endpoint_users", 2_000_000, "endpoint users"),
    Limit("escrowed_passwords", 2_000_000, "passwords in escrow, including former ones"),
    Limit("login_rules", 10_000, "login rules"),
    Limit("password_policies", 1_000, "password policies"),
    Limit("policy_assignments", 1_000_000, "machines of password policies"),
    Limit("presentation_requests", 1_000_000, "presentation requests, except those of logins"),
    Limit("radius_clients", 50_000, "RADIUS clients"),
    Limit("schemas", 10_000, "credential schemas"),
    Limit("stations", 5_000_000, "stations behind network devices; further ones are not stored", leaves_out=True),
    Limit("taken_over_accounts", 2_000_000, "accounts that agents took over"),
    Limit("waiting_imports", 100, "waiting and running imports, each with up to one file on the disk"),
    Limit("wallet_assignments", 10_000_000, "wallets and credentials of endpoint users"),
    Limit("wallets", 1_000_000, "wallets"),
    Limit("agent_reports", 1_000_000, "reports of agents", keeps_newest=True),
    Limit("audit_entries", 5_000_000, "entries of the audit trail", keeps_newest=True),
    Limit("client_history", 500_000, "changes of RADIUS clients", keeps_newest=True),
    Limit("device_history", 2_000_000, "registrations and deletions of devices", keeps_newest=True),
    Limit("drift_reports", 1_000_000, "deviations that agents reported", keeps_newest=True),
    Limit("import_jobs", 100_000, "ended imports", keeps_newest=True),
)
DEFAULTS: Final[Mapping[str, int]] = {limit.name: limit.most for limit in LIMITS}
HISTORIES: Final = frozenset(limit.name for limit in LIMITS if limit.keeps_newest)
UNCHECKED: Final = frozenset(limit.name for limit in LIMITS if limit.leaves_out)
HIGHEST: Final = 10**12
