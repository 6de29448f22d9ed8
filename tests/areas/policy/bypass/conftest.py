"""Fixtures of the bypass tests: logins without a socket, and a lock-out after ten failures."""

from tests.areas.login.conftest import listener
from tests.areas.policy.lockouts.conftest import areas, clock

__all__ = ["areas", "clock", "listener"]
