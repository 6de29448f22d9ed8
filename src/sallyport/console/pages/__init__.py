"""The pages of the console, in the order of the menu."""

from typing import Final

from sallyport.console.pages import account, bypass, home, rules

ALL: Final = (home.pages, rules.pages, bypass.pages, account.pages)
"""The pages of each module."""
