"""The pages of the console, in the order of the menu."""

from typing import Final

from sallyport.console.pages import (
    account,
    clients,
    devices,
    domains,
    enforcement,
    factors,
    home,
    logins,
    people,
    senders,
    sessions,
)

ALL: Final = (
    home.pages,
    logins.pages,
    senders.pages,
    domains.pages,
    enforcement.pages,
    factors.pages,
    devices.pages,
    sessions.pages,
    clients.pages,
    people.pages,
    account.pages,
)
"""The pages of each module."""
