"""Requests of the command line, run in this process on the store. This is used if no service runs.

Trio runs in another thread until `close` is called, so that a command with several requests opens the store only once.
"""

import json
import os
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread

import trio

from sallyport.base import log
from sallyport.base.errors import Invalid, NotFound, Refused
from sallyport.base.wire import JSON, Row
from sallyport.host.owner import as_owner, user_name
from sallyport.service.build import New, build
from sallyport.service.commands import Requests
from sallyport.service.control import in_one_line
from sallyport.service.operations import gate_of, operations
from sallyport.settings.settings import Settings
from sallyport.store.data_folder import make_data_directory


class Local:
    """The open store. It holds the lock of the data directory until it is closed.

    new: what to do if there is no store (see `build`). If root uses the data directory of another user, that user owns
    the new files. Raises Locked, Absent, ConfigError, StoreError. If an error ends the thread of the store later, the
    next `call` or `close` raises that error.
    """

    def __init__(self, settings: Settings, environ: Mapping[str, str], *, new: New = "make") -> None:
        log.configure(level="error", form="text")  # the command itself prints its results
        self._opened: Future[tuple[Requests, trio.Event, trio.lowlevel.TrioToken]] = Future()
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, args=(settings, environ, new), name="store", daemon=True)
        self._thread.start()
        self._requests, self._stop, self._trio = self._opened.result()

    def call(self, asked: Row) -> JSON:
        """Run a request of the control socket. Raises SallyportError if the request fails."""
        try:
            result = trio.from_thread.run(self._requests.run, asked, user_name(os.geteuid()), trio_token=self._trio)
        except Refused as error:
            if isinstance(error, Invalid):
                raise Invalid(in_one_line(error), error.fields) from error
            kind = NotFound if isinstance(error, NotFound) else Refused
            raise kind(in_one_line(error)) from error
        except (trio.RunFinishedError, trio.Cancelled):
            self._join()
            raise
        answer: JSON = json.loads(result)
        return answer

    def close(self) -> None:
        """Close the store and release the lock."""
        with suppress(trio.RunFinishedError):  # an error has already ended the thread
            trio.from_thread.run_sync(self._stop.set, trio_token=self._trio)
        self._join()

    def _join(self) -> None:
        self._thread.join()
        error, self._error = self._error, None
        if error is not None:
            raise error from error.__cause__

    def _run(self, settings: Settings, environ: Mapping[str, str], new: New) -> None:
        try:
            make_data_directory(settings.data_dir)
            with as_owner(settings.data_dir):
                trio.run(self._hold, settings, environ, new)
        except BaseException as error:  # raised again in the caller's thread
            if self._opened.done():
                self._error = error
            else:
                self._opened.set_exception(error)

    async def _hold(self, settings: Settings, environ: Mapping[str, str], new: New) -> None:
        async with build(settings, environ, new=new) as app:
            stop = trio.Event()
            gate = gate_of(app)
            self._opened.set_result((Requests(app, operations(app, gate)), stop, trio.lowlevel.current_trio_token()))
            await stop.wait()
