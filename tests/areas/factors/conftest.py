"""Fixtures of this folder."""

from tests.areas import areas, clock
from tests.web.conftest import certificate

__all__ = ["areas", "certificate", "clock"]
