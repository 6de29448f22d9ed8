"""The entrance of the sign-in to the console: administrators, identity providers, sessions."""

from collections.abc import Mapping

from sallyport.agentwire.state import Quality, Rules
from sallyport.areas.entrance import Area, Parts
from sallyport.areas.passwords.engine import failures
from sallyport.areas.signin import operations as api
from sallyport.areas.signin import repo
from sallyport.areas.signin.administrators import Administrators, Identities
from sallyport.areas.signin.openid import OpenId
from sallyport.areas.signin.sessions import Sessions
from sallyport.areas.signin.sign_ins import SignIns
from sallyport.areas.tenancy.guesses import guesses_of_all_nodes
from sallyport.areas.tenancy.service import Tenancy
from sallyport.base.clock import SECOND
from sallyport.base.totp import step_at
from sallyport.settings.settings import Settings
from sallyport.shell.command import Command
from sallyport.store.model import Tx
from sallyport.store.sealed import Sealed

PASSWORD_RULES = Rules(quality=Quality(minlen=12, minclass=2, maxsequence=4, usercheck=True))
"""The rules of administrators' passwords."""
FAILED_SIGN_INS = 10
"""Limit of the failed sign-ins of one address or administrator in a short time."""


class SignInArea(Area):
    """Administrators, identity providers, and the sessions of people."""

    sealed = (
        Sealed("administrators", "password", ("id",), "administrators/{}/password", is_vital=True),
        Sealed("administrators", "seed", ("id",), "administrators/{}/seed", is_vital=True),
        Sealed("console_sessions", "id_token", ("id",), "console_sessions/{}/id_token"),
    )

    def __init__(self, parts: Parts, tenancy: Tenancy) -> None:
        store, clock, settings, minute_us = parts.store, parts.clock, parts.settings, 60 * SECOND
        self._tenancy = tenancy
        self.administrators = Administrators(store, parts.vault, _failures, clock)
        self.open_id = OpenId(settings.identity_providers, parts.http, parts.link_base, clock)
        self.identities = Identities(store, clock)
        self.sessions = Sessions(
            store, parts.vault, self.open_id, clock, idle_us=settings.console_idle_minutes * minute_us
        )
        self.sign_ins = SignIns(
            store,
            parts.vault,
            tenancy,
            guesses_of_all_nodes(parts.notices, "sign_in", clock, burst=FAILED_SIGN_INS),
            guesses_of_all_nodes(parts.notices, "sign_in_name", clock, burst=FAILED_SIGN_INS),
            self.open_id,
            clock,
            longest_us=settings.console_hours * 60 * minute_us,
        )

    def apply(self, settings: Settings) -> None:
        """Use the identity providers of the settings, and the times after which sessions end."""
        self.open_id.use(settings.identity_providers)
        self.sessions.idle_us = settings.console_idle_minutes * 60 * SECOND
        self.sign_ins.longest_us = settings.console_hours * 3600 * SECOND

    def commands(self) -> Mapping[str, Command]:
        """Return the commands of administrators and sessions."""
        return api.local_operations(self.administrators, self.identities, self.sessions, self._tenancy)

    def void(self, tx: Tx, at: int) -> None:
        """End the sessions, and spend the one-time codes up to the next time step."""
        repo.void(tx)
        repo.void_codes(tx, step_at(at) + 1)


def _failures(password: str, name: str) -> list[str]:
    """Return the rules that an administrator's password does not meet."""
    return [each.message for each in failures(PASSWORD_RULES, password, name)]
