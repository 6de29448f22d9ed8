"""Finds the changes that the desired state requires on an existing account. It also finds drift: changes of the account
that the agent did not make."""

from collections.abc import Iterator
from dataclasses import dataclass

from sallyport.agent.endpoint.accounts import MANAGED_GROUP, Account, Accounts, expiry_day
from sallyport.agent.endpoint.memory import ManagedAccount, Memory
from sallyport.agent.endpoint.sudoers import ROOT_GROUPS
from sallyport.agentwire.report import Drift, DriftKind
from sallyport.agentwire.state import DesiredUser, Settings

SUDO_GROUPS = frozenset({"sudo", "wheel", "admin"})
"""Groups to which the sudoers files of common Linux distributions give all rights."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an account. arguments: the arguments for usermod, or empty if usermod has nothing to change. granted:
    the groups of the changed account that the account has from the agent, and not from an admin."""

    arguments: tuple[str, ...]
    detail: str
    granted: tuple[str, ...]
    drift: tuple[Drift, ...]


def change(
    user: DesiredUser,
    account: Account,
    kept: ManagedAccount,
    groups: list[str],
    accounts: Accounts,
    memory: Memory,
    settings: Settings,
) -> Change:
    """Return the change that brings an active account to its desired state. groups: the names of the groups that the
    user gets."""
    wanted = {MANAGED_GROUP, *groups}
    # The account keeps groups that administrators gave it, unless a group gives rights that it should not have.
    foreign = account.groups - wanted - {*kept.granted, *memory.groups}
    rights = set() if user.privileged else foreign & (ROOT_GROUPS | SUDO_GROUPS)
    put_back = settings.put_back_privileges
    drift = tuple(Drift(DriftKind.PRIVILEGE, user.name, f"in group {name}", put_back) for name in sorted(rights))
    members = wanted | (foreign - rights if put_back else foreign)
    granted = {*groups} - (account.groups - {*kept.granted})
    edits = list(_edits(user, account))
    arguments = [argument for edit, _ in edits for argument in edit]
    details = [detail for _, detail in edits]
    if members != account.groups:
        arguments += ["--groups", ",".join(sorted(members))]
        signs = [f"+{name}" for name in sorted(members - account.groups)]
        signs += [f"-{name}" for name in sorted(account.groups - members)]
        details.append(" ".join(("groups", *signs)))
    return Change(tuple(arguments), ", ".join(details), tuple(sorted(granted)), drift)


def _edits(user: DesiredUser, account: Account) -> Iterator[tuple[list[str], str]]:
    day = expiry_day(user.expires)
    if account.expires != day:
        yield ["--expiredate", "" if day is None else str(day)], "expiry"
    # A lone `!` means that no password was ever set. Without the `!` anyone could log in, so it stays.
    if account.password.startswith("!") and account.locked:
        yield (["--unlock"] if account.password.strip("!") else []), "unlocked"
    if user.shell and account.shell != user.shell:
        yield ["--shell", user.shell], f"shell {account.shell} -> {user.shell}"
    if user.home and account.home != user.home:
        yield ["--home", user.home, "--move-home"], f"home {account.home} -> {user.home}"
