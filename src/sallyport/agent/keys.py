"""The agent's own key: got by the enrolment key of its file, and renewed long before it ends.

A key is made here, and written into the file as `next_key` before the service hears of its hash; it becomes `key` when
the service has it on disk. Whatever crashes in between, the step is done once more with the same key, which the service
takes for the same. The former key is good until its successor is used. It stays in the file: a service that is restored
from a copy made before the renewal knows that key alone, and by it the agent has the present one known again.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from sallyport.agent import file
from sallyport.agent.service import ServiceClient
from sallyport.base.clock import from_iso, now_us
from sallyport.base.errors import ConfigError, ServiceAway, ServiceRefused
from sallyport.base.ids import new_key, token_hash
from sallyport.base.secret import Secret

EXCHANGE: Final = "/api/v1/agent/exchangeKey"
RENEW: Final = "/api/v1/agent/renewKey"
_NO_KEY, _CONFLICT = 401, 409
_NO_FIELDS: Final[Mapping[str, object]] = {}


class KeyRing:
    """The keys of one agent's file, which it alone rewrites.

    agent: the file's table. ConfigError: the file is wrong.
    """

    def __init__(self, path: Path, agent: str, service: ServiceClient, *, clock: Callable[[], int] = now_us) -> None:
        self._path = path
        self._agent = agent
        self._service = service
        self._clock = clock
        self._keys = file.read(path, agent).credentials

    @property
    def enrolment_key(self) -> Secret | None:
        """What the admin has put into the file, until it is exchanged."""
        return self._keys.enrolment_key

    @property
    def key(self) -> Secret:
        """The agent's own key. ConfigError: it has none yet."""
        if self._keys.key is None:
            raise ConfigError(f"{self._path}: there is no key in it; an enrolment_key is needed")
        return self._keys.key

    def reload(self) -> None:
        """See what an admin has put into the file since: a new enrolment key. ConfigError."""
        self._keys = file.read(self._path, self._agent).credentials

    def enrol(self, fields: Mapping[str, object] = _NO_FIELDS, *, path: str = EXCHANGE) -> dict[str, object] | None:
        """Exchange the enrolment key, where there is one, and have the agent's own in the file; the service's answer.

        None: there is no enrolment key, since it was exchanged before. fields: stand beside `keyHash` in the body.
        path: an operation that answers as exchangeKey does. ServiceAway, ServiceRefused; ConfigError: the file cannot
        be written.
        """
        enrolment_key = self._keys.enrolment_key
        if enrolment_key is None:
            return None
        answer, key = self._register(path, fields, enrolment_key)
        self._keep({"key": key, "enrolment_key": None, "former_key": None}, answer)
        return answer

    def renew_when_due(self) -> bool:
        """Renew the key if it is time, or nobody knows; whether it was. ServiceAway, ServiceRefused; ConfigError."""
        renew_at = _time(self._keys.renew_at)
        if renew_at is not None and self._clock() < renew_at:
            return False
        former = self.key
        answer, key = self._register(RENEW, _NO_FIELDS, former)
        self._keep({"key": key, "former_key": former.reveal().decode()}, answer)
        return True

    def refused(self, refusal: ServiceRefused) -> None:
        """The service has refused a request: see whether an admin has put a new enrolment key into the file; and where
        it does not take the key, have it known again by the former one. ConfigError."""
        self.reload()
        key, former = self._keys.key, self._keys.former_key
        if refusal.status == _NO_KEY and key is not None and former is not None:
            with suppress(ServiceAway, ServiceRefused):  # it was revoked, or nobody knows either: an admin has to help
                answer = self._service.post(RENEW, {"keyHash": token_hash(key.reveal().decode())}, key=former)
                self._keep({}, answer)

    def _register(self, path: str, fields: Mapping[str, object], authority: Secret) -> tuple[dict[str, object], str]:
        """Have the service know the next key; its answer, and that key."""
        next_key = self._keys.next_key
        if next_key is None:
            next_key = Secret(new_key().encode())
            self._rewrite({"next_key": next_key.reveal().decode()})
        text = next_key.reveal().decode()
        try:
            answer = self._service.post(path, {**fields, "keyHash": token_hash(text)}, key=authority)
        except ServiceRefused as refusal:
            if refusal.status == _CONFLICT:  # the key, or what it is for, is known to be another's: not this one again
                self._rewrite({"next_key": None})
            raise
        return answer, text

    def _keep(self, changes: Mapping[str, str | None], answer: Mapping[str, object]) -> None:
        renew_at = str(answer.get("renewAt", ""))
        if _time(renew_at) is None:
            raise ServiceAway("what answers is not the service: it does not say until when the key is good")
        self._rewrite({**changes, "next_key": None, "renew_at": renew_at})

    def _rewrite(self, changes: Mapping[str, str | None]) -> None:
        file.rewrite(self._path, changes)
        self.reload()


def _time(text: str) -> int | None:
    try:
        return from_iso(text)
    except (ValueError, OverflowError):
        return None
