"""The benchmarks of the step-up page, with few people, and with a person without patience."""

from pathlib import Path

import pytest

from tests.bench import pages, person
from tests.bench.settings import Settings
from tests.peers.programs import needs
from tests.peers.test_pam_radius import may_mount, module


@pytest.mark.bench
@pytest.mark.system
def test_logins_are_measured_beside_the_pages(tmp_path: Path) -> None:
    """Logins are measured alone and beside the people, and each person proves."""
    told = pages.measure(tmp_path, Settings(tmp_path, rounds=1, seconds=1, requests=0, servers=()), 4, 0.3)
    assert "beside 4 people" in told


@pytest.mark.bench
@pytest.mark.system
@needs("chromium", "pamtester")
@pytest.mark.skipif(module() is None or not may_mount(), reason="pam_radius_auth, or a mount namespace, is missing")
def test_a_login_and_an_enrolment_are_measured(tmp_path: Path) -> None:
    """Actions, keys and decisions are in the table, with the limits."""
    told = person.measure(tmp_path, 2, is_slow=False)
    assert "login with a passkey" in told and "enrolment by a link" in told
