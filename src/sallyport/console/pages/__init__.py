"""The pages of the console, in the order of the menu."""

from typing import Final

from sallyport.console.pages import (
    account,
    agents,
    bypass,
    clients,
    credentials,
    devices,
    directories,
    domains,
    endpoints,
    enforcement,
    factors,
    home,
    installation,
    keys,
    logins,
    people,
    policies,
    rules,
    senders,
    sessions,
    trail,
)

ALL: Final = (
    home.pages,
    logins.pages,
    senders.pages,
    domains.pages,
    enforcement.pages,
    factors.pages,
    rules.pages,
    bypass.pages,
    devices.pages,
    sessions.pages,
    clients.pages,
    people.pages,
    directories.pages,
    endpoints.pages,
    agents.pages,
    policies.pages,
    credentials.pages,
    keys.pages,
    trail.pages,
    account.pages,
    installation.pages,
)
"""The pages of each module."""
