"""Fixtures of this folder."""

from tests.areas import areas, clock
from tests.console.conftest import chromium
from tests.web.conftest import certificate

__all__ = ["areas", "certificate", "chromium", "clock"]
