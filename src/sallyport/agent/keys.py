"""The agent's own key: obtained with the enrolment key of its file, and renewed long before it expires.

The agent generates a key and writes it into the file as `next_key` before it sends the hash; the key becomes `key` when
the service has stored the hash. After a crash the step is repeated with the same key. The former key is valid until its
successor is used. It stays in the file: a service that is restored from a copy made before the renewal knows only that
key, with which the agent registers the present one again.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from sallyport.agent import file
from sallyport.agent.service import ServiceClient
from sallyport.base.clock import from_iso, now_us
from sallyport.base.errors import ConfigError, ServiceAway, ServiceRefused
from sallyport.base.secret import Secret, new_key, token_hash

EXCHANGE: Final = "/api/v1/agent/exchangeKey"
RENEW: Final = "/api/v1/agent/renewKey"
_NO_KEY, _CONFLICT = 401, 409
_NO_FIELDS: Final[Mapping[str, object]] = {}


class KeyRing:
    """The keys in an agent's file, which only the agent rewrites.

    agent: name of the agent's table in the file. ConfigError: the file is wrong.
    """

    def __init__(self, path: Path, agent: str, service: ServiceClient, *, clock: Callable[[], int] = now_us) -> None:
        self._path = path
        self._agent = agent
        self._service = service
        self._clock = clock
        self._keys = file.read(path, agent).credentials

    @property
    def enrolment_key(self) -> Secret | None:
        """Return the enrolment key of the file; None if it was exchanged."""
        return self._keys.enrolment_key

    @property
    def key(self) -> Secret:
        """Return the agent's own key. ConfigError: it has none yet."""
        if self._keys.key is None:
            raise ConfigError(f"{self._path}: there is no key in it; an enrolment_key is needed")
        return self._keys.key

    def reload(self) -> None:
        """Read the file again, since an admin may have added an enrolment key. Raises ConfigError."""
        self._keys = file.read(self._path, self._agent).credentials

    def enrol(self, fields: Mapping[str, object] = _NO_FIELDS, *, path: str = EXCHANGE) -> dict[str, object] | None:
        """Exchange the enrolment key, if there is one, for the agent's own key; return the service's answer.

        None: the enrolment key was exchanged before. fields: further fields of the body. path: an operation that
        answers as exchangeKey does. ServiceAway, ServiceRefused; ConfigError: the file cannot be written.
        """
        enrolment_key = self._keys.enrolment_key
        if enrolment_key is None:
            return None
        answer, key = self._register(path, fields, enrolment_key)
        self._keep({"key": key, "enrolment_key": None, "former_key": None}, answer)
        return answer

    def renew_when_due(self) -> bool:
        """Renew the key if due, or if the time is unknown; return whether it was renewed. ServiceAway, ServiceRefused;
        ConfigError."""
        renew_at = _time(self._keys.renew_at)
        if renew_at is not None and self._clock() < renew_at:
            return False
        former = self.key
        answer, key = self._register(RENEW, _NO_FIELDS, former)
        self._keep({"key": key, "former_key": former.reveal().decode()}, answer)
        return True

    def refused(self, refusal: ServiceRefused) -> None:
        """Recover from a refused request. Read the file again, since an admin may have added an enrolment key. If the
        service does not accept the key, register it again with the former key. Raises ConfigError."""
        self.reload()
        key, former = self._keys.key, self._keys.former_key
        if refusal.status == _NO_KEY and key is not None and former is not None:
            with suppress(ServiceAway, ServiceRefused):  # the former key is unknown too: an admin has to help
                answer = self._service.post(RENEW, {"keyHash": token_hash(key.reveal().decode())}, key=former)
                self._keep({}, answer)

    def _register(self, path: str, fields: Mapping[str, object], authority: Secret) -> tuple[dict[str, object], str]:
        """Register the next key; return the service's answer, and the key."""
        next_key = self._keys.next_key
        if next_key is None:
            next_key = Secret(new_key().encode())
            self._rewrite({"next_key": next_key.reveal().decode()})
        text = next_key.reveal().decode()
        try:
            answer = self._service.post(path, {**fields, "keyHash": token_hash(text)}, key=authority)
        except ServiceRefused as refusal:
            if refusal.status == _CONFLICT:  # the key, or the machine, is another's: do not send this key again
                self._rewrite({"next_key": None})
            raise
        return answer, text

    def _keep(self, changes: Mapping[str, str | None], answer: Mapping[str, object]) -> None:
        renew_at = str(answer.get("renewAt", ""))
        if _time(renew_at) is None:
            raise ServiceAway("the answer is not from the service: it has no renewAt")
        self._rewrite({**changes, "next_key": None, "renew_at": renew_at})

    def _rewrite(self, changes: Mapping[str, str | None]) -> None:
        file.rewrite(self._path, changes)
        self.reload()


def _time(text: str) -> int | None:
    try:
        return from_iso(text)
    except (ValueError, OverflowError):
        return None
