"""Secrets by reference: `file:NAME` and `env:NAME` in the files of a folder. Other long texts, such as certificates,
may be references to files too.

Only the command line, as its caller, and the start of the service resolve references. A reference that came over the
API or an upload could read files of the service's host. A file must be below the folder or $CREDENTIALS_DIRECTORY, and
no link may lead out of it. An environment variable must have a name that begins with SALLYPORT_SECRET_.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from sallyport.areas.configuration.item import KEEP
from sallyport.base.errors import StartError
from sallyport.settings.values import SECRET_PREFIX

MAX_OCTETS: Final = 64 << 10
_FORMS: Final = f"give file:NAME, env:{SECRET_PREFIX}NAME or {KEEP}"


class References:
    """The references of a folder. environ: the environment."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._environ = environ
        credentials = environ.get("CREDENTIALS_DIRECTORY", "")
        self._folders = [folder.resolve(), *([Path(credentials).resolve()] if credentials else [])]

    def resolved(
        self, value: object, secrets: Collection[str], where: str, name: str = "", texts: Collection[str] = ()
    ) -> object:
        """Return a value in which each reference of a secret is replaced by the secret as {"hex": octets}.

        secrets: the names of the fields with secrets. texts: the names of fields with texts, of which those that are
        references to files are replaced too. where: the place of the value, for errors. Raises StartError, whose
        message has no secret.
        """
        if name in secrets:
            return self._secret(value, f"{where}: {name}")
        if name in texts and isinstance(value, str):
            return self.text(value, f"{where}: {name}")
        if isinstance(value, Mapping):
            return {inner: self.resolved(each, secrets, where, inner, texts) for inner, each in value.items()}
        if isinstance(value, list):
            return [self.resolved(each, secrets, where, "", texts) for each in value]
        return value

    def text(self, value: str, where: str) -> str:
        """Return the text of a file, if a value is a reference to one; otherwise the value. Raises StartError."""
        kind, _, name = value.partition(":")
        if kind != "file" or not name:
            return value
        try:
            return self._read(name, where).decode()
        except UnicodeDecodeError as error:
            raise StartError(f"{where}: {name}: octet {error.start + 1} is not UTF-8") from error

    def _secret(self, value: object, where: str) -> object:
        if value in (KEEP, ""):
            return value
        kind, _, name = value.partition(":") if isinstance(value, str) else ("", "", "")
        if kind == "file" and name:
            return {"hex": self._read(name, where).hex()}
        if kind == "env" and name:
            if not name.startswith(SECRET_PREFIX):
                raise StartError(f"{where}: an environment variable must have a name that begins with {SECRET_PREFIX}")
            if name not in self._environ:
                raise StartError(f"{where}: the environment has no variable {name}")
            return {"hex": self._environ[name].encode(errors="surrogateescape").hex()}
        raise StartError(f"{where}: must be a reference to a secret: {_FORMS}")

    def _read(self, name: str, where: str) -> bytes:
        """Return the octets of a file without a line end. A file of that name in the folder precedes one of the
        credentials."""
        for folder in self._folders:
            path = (folder / name).resolve()
            if not path.is_relative_to(folder):
                continue
            try:
                with path.open("rb") as file:
                    octets = file.read(MAX_OCTETS + 1)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise StartError(f"{where}: {path}: {error.strerror}") from error
            if len(octets) > MAX_OCTETS:
                raise StartError(f"{where}: {path} has more than {MAX_OCTETS} octets")
            return octets.removesuffix(b"\n").removesuffix(b"\r")
        folders = " or ".join(map(str, self._folders))
        raise StartError(f"{where}: no file {name} below {folders}; a link must not lead out of it")
