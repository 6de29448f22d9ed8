"""The entrance of the sign-in to the console: administrators, identity providers, sessions."""

from collections.abc import Callable, Mapping

from sallyport.areas.entrance import Area, Parts
from sallyport.areas.signin import operations as api
from sallyport.areas.signin import repo
from sallyport.areas.signin.administrators import Administrators, Failures
from sallyport.areas.signin.identities import Identities
from sallyport.areas.signin.openid import OpenId
from sallyport.areas.signin.sessions import MatchingStep, Sessions
from sallyport.areas.tenancy.authentication import guesses_of_all_nodes
from sallyport.areas.tenancy.service import Tenancy
from sallyport.base.clock import SECOND
from sallyport.shell.command import Command
from sallyport.store.model import Tx

FAILED_SIGN_INS = 10
"""Limit of the failed sign-ins of one address or administrator in a short time."""


class SignInArea(Area):
    """Administrators, identity providers, and the sessions of people.

    failures: returns the rules that an administrator's password does not meet. matching_step: returns the time step of
    a one-time code. step_s: the length of a time step in seconds. uri: returns the URI of a seed for authenticator
    apps.
    """

    def __init__(
        self,
        parts: Parts,
        tenancy: Tenancy,
        *,
        failures: Failures,
        matching_step: MatchingStep,
        step_s: int,
        uri: Callable[[str, str], str],
    ) -> None:
        store, clock, settings, minute_us = parts.store, parts.clock, parts.settings, 60 * SECOND
        self._tenancy, self._uri, self._step_us = tenancy, uri, step_s * SECOND
        self.administrators = Administrators(store, parts.vault, failures, clock)
        self.open_id = OpenId(settings.identity_providers, parts.http, parts.link_base, clock)
        self.identities = Identities(store, clock)
        self.sessions = Sessions(
            store,
            parts.vault,
            tenancy,
            guesses_of_all_nodes(parts.notices, "sign_in", clock, burst=FAILED_SIGN_INS),
            guesses_of_all_nodes(parts.notices, "sign_in_name", clock, burst=FAILED_SIGN_INS),
            matching_step,
            self.open_id,
            clock,
            idle_us=settings.console_idle_minutes * minute_us,
            longest_us=settings.console_hours * 60 * minute_us,
        )

    def commands(self) -> Mapping[str, Command]:
        """Return the commands of administrators and sessions."""
        return api.local_operations(self.administrators, self.identities, self.sessions, self._tenancy, self._uri)

    def void(self, tx: Tx, at: int) -> None:
        """End the sessions, and spend the one-time codes up to the next time step."""
        repo.void(tx)
        repo.void_codes(tx, at // self._step_us + 1)
