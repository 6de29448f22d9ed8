"""The pages of the console, in the order of the menu."""

from typing import Final

from sallyport.console.pages import (
    account,
    agents,
    bypass,
    credentials,
    directories,
    endpoints,
    home,
    installation,
    keys,
    policies,
    rules,
    trail,
)

ALL: Final = (
    home.pages,
    rules.pages,
    bypass.pages,
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
