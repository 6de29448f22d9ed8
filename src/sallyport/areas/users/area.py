"""The entrance of endpoint users and their groups."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from starlette.routing import BaseRoute

from sallyport.areas.domains.service import Domains
from sallyport.areas.entrance import Area, Parts
from sallyport.areas.users import operations as api
from sallyport.areas.users import page, repo
from sallyport.areas.users.accounts import operations as accounts_api
from sallyport.areas.users.accounts.configured import UserKind
from sallyport.areas.users.accounts.service import Credentials, PasswordPolicies, Users
from sallyport.areas.users.administrators import AdministratorNames, Administrators
from sallyport.areas.users.groups import operations as groups_api
from sallyport.areas.users.groups.configured import GroupKind, PolicyNames
from sallyport.areas.users.groups.repo import forget_policies
from sallyport.areas.users.groups.service import Groups, PolicyIds
from sallyport.areas.users.instances.configured import InstanceKind, PolicyAssignments
from sallyport.areas.users.instances.service import Instances
from sallyport.areas.users.service import EndpointUsers, Revocations
from sallyport.areas.users.totp import OneTimeSeeds
from sallyport.base.clock import SECOND
from sallyport.base.totp import step_at
from sallyport.settings.settings import Settings
from sallyport.shell.command import Command
from sallyport.store.erasure import DependentTable, Rows
from sallyport.store.foreign import USERS
from sallyport.store.model import Tx
from sallyport.store.sealed import Sealed
from sallyport.store.slices import Slice
from sallyport.web.operation import Operations
from sallyport.web.people.site import PeopleSite
from sallyport.web.scope import Gate


class Policies(PasswordPolicies, PolicyIds, PolicyNames, PolicyAssignments, Protocol):
    """The password policies that users and groups need."""

    def before_deletion(self, release: Slice[Sequence[int]]) -> None:
        """Register a function that removes references to policies before the policies are deleted."""


_PARTS_OF_INSTANCES = (
    DependentTable("agent_orders", "id", "instance_id"),
    DependentTable("agent_discovered", "instance_id, kind, name", "instance_id"),
    DependentTable("agent_grants", "instance_id, user_id, group_id", "instance_id"),
    DependentTable("endpoint_instance_users", "instance_id, user_id", "instance_id"),
    DependentTable("endpoint_instance_groups", "instance_id, group_id", "instance_id"),
    DependentTable("policy_instances", "policy_id, instance_id", "instance_id"),
)
_PARTS_OF_GROUPS = (
    DependentTable("endpoint_credential_policies", "id", "group_id"),
    DependentTable("endpoint_group_users", "group_id, user_id", "group_id"),
)
_PARTS_OF_USERS = (
    DependentTable("totp_enrolments", "user_id", "user_id"),
    DependentTable("agent_hashes", "user_id", "user_id"),
    DependentTable("endpoint_user_wallets", "user_id, wallet_id", "user_id"),
    DependentTable("endpoint_user_credentials", "user_id, credential_id", "user_id"),
)


class UsersArea(Area):
    """Endpoint users as logins need them (`service`) and as admins manage them (`accounts`); their groups and
    one-time-password seeds."""

    erased_rows = (
        Rows("endpoint_instances", "endpoint instances", parts=_PARTS_OF_INSTANCES, searched="domain_id"),
        Rows("endpoint_groups", "endpoint groups", parts=_PARTS_OF_GROUPS, searched="domain_id"),
        Rows("endpoint_users", "endpoint users", parts=_PARTS_OF_USERS, searched="domain_id"),
    )
    sealed = (
        Sealed("endpoint_users", "password", ("id",), "endpoint_users/{}/password"),
        Sealed("endpoint_users", "motp", ("id",), "endpoint_users/{}/motp"),
        Sealed("totp_enrolments", "seed", ("user_id",), "totp_enrolments/{}/seed"),
    )

    def __init__(
        self,
        parts: Parts,
        domains: Domains,
        instances: Instances,
        policies: Policies,
        credentials: Credentials,
        revocations: Revocations,
        administrators: AdministratorNames,
    ) -> None:
        self.administrators = Administrators(parts.store, administrators)
        store, vault, clock = parts.store, parts.vault, parts.clock
        self._parts, self._domains, self._instances = parts, domains, instances
        self.foreign = {USERS: self._changed_elsewhere}
        self.service = EndpointUsers(store, vault, clock, revocations=revocations)
        self.service.before_deletion(credentials.unlink)
        policies.before_deletion(forget_policies)
        self.groups = Groups(store, self.service, policies, clock)
        self.accounts = Users(store, vault, self.service, policies, credentials, clock)
        self.configured = (
            InstanceKind(instances, policies),
            GroupKind(self.groups, policies),
            UserKind(self.accounts, self.groups),
        )
        self.seeds = OneTimeSeeds(
            store,
            vault,
            self.service,
            lambda domain_id: domains.table.present(domain_id).issuer,
            clock,
            life_s=parts.settings.enrolment_link_hours * 3600,
        )

    def apply(self, settings: Settings) -> None:
        """Wait for the confirmation of a new seed for the time of the settings."""
        self.seeds.life_us = settings.enrolment_link_hours * 3600 * SECOND

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operations of groups and users."""
        return [
            groups_api.operations(self.groups, gate),
            accounts_api.operations(self.accounts, self.seeds, self.administrators, self._enrolment_link, gate),
        ]

    def commands(self) -> Mapping[str, Command]:
        """Return the commands that import and export users and instances, and enrol users."""
        return api.local_operations(
            self._parts.store, self._instances, self.accounts, self.seeds, self._domains, self.managed
        )

    def routes(self, gate: Gate) -> Sequence[BaseRoute]:
        """Return the page of an enrolment link."""
        return page.routes(self.seeds)

    def people_routes(self, site: PeopleSite) -> Sequence[BaseRoute]:
        """Return the page of enrolment links, which the site of people has too: `public_url` may lead to it alone."""
        return page.routes(self.seeds)

    def forget(self) -> None:
        """Empty the cache of users."""
        self.service.forget()

    def void(self, tx: Tx, at: int) -> None:
        """Spend the codes up to the next time step, because a code of the next one is accepted too."""
        repo.void_codes(tx, step_at(at) + 1)

    def _changed_elsewhere(self, domain_id: int) -> None:
        if domain_id:
            self.service.forget_domain(domain_id)
        else:
            self.service.forget()
        self.service.changed(domain_id, None)

    def _enrolment_link(self, secret: str) -> str:
        return self._parts.link_base() + page.PATH + secret
