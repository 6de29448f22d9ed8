"""The control of the promises about times."""

import os
import signal
import time

from tests.soak.control import Control
from tests.soak.history import History


def test_a_control_notices_that_it_stood_still() -> None:
    """A process that is stopped for a while has a delay of that time, at that time."""
    with Control() as control:
        began = time.monotonic()
        process_id = control.process_id
        os.kill(process_id, signal.SIGSTOP)
        time.sleep(0.3)
        os.kill(process_id, signal.SIGCONT)
        ended = time.monotonic()
    history = History(controls=control.results)
    assert history.lateness_s(began, ended) >= 0.2
    assert history.stalled_s >= 0.2
    assert history.lateness_s(ended + 60, ended + 61) == 0
