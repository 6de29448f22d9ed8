"""Tests that one tenant cannot delay another. While a probe runs, each field of each operation gets costly values, or a
tenant at its limits does each costly thing.

These are the only tests that measure time, and they run alone. The processor time that the service used during a delay
shows whether the service or the machine was busy.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.running_service import RunningService, running_service
from tests.torture.attack import Attack, Sent
from tests.torture.full import FullTenant
from tests.torture.full_walk import FullWalk
from tests.torture.probe import Answer, Probe

MAX_S = 0.25
"""The maximum delay of another tenant's requests, in seconds. While the machine is slower than that for which this
limit was chosen, the limit is higher in proportion."""
SECRET, PASSWORD, SOURCE = "a secret of the probe", "the password of ann", "127.0.0.2"

pytestmark = [pytest.mark.torture, pytest.mark.serial]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RunningService]:
    """A service that sends a reject without a delay."""
    with running_service(tmp_path, {"SALLYPORT_REJECT_DELAY_S": "0", "COMPANY_SECRET": "x"}) as service:
        yield service


@pytest.fixture
def attack(service: RunningService) -> Attack:
    """The hostile tenant."""
    return Attack(service)


@pytest.fixture
def full(service: RunningService) -> FullTenant:
    """The hostile tenant that is at its limits."""
    return FullTenant(service)


def probe_of(service: RunningService) -> Probe:
    """Return the probe of another tenant, which has a domain, a RADIUS client and a user."""
    service.ok("domain", "add", "quiet", "--org", "2", "--tenant", "1")
    service.add_client("quiet", SOURCE, SECRET, "quiet", org=2)
    service.add_user("ann", PASSWORD, "quiet")
    return Probe(service, SECRET, source=SOURCE, user="ann", password=PASSWORD)


def finding(answer: Answer, sent: Sequence[Sent]) -> str:
    """Return a text with a delay and the requests that may have caused it."""
    until = answer.sent_at + answer.delay_s
    causes = [f"    {each}" for each in sent if each.began < until and each.ended > answer.sent_at]
    slow = f" on a machine that was {answer.slowness:.1f} times slower" if answer.slowness > 1 else ""
    worked = (
        f"{answer.kind} {answer.delay_s:.3f} s, in which the service worked for {answer.worked_s:.3f} s{slow}, during"
    )
    return "\n".join([worked, *causes])


def check_delays(probe: Probe, sent: Sequence[Sent]) -> None:
    """Check that each request of the probe was answered in time."""
    late = [each for each in probe.results if each.delay_s > MAX_S * each.slowness]
    slow = sorted(late, key=lambda each: -each.delay_s)
    assert not slow, "\n".join(finding(each, sent) for each in slow[:10])


def test_no_field_delays_another_tenant(service: RunningService, attack: Attack) -> None:
    """Each request is answered without a server error, and the other tenant's logins are answered within 250 ms."""
    with probe_of(service) as probe:
        attack.run()
    operations = {f"{method.upper()} {path}" for path, kinds in attack.described["paths"].items() for method in kinds}
    assert {each.operation for each in attack.sent} == operations
    assert not [str(each) for each in attack.sent if not 200 <= each.status < 500]
    check_delays(probe, attack.sent)


def test_no_full_tenant_delays_another(service: RunningService, full: FullTenant) -> None:
    """The tenant has 10,000 devices, 50,000 RADIUS clients, 1,000 domains and 1,000,000 tokens. Each request is
    answered, and the other tenant's logins are answered within 250 ms."""
    walk = FullWalk(full)
    with probe_of(service) as probe:
        walk.run()
    assert not [str(each) for each in walk.sent if each.status in {0, 500}]
    check_delays(probe, walk.sent)
