"""The pages of the console, in the order of the menu."""

from typing import Final

from sallyport.console.pages import account, bypass, directories, home, installation, keys, policies, rules, trail

ALL: Final = (
    home.pages,
    rules.pages,
    bypass.pages,
    directories.pages,
    policies.pages,
    keys.pages,
    trail.pages,
    account.pages,
    installation.pages,
)
"""The pages of each module."""
