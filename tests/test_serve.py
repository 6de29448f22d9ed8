"""The end of a service that was asked to end: whoever waits for a second factor is answered first."""

from pathlib import Path

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.peers.hook import Hook
from tests.service import RunningService, running_service

SECRET = "a secret of the tests"
SCOPE = {"orgId": 1, "tenantId": 1, "domainId": 1}


def enforce(service: RunningService, hook: Hook, fallback: str) -> None:
    """Ann, whose second factor is asked by the hook."""
    service.add_client("here", "127.0.0.1", SECRET)
    service.add_user("ann", b"hello")
    service.post("/ad/SetMFAProvider", {**SCOPE, "provider": "webhook", **hook.fields})
    mode = {"enforcementMode": "enforce", "fallbackAction": fallback}
    service.post("/ad/updateDomainEnforcement", {**SCOPE, **mode})


@pytest.mark.parametrize(("fallback", "code"), [("deny", ACCESS_REJECT), ("allow", ACCESS_ACCEPT)])
def test_who_waits_at_sigterm_is_answered(tmp_path: Path, fallback: str, code: int) -> None:
    """By the fallback, which is recorded with its reason; the process ends by itself."""
    with Hook() as hook, running_service(tmp_path, {"SALLYPORT_DRAIN_S": "0"}, fresh=True) as service:
        enforce(service, hook, fallback)
        with service.radius(SECRET) as device:
            request = device.packet("ann", "hello")
            device.send(request)
            hook.wait_for_prompt("ann")
            assert service.stop() == 0
            assert device.receive(request)[0] == code
        (reason,) = service.rows("select reason from events order by id desc limit 1")[0]
        assert reason == "the service was stopped before the second factor was answered"


def test_who_answers_during_the_drain_gets_in(tmp_path: Path) -> None:
    """drain_s is for the user: an approval that comes in time counts, and ends the wait."""
    with Hook() as hook, running_service(tmp_path, {"SALLYPORT_DRAIN_S": "60"}) as service:
        enforce(service, hook, "deny")
        with service.radius(SECRET) as device:
            request = device.packet("ann", "hello")
            device.send(request)
            hook.wait_for_prompt("ann")
            hook.will("ann", "approved", after_s=1)
            assert service.stop() == 0  # long before the sixty seconds are over
            assert device.receive(request)[0] == ACCESS_ACCEPT
