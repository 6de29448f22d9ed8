"""The pages of the console, in the order of the menu."""

from typing import Final

from sallyport.console.pages import (
    account,
    agents,
    bypass,
    clients,
    devices,
    domains,
    enforcement,
    factors,
    first_factor,
    home,
    installation,
    keys,
    logins,
    people,
    policies,
    reauthorizations,
    roles,
    rules,
    senders,
    sessions,
    tenants,
    tokens,
    trail,
)
from sallyport.console.pages.credentials import credentials, dids, presentations, schemas, wallets
from sallyport.console.pages.directories import directories, imports, mappings, settings
from sallyport.console.pages.directories import people as directory_people
from sallyport.console.pages.endpoints import groups, instances, users

ALL: Final = (
    home.pages,
    logins.pages,
    senders.pages,
    domains.pages,
    enforcement.pages,
    first_factor.pages,
    factors.pages,
    rules.pages,
    reauthorizations.pages,
    roles.pages,
    bypass.pages,
    devices.pages,
    sessions.pages,
    clients.pages,
    people.pages,
    directory_people.pages,
    settings.pages,
    directories.pages,
    imports.pages,
    mappings.pages,
    instances.pages,
    groups.pages,
    users.pages,
    agents.pages,
    policies.pages,
    dids.pages,
    schemas.pages,
    credentials.pages,
    wallets.pages,
    presentations.pages,
    keys.pages,
    tokens.pages,
    trail.pages,
    tenants.pages,
    account.pages,
    installation.pages,
)
"""The pages of each module."""
