"""The limits of a tenant: the maximum number of rows of each kind. The setting `limits` changes the defaults.

    [limits]                                            # in sallyport.toml
    domains = 50

    SALLYPORT_LIMITS="domains=50, wallets=20000"        # in the environment

The transaction that adds rows also counts the rows and checks the limit (`store/schema/limits.py`). If the limit is
exceeded, the transaction raises `errors.LimitReached`. There are two exceptions. If `keeps_newest` is true for a limit,
the store deletes the tenant's oldest rows instead. If `leaves_out` is true, the store silently leaves out the new rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit of each tenant. most: the default number of rows. counts: what the limit counts, for administrators."""

    name: str
    most: int
    counts: str
    keeps_newest: bool = False
    leaves_out: bool = False


LIMITS: Final = (
    Limit("access_tokens", 1_000_000, "access tokens, including those of wallets"),
    Limit("agent_orders", 1_000_000, "orders to endpoint agents"),
    Limit("agent_grants", 10_000_000, "grants of users on enrolled machines, one for each of a user's groups"),
    Limit("api_keys", 500_000, "API keys"),
    Limit("api_key_machines", 1_000_000, "machines that enrolled with an API key"),
    Limit("bypass_stations", 1_000_000, "stations of the MAC authentication bypass"),
    Limit("client_domains", 500_000, "assignments of domains to RADIUS clients"),
    Limit("credentials", 5_000_000, "credentials"),
    Limit("devices", 1_000_000, "network devices; devices above the limit are not registered", leaves_out=True),
    Limit("did_keys", 4_000_000, "keys of DIDs"),
    Limit("dids", 2_000_000, "DIDs, including deleted issuers"),
    Limit("directories", 1_000, "directories"),
    Limit("directory_groups", 1_000_000, "imported groups of directories"),
    Limit("directory_members", 20_000_000, "imported memberships of directories"),
    Limit("directory_units", 1_000_000, "imported organizational units of directories"),
    Limit("directory_users", 2_000_000, "imported people of directories"),
    Limit("discovered_accounts", 10_000_000, "accounts and groups that agents discovered"),
    Limit("domains", 1_000, "domains"),
    Limit(
        "endpoint_assignments",
        20_000_000,
        "assignments of users and groups to machines, and of users to endpoint groups",
    ),
    Limit("endpoint_groups", 100_000, "endpoint groups"),
    Limit("endpoint_instances", 200_000, "endpoint instances"),
    Limit("endpoint_users", 2_000_000, "endpoint users"),
    Limit("escrowed_passwords", 2_000_000, "passwords in escrow, including former ones"),
    Limit("login_rules", 10_000, "login rules"),
    Limit("password_policies", 1_000, "password policies"),
    Limit("policy_assignments", 1_000_000, "assignments of password policies to machines"),
    Limit("presentation_requests", 1_000_000, "presentation requests, except those of logins"),
    Limit("radius_clients", 50_000, "RADIUS clients"),
    Limit("schemas", 10_000, "credential schemas"),
    Limit(
        "stations",
        5_000_000,
        "stations behind network devices; stations above the limit are not stored",
        leaves_out=True,
    ),
    Limit("taken_over_accounts", 2_000_000, "accounts that agents took over"),
    Limit("waiting_imports", 100, "waiting and running imports, each with up to one file on the disk"),
    Limit("wallet_assignments", 10_000_000, "assignments of wallets and credentials to endpoint users"),
    Limit("wallets", 1_000_000, "wallets"),
    Limit("agent_reports", 1_000_000, "reports of agents", keeps_newest=True),
    Limit("audit_entries", 5_000_000, "entries of the audit trail", keeps_newest=True),
    Limit("client_history", 500_000, "changes of RADIUS clients", keeps_newest=True),
    Limit("device_history", 2_000_000, "registrations and deletions of devices", keeps_newest=True),
    Limit("drift_reports", 1_000_000, "reports of agents about unexpected changes on their hosts", keeps_newest=True),
    Limit("import_jobs", 100_000, "ended imports", keeps_newest=True),
)
DEFAULTS: Final[Mapping[str, int]] = {limit.name: limit.most for limit in LIMITS}
HISTORIES: Final = frozenset(limit.name for limit in LIMITS if limit.keeps_newest)
UNCHECKED: Final = frozenset(limit.name for limit in LIMITS if limit.leaves_out)
MAX_LIMIT: Final = 10**12
