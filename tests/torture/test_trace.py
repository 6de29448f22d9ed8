"""Tests that every answer is on disk before it is sent, as the kernel sees it.

SIGKILL does not change the memory of the kernel. Only a trace of the system calls shows what a power cut would destroy.
The order must be: a request is received, the page with its record is written to the database's log, the log is
synchronized, the reply is sent.
"""

from pathlib import Path
from random import Random

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT, ACCOUNTING_RESPONSE
from tests.running_service import RunningService
from tests.torture.load import Load, Sent, populate
from tests.torture.trace import Call, needs_strace, read_calls, strace

pytestmark = [pytest.mark.torture, needs_strace]

CALLS = "recvfrom,sendto,pwrite64,fdatasync,fsync"
LOG = b"/sallyport.db-wal"
LOADS = 3


def test_the_log_is_synchronized_before_each_reply(tmp_path: Path) -> None:
    """Between a request and its reply its record is written to the log, and then the log is synchronized."""
    output, sent = tmp_path / "trace", list[Sent]()
    service = RunningService(tmp_path, {"SALLYPORT_REJECT_DELAY_S": "0"}, wrapper=strace(output, CALLS))
    try:
        service.start()
        process_id = service.process_id
        populate(service)
        for number in range(LOADS):
            with Load(service, f"t{number}", Random(number), sockets=8) as load:
                load.run(0.2)
                load.drain(0.5)
                sent += load.answered
        assert service.stop() == 0
    finally:
        service.kill()
    trace = Trace(read_calls(output, process_id))
    for each in sent:
        trace.check(each)
    codes = {each.code for each in sent}
    assert {ACCESS_ACCEPT, ACCESS_REJECT, ACCOUNTING_RESPONSE} <= codes


class Trace:
    """The calls that the test checks, in order."""

    def __init__(self, calls: list[Call]) -> None:
        self._received = {call.octets: call for call in calls if call.name == "recvfrom" and call.port}
        self._sent = {(call.port, call.octets): call for call in reversed(calls) if call.name == "sendto" and call.port}
        log = [call for call in calls if call.path.endswith(LOG)]
        self._written = [call for call in log if call.name == "pwrite64"]
        self._synchronized = [call for call in log if call.name in {"fdatasync", "fsync"} and call.result == 0]

    def check(self, each: Sent) -> None:
        """Check the order of the calls for an answered request.

        The first page that contains its station is written together with its record.
        """
        assert each.reply is not None
        station = each.station.encode()
        received, replied = self._received[each.octets], self._sent[each.port, each.reply]
        written = next(call for call in self._written if station in call.octets)
        synchronized = next(call for call in self._synchronized if call.began > written.ended)
        assert received.ended < written.began
        assert synchronized.ended < replied.began, f"the reply to {each.station} left before the log was synchronized"
