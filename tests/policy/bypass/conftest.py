"""Logins without a listener; ten failures lock."""

from tests.login.conftest import desk
from tests.policy.lockouts.conftest import areas, clock

__all__ = ["areas", "clock", "desk"]
