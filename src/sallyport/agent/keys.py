"""The agent's own API key. The agent gets this key in exchange for the enrolment key in its file, and renews it long
before it expires.

The agent generates a key, and writes it into the file as `next_key` before it sends the hash of the key to the service.
When the service has stored the hash, the agent renames `next_key` to `key`. After a crash, the agent sends the hash of
the same key again.

After a renewal, the service accepts the old key until the agent has used the new key. The file keeps the old key as
`former_key`. If the service is restored from a backup that was made before the renewal, the service knows only the old
key. The agent then uses the old key to register the new key again.
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
    """The API keys in an agent's file. Only the agent rewrites them.

    agent: the name of the agent's table in the file. Raises ConfigError if the file is invalid.
    """

    def __init__(self, path: Path, agent: str, service: ServiceClient, *, clock: Callable[[], int] = now_us) -> None:
        self._path = path
        self._agent = agent
        self._service = service
        self._clock = clock
        self._keys = file.read(path, agent).credentials

    @property
    def enrolment_key(self) -> Secret | None:
        """Return the enrolment key in the file. Return None if the file has none, for example because the agent has
        already exchanged it for its own key."""
        return self._keys.enrolment_key

    @property
    def key(self) -> Secret:
        """Return the agent's own key. Raises ConfigError if the file has no key yet."""
        if self._keys.key is None:
            raise ConfigError(f"{self._path}: the file has no key; add an enrolment_key")
        return self._keys.key

    def reload(self) -> None:
        """Read the file again, because an admin may have added an enrolment key. Raises ConfigError."""
        self._keys = file.read(self._path, self._agent).credentials

    def enrol(self, fields: Mapping[str, object] = _NO_FIELDS, *, path: str = EXCHANGE) -> dict[str, object] | None:
        """Exchange the enrolment key for the agent's own key. Return the service's answer, or None if the file has no
        enrolment key.

        fields: further fields of the request body. path: the path of the operation exchangeKey, or of another operation
        whose answer has the same form. Raises ServiceAway, ServiceRefused. Raises ConfigError if the file cannot be
        written.
        """
        enrolment_key = self._keys.enrolment_key
        if enrolment_key is None:
            return None
        answer, key = self._register(path, fields, enrolment_key)
        self._keep({"key": key, "enrolment_key": None, "former_key": None}, answer)
        return answer

    def renew_when_due(self) -> bool:
        """Renew the key if its renewal is due, or if the time of renewal is unknown. Return whether the key was
        renewed.

        Raises ServiceAway, ServiceRefused, ConfigError.
        """
        renew_at = _time(self._keys.renew_at)
        if renew_at is not None and self._clock() < renew_at:
            return False
        former = self.key
        answer, key = self._register(RENEW, _NO_FIELDS, former)
        self._keep({"key": key, "former_key": former.reveal().decode()}, answer)
        return True

    def refused(self, refusal: ServiceRefused) -> None:
        """Recover after the service has refused a request.

        Read the file again, because an admin may have added an enrolment key. If the service has refused the agent's
        key (status 401), use the former key to register the key again. Raises ConfigError.
        """
        self.reload()
        key, former = self._keys.key, self._keys.former_key
        if refusal.status == _NO_KEY and key is not None and former is not None:
            with suppress(ServiceAway, ServiceRefused):  # otherwise an admin must add an enrolment key
                answer = self._service.post(RENEW, {"keyHash": token_hash(key.reveal().decode())}, key=former)
                self._keep({}, answer)

    def _register(self, path: str, fields: Mapping[str, object], authority: Secret) -> tuple[dict[str, object], str]:
        """Register the hash of `next_key` with the service. Return the service's answer, and `next_key`. If the file
        has no `next_key`, generate one first.

        authority: the key that authorizes the request.
        """
        next_key = self._keys.next_key
        if next_key is None:
            next_key = Secret(new_key().encode())
            self._rewrite({"next_key": next_key.reveal().decode()})
        text = next_key.reveal().decode()
        try:
            answer = self._service.post(path, {**fields, "keyHash": token_hash(text)}, key=authority)
        except ServiceRefused as refusal:
            if refusal.status == _CONFLICT:  # the key or machine belongs to another agent: do not send this key again
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
