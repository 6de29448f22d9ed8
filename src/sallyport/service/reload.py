"""The reload of the settings: on SIGHUP, and by `sallyport server reload`.

A reload applies the settings of the type `Live` (`settings.settings`), and reads certificates and the configuration in
the store again. It names the other settings that have changed, because they need a restart (`settings.restart`).
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import structlog
import trio

from sallyport.areas.events.outlets.transport import targets_of
from sallyport.areas.login.eap.tls_servers import check_files
from sallyport.base import log as logs
from sallyport.base.errors import ConfigError, SallyportError
from sallyport.base.wire import Row
from sallyport.certs.expiry import certificates_of, files_of
from sallyport.host.notify import Notifier
from sallyport.service.app import App
from sallyport.settings.restart import REASONS
from sallyport.settings.settings import EAP_FILES, LIVE, TLS_FILES, Settings
from sallyport.store.schema.limits import replace_limits

STATUS = "every listener answers"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The result of a reload. applied: the changed settings that apply now. waiting: the changed settings that need a
    restart, including those of earlier reloads."""

    applied: list[str]
    waiting: list[str]

    @property
    def status(self) -> str:
        """A text for `systemctl status`."""
        found = [STATUS]
        if self.applied:
            found.append(f"reloaded {', '.join(self.applied)}")
        if self.waiting:
            found.append(f"a restart is needed for {', '.join(self.waiting)}")
        return "; ".join(found)


async def reload(app: App, read: Callable[[], Settings]) -> Reloaded:
    """Reload settings, certificates and the store's configuration.

    While an apply is unfinished, the configuration is read at its end. Raises ConfigError if a setting or a certificate
    cannot be used. Raises StoreError. After an error, the previous settings and certificates stay in force.
    """
    wanted, present = read(), app.parts.settings
    changed = [name for name in Settings.model_fields if getattr(wanted, name) != getattr(present, name)]
    switches_tls = (wanted.tls_certificate is None) != (present.tls_certificate is None)
    waiting = [name for name in changed if name not in LIVE or (switches_tls and name in TLS_FILES)]
    applied = [name for name in changed if name not in waiting]
    settings = present.model_copy(update={name: getattr(wanted, name) for name in applied})
    targets_of(settings)  # raises ConfigError before anything is applied
    if EAP_FILES.intersection(applied):
        await trio.to_thread.run_sync(_check_eap, settings)
    await app.parts.configuration.refresh()
    if app.tls is not None:
        app.tls.reload(settings.tls_certificate, settings.tls_key)
    if "limits" in applied:  # after all that may refuse the settings, because they are in the store for all nodes
        await app.parts.store.write(partial(replace_limits, limits=settings.limits))
    app.apply(settings)
    app.installation.metrics.loaded()
    return Reloaded(applied, waiting)


def _check_eap(settings: Settings) -> None:
    """Check that EAP can use the files of the settings. Without settings, the data directory may lack a certificate.
    Raises ConfigError."""
    named = [path for path in files_of(settings) if path is not None]
    files = certificates_of(settings).server()
    if files is not None:
        check_files(files)
    elif named:
        missing = next((path for path in named if not path.exists()), settings.data_dir)
        raise ConfigError(f"eap_certificate: {missing} does not exist or has no certificate")


class Reloads:
    """Runs reloads one after the other, and reports each to the log and to systemd.

    read: a function that returns the settings from the file and the environment.
    """

    def __init__(self, app: App, notifier: Notifier, read: Callable[[], Settings]) -> None:
        self._app, self._notifier, self._read = app, notifier, read
        self._turn = trio.Lock()

    async def reload(self) -> Reloaded:
        """Run a reload. Raises SallyportError, after which nothing has changed."""
        async with self._turn:
            self._notifier.reloading()
            status = f"{STATUS}; an error of the program has ended the reload"
            try:
                done = await reload(self._app, self._read)
                status = done.status
            except SallyportError as error:
                log.error("settings_not_reloaded", error=str(error))  # noqa: TRY400
                status = f"{STATUS}; the settings were not reloaded: {error}"
                raise
            except Exception:
                log.exception("settings_not_reloaded", error="an error of the program")
                raise
            finally:
                self._notifier.ready(status)
            log.info("settings_reloaded", log_level=logs.level(), applied=done.applied, need_a_restart=done.waiting)
            return done

    async def rows(self) -> list[Row]:
        """Run a reload, and return the changed settings as rows with `setting`, `state`, and the `reason` of a restart.
        Raises SallyportError."""
        done = await self.reload()
        applied: list[Row] = [{"setting": name, "state": "applied", "reason": ""} for name in done.applied]
        return applied + [
            {"setting": name, "state": "needs a restart", "reason": REASONS[name]} for name in done.waiting
        ]

    async def run(self, hung_up: trio.MemoryReceiveChannel[None]) -> None:
        """Run a reload for each item of the channel, until cancelled."""
        async for _ in hung_up:
            with suppress(Exception):  # it is in the log, and the service must go on
                await self.reload()
