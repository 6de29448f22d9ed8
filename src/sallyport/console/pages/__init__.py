"""The pages of the console, in the order of the menu."""

from typing import Final

from sallyport.console.pages import account, home, logins, senders

ALL: Final = (home.pages, logins.pages, senders.pages, account.pages)
"""The pages of each module."""
