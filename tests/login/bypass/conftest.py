"""Logins without a listener; ten failures lock."""

from tests.login.conftest import desk
from tests.login.lockout.conftest import areas, clock

__all__ = ["areas", "clock", "desk"]
