"""The comparison of proxies: each of them forwards logins."""

import shutil
from pathlib import Path

import pytest

from tests.peers.programs import needs

from . import proxy
from .settings import Settings

pytestmark = [pytest.mark.bench, pytest.mark.system]


@pytest.mark.peer
@needs("freeradius", "radsecproxy")
@pytest.mark.skipif(shutil.which("cc") is None, reason="cc is not installed")
def test_each_proxy_passes_logins_on(tmp_path: Path) -> None:
    """All answers are authentic Accepts of the server behind the proxy, and those of Sallyport are recorded.

    Otherwise the run would be void.
    """
    told = proxy.run(Settings(directory=tmp_path, rounds=1, seconds=10, requests=300, servers=()))
    for name in ("FreeRADIUS", "radsecproxy", "Sallyport"):
        assert told.count(f" {name} ") >= 2
    assert "requests per CPU second" in told
