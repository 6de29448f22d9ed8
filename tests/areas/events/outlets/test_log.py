"""The log line of each decision."""

import json
import time
from pathlib import Path

from tests.running_service import RunningService, running_service

SECRET = "a secret of the tests"
WAIT_S = 30.0


def logins(service: RunningService, count: int) -> list[dict[str, object]]:
    """Wait until the log has `count` lines of decisions. Return these lines."""
    deadline = time.monotonic() + WAIT_S
    while True:
        lines = [json.loads(line) for line in service.log().splitlines() if line.startswith("{")]
        if len(found := [line for line in lines if line["event"] == "login"]) >= count:
            return found
        assert time.monotonic() < deadline, "no line"
        time.sleep(0.05)


def log_in(service: RunningService) -> None:
    """Log ann in from a station twice: first with the right password, then with a wrong one."""
    service.add_client("here", "127.0.0.1", SECRET)
    service.add_user("ann", b"hello")
    with service.radius(SECRET) as client:
        for password in ("hello", "wrong"):
            client.login("ann", password, CALLING_STATION_ID=b"AA-BB-CC-00-11-22")


def test_a_decision_is_logged_with_the_id_of_its_event(tmp_path: Path) -> None:
    """The field event_id is the eventId of GetAuthLog. The line has the decision and the reason, and no password. A
    login without a trace has no field for it."""
    with running_service(tmp_path, {"SALLYPORT_REJECT_DELAY_S": "0"}) as service:
        log_in(service)
        lines = logins(service, 2)
        body = {"orgId": 1, "tenantId": 1, "domainId": 1}
        events = {each["eventId"]: each for each in service.post("/ad/GetAuthLog", body)["events"]}
        assert {line["event_id"] for line in lines} == events.keys()
        assert not [line for line in lines if line.keys() & {"trace_id", "request_id"}]
        assert [(line["user"], line["appliedDecision"]) for line in lines] == [("ann", "accept"), ("ann", "reject")]
        assert "hello" not in service.log()


def test_log_lines_of_decisions_can_be_turned_off(tmp_path: Path) -> None:
    """A setting turns the lines off. The log level can also turn them off while the service runs."""
    settings = {"SALLYPORT_LOG_LOGINS": "false", "SALLYPORT_REJECT_DELAY_S": "0"}
    with running_service(tmp_path, settings) as service:
        log_in(service)
        service.ok("log", "level", "debug")
    assert '"event": "login"' not in service.log()


def test_names_can_be_pseudonyms_in_the_log(tmp_path: Path) -> None:
    """Users and stations are replaced by hashes. The same name has the same hash in every line."""
    settings = {"SALLYPORT_LOG_IDENTITIES": "hashed", "SALLYPORT_REJECT_DELAY_S": "0"}
    with running_service(tmp_path, settings) as service:
        log_in(service)
        first, second = logins(service, 2)
        assert first["user"] == second["user"]
        assert str(first["user"]).startswith("#")
        assert "AA-BB-CC" not in service.log()
        assert '"ann"' not in service.log()
