"""The services for directories: save and test their settings, list their people and groups, and queue imports and
removals."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeVar

import trio

from sallyport.areas.directory import repo
from sallyport.areas.directory.directory import (
    CLOUD,
    LDIF_NAME,
    READ_BY_SERVICE,
    Directory,
    DirectoryConfiguration,
    DirectoryKind,
    Group,
    ReadRequest,
    User,
    hosts_of,
    kind_of,
)
from sallyport.areas.directory.imports import repo as jobs_repo
from sallyport.areas.directory.imports.files import ImportFiles
from sallyport.areas.directory.imports.job import Check, DirectorySource, Job, JobKind, NewJob
from sallyport.areas.directory.imports.service import Jobs
from sallyport.areas.directory.reading.okta import key_flaw
from sallyport.areas.directory.stored import repo as entries
from sallyport.base.clock import Clock
from sallyport.base.errors import (
    Conflict,
    FieldError,
    Invalid,
    NotFound,
    Refused,
    SallyportError,
    SecretError,
    StoreError,
)
from sallyport.base.fair import PerMinute
from sallyport.base.secret import Secret
from sallyport.base.wire import JSON
from sallyport.store.audit import HIDDEN, changed
from sallyport.store.model import ListQuery, Store, Tx, Value, Work
from sallyport.store.vault import Vault

T = TypeVar("T")

PREVIEWED: Final = 10
SHOWN_JOBS: Final = 20
MAX_DIRECTORIES: Final = 100
TRIAL_S: Final = 30.0
TRIALS_PER_MINUTE: Final = 5
NO_DIRECTORY: Final = "directory not found"
NO_GROUP: Final = "group not found"
_DESTINATION: Final = ("bindDN", "startTls", "caCertificate", "clientId")
_NEEDED_AGAIN: Final = (
    "is needed again if kind, accountName, appUrl, bindDN, startTls, caCertificate or clientId changes"
)


class Directories:
    """The directories of all domains."""

    def __init__(self, store: Store, vault: Vault, files: ImportFiles, jobs: Jobs, clock: Clock) -> None:
        self._store = store
        self._vault = vault
        self._clock = clock
        self.files = files
        self.jobs = jobs

    # --- people and groups ------------------------------------------------------------------------------------------

    async def groups(self, list_query: ListQuery, search: str, directory_id: int = 0) -> tuple[list[Group], int]:
        """Return one page of a domain's groups, and the number of matches. directory_id: the directory of the groups; 0
        for all directories of the domain."""
        return await self._store.search(lambda tx: entries.groups(tx, list_query, search, directory_id))

    async def users(self, list_query: ListQuery, search: str, *, cloud: bool = False) -> tuple[list[User], int]:
        """Return one page of a domain's people, and the number of matches."""
        return await self._store.search(lambda tx: entries.users(tx, list_query, search, cloud=cloud))

    async def users_of_group(self, group_id: int, list_query: ListQuery, search: str) -> tuple[list[User], int]:
        """Return one page of the people in a group and in its nested groups, and the number of matches. Raises
        NotFound."""

        def query(tx: Tx) -> tuple[list[User], int]:
            group = entries.group(tx, group_id)
            if group is None or group.domain_id != list_query.domain_id:
                raise NotFound(NO_GROUP)
            return entries.users_of_group(tx, group, list_query, search)

        return await self._store.search(query)

    async def groups_by_sid(self, domain_id: int, sids: Sequence[str]) -> dict[str, str]:
        """Return the names of a domain's groups by their security identifiers; see `entries.groups_by_sid`."""
        return await self._store.search(lambda tx: entries.groups_by_sid(tx, domain_id, sids))

    async def groups_of(self, users: Sequence[User]) -> list[list[str]]:
        """Return, for each person, the names of the groups that the person is a direct member of."""
        return await self._store.search(lambda tx: [entries.names_of_own_groups(tx, user) for user in users])

    async def names(self, domain_id: int) -> dict[int, str]:
        """Return the names of a domain's directories. The keys are directory ids."""
        return {each.id: each.name for each in await self.of_domain(domain_id)}

    # --- configuration ----------------------------------------------------------------------------------------------

    async def of_domain(self, domain_id: int) -> list[Directory]:
        """Return a domain's directories."""
        return await self._store.read(lambda tx: repo.of_domain(tx, domain_id))

    async def save(self, configuration: Sequence[tuple[int, DirectoryConfiguration]]) -> None:
        """Set the given fields of directories. If a directory does not exist, create it. If any of the directories
        cannot be saved, change nothing.

        Raises Invalid, for example if a stored secret would be sent to another server, or if a private key is not
        usable.
        """
        flaws = [await trio.to_thread.run_sync(key_flaw, each.secret or b"") for _, each in configuration]

        def transaction(tx: Tx) -> None:
            for (domain_id, each), flaw in zip(configuration, flaws, strict=True):
                self.save_in(tx, domain_id, each, flaw)

        await self._store.write(transaction)

    def save_in(self, tx: Tx, domain_id: int, configuration: DirectoryConfiguration, flaw: str) -> Directory:
        """Set the given fields of a directory in a transaction, and return it. flaw: the result of `key_flaw` for the
        secret. Raises Invalid, Conflict."""
        known, at = repo.named_for_use(tx, domain_id, configuration.name), self._clock()
        columns = _columns(tx, known, configuration, flaw)
        directory = known or self.make(tx, domain_id, configuration.name, DirectoryKind(str(columns["kind"])))
        before = _audited(directory)
        if configuration.secret:
            columns["secret"] = self._vault.seal(configuration.secret, repo.identity(directory.id))
        repo.update(tx, directory.id, columns, at)
        after = repo.get(tx, directory.id)
        assert after is not None  # noqa: S101  it was just written
        hidden: dict[str, JSON] = {"secret": HIDDEN} if configuration.secret else {}
        repo.note(tx, "directory.save", after, at, changed({**before, **hidden}, {**_audited(after), **hidden}))
        return after

    async def source(self, domain_id: int, configuration: DirectoryConfiguration) -> DirectorySource:
        """Return the source of a directory. The given values replace the stored values, but nothing is saved. Raises
        Invalid and Conflict in the same cases as `save`. Raises SecretError."""
        flaw = await trio.to_thread.run_sync(key_flaw, configuration.secret or b"")

        def query(tx: Tx) -> tuple[Directory | None, dict[str, Value]]:
            known = repo.named_for_use(tx, domain_id, configuration.name)
            return known, _columns(tx, known, configuration, flaw)

        known, columns = await self._store.read(query)
        secret = Secret(configuration.secret) if configuration.secret else None
        if secret is None and known is not None and known.secret is not None:
            secret = Secret(self._vault.open(known.secret, repo.identity(known.id)))
        app_url = columns.get("app_url", known.app_url if known is not None else "")
        account = columns.get("account_name", known.account_name if known is not None else "")
        settings: dict[str, str] = json.loads(str(columns["settings"]))
        return DirectorySource(domain_id, str(columns["kind"]), str(app_url), str(account), settings, secret)

    def make(self, tx: Tx, domain_id: int, name: str, kind: DirectoryKind) -> Directory:
        """Return the directory with this name in a domain. Create the directory if it does not exist. Raises Conflict
        if the domain has too many directories, or if the directory is being removed."""
        known = repo.named_for_use(tx, domain_id, name)
        if known is not None:
            return known
        if len(repo.of_domain(tx, domain_id)) >= MAX_DIRECTORIES:
            raise Conflict(f"a domain has at most {MAX_DIRECTORIES} directories: remove one first")
        directory = repo.add(tx, domain_id, name, kind.value, self._clock())
        repo.note(tx, "directory.add", directory, self._clock(), changed({}, {"kind": kind.value}))
        return directory

    # --- imports ----------------------------------------------------------------------------------------------------

    async def import_ldif(self, domain_id: int, file: str, file_name: str, name: str, *, complete: bool) -> int:
        """Queue the import of an uploaded file. Return the job's id. Raises Conflict if too many jobs are waiting."""

        def transaction(tx: Tx) -> int:
            directory = self.make(tx, domain_id, name or LDIF_NAME, DirectoryKind.LDIF)
            new = NewJob(directory.id, JobKind.LDIF, file_name, file, complete)
            return self.queue(tx, directory, new)

        return await self._queued(transaction)

    async def import_users(self, wanted: Sequence[ReadRequest]) -> list[int]:
        """Queue jobs that read directories. Return the ids of the jobs. If a job cannot be queued, nothing is
        changed."""

        def transaction(tx: Tx) -> list[int]:
            found = list[int]()
            for each in wanted:
                directory = self._read_from(tx, each.domain_id, each.name, each.source["appUrl"])
                source, complete = json.dumps(each.source), each.complete
                new = NewJob(directory.id, JobKind.READING, source=source, complete=complete, secret=each.secret)
                found.append(self.queue(tx, directory, new))
            return found

        return await self._queued(transaction)

    async def sync(self, domain_id: int, name: str, *, full: bool = False) -> int:
        """Queue a job that reads a directory with the stored settings, and return the job's id. If such a job is
        already queued, return its id instead. Raises Invalid if the service cannot read the directory. Raises Conflict
        if too many jobs are waiting. Raises NotFound."""

        def transaction(tx: Tx) -> int:
            directory = repo.named_for_use(tx, domain_id, name)
            if directory is None:
                raise NotFound(NO_DIRECTORY)
            if directory.kind not in READ_BY_SERVICE or not (directory.app_url or directory.settings != "{}"):
                raise Invalid.about(
                    "the directory has no server settings: set them with `sallyport directory set`", "directoryName"
                )
            waits = jobs_repo.open_reading(tx, directory.id)
            return waits or self.queue(tx, directory, NewJob(directory.id, JobKind.READING, complete=full))

        return await self._queued(transaction)

    async def remove(self, wanted: Sequence[tuple[int, str]]) -> list[int]:
        """Queue the removal of directories. Return the ids of the jobs. If the removal of any directory cannot be
        queued, change nothing. wanted: pairs of a domain id and a directory name.

        The secret is deleted at once. People and groups are deleted later in the background. Until then, no other job
        can be queued for the directory. If the removal of a directory is already queued, the id of the queued job is
        returned. Raises Conflict if too many jobs are waiting. Raises NotFound.
        """
        return await self._queued(lambda tx: [self.remove_in(tx, domain_id, name) for domain_id, name in wanted])

    def read(self, tx: Tx, domain_id: int) -> list[tuple[Directory, bytes]]:
        """Return the directories of a domain that are not being removed, each with its secret, or empty octets. Raises
        SecretError."""
        own = [each for each in repo.of_domain(tx, domain_id) if jobs_repo.open_removal(tx, each.id) is None]
        return [(each, self._vault.open(each.secret, repo.identity(each.id)) if each.secret else b"") for each in own]

    def remove_in(self, tx: Tx, domain_id: int, name: str) -> int:
        """Queue the removal of a directory in a transaction; see `remove`. After it, the caller must call
        `jobs.wake`."""
        directory = repo.named(tx, domain_id, name)
        if directory is None:
            raise NotFound(NO_DIRECTORY)
        waits = jobs_repo.open_removal(tx, directory.id)
        if waits is not None:
            return waits
        repo.update(tx, directory.id, {"secret": None}, self._clock())
        repo.note(tx, "directory.remove", directory, self._clock())
        return self.jobs.add(tx, domain_id, NewJob(directory.id, JobKind.REMOVAL))

    async def _queued(self, work: Work[T]) -> T:
        result = await self._store.write(work)
        self.jobs.wake()
        return result

    def queue(self, tx: Tx, directory: Directory, new: NewJob) -> int:
        """Queue a job in the caller's transaction. Return the job's id. Call `jobs.wake` after the commit. Raises
        Conflict if too many jobs are waiting."""
        job_id = self.jobs.add(tx, directory.domain_id, new)
        file: dict[str, JSON] = {"file": new.file_name} if new.file_name else {}
        changes = changed({}, {"import": job_id, "kind": new.kind.value, **file})
        repo.note(tx, "directory.import", directory, self._clock(), changes)
        return job_id

    def _read_from(self, tx: Tx, domain_id: int, name: str, app_url: str) -> Directory:
        """Return the LDAP directory with this name. If the name is empty, return the directory whose appUrl has the
        same host and port as the given `app_url`. If there is no such directory, create it. Raises Conflict, for
        example if a directory of another kind has the name."""
        ((host, port),) = hosts_of(app_url)
        if not name:
            for each in repo.of_domain(tx, domain_id):
                if each.kind == DirectoryKind.LDAP and (host, port) in hosts_of(each.app_url):
                    return self.make(tx, domain_id, each.name, DirectoryKind.LDAP)
            same_name = repo.named(tx, domain_id, host)
            name = f"{host}:{port}" if same_name is not None and same_name.app_url else host
        directory = self.make(tx, domain_id, name, DirectoryKind.LDAP)
        if directory.kind != DirectoryKind.LDAP:
            raise Conflict("the directory of that name is not an LDAP directory: choose another name")
        return directory

    async def jobs_named(self, domain_ids: Sequence[int], name: str) -> list[Job]:
        """Return the last imports of the directory with this name. The directoryName of a domain selects all
        directories of the domain. Raises NotFound if no directory and no domain has the name."""

        def query(tx: Tx) -> list[Job]:
            called = [each for domain_id in domain_ids if (each := repo.called(tx, domain_id, name)) is not None]
            if not called:
                raise NotFound(NO_DIRECTORY)
            found = chain.from_iterable(called)
            return [job for directory in found for job in jobs_repo.of_directory(tx, directory.id, SHOWN_JOBS)]

        return await self._store.read(query)

    async def named(self, domain_id: int, name: str) -> Directory:
        """Return the directory with this name in a domain. Raises NotFound."""
        directory = await self._store.read(lambda tx: repo.named(tx, domain_id, name))
        if directory is None:
            raise NotFound(NO_DIRECTORY)
        return directory


@dataclass(frozen=True, slots=True)
class DirectoryTrialResult:
    """The result of a test. message: a text for an admin. If the directory is not usable, the text is the reason."""

    usable: bool
    message: str


class DirectoryTrials:
    """Tests of directories: connect, log in, and read the first accounts. Nothing is stored.

    checks: functions that test directories, by kind of directory. advice: a function that takes a domain's id and
    returns a text for admins of the installation. `egress` may have recently refused connections of the domain's tenant
    to some hosts. The text then says how to allow these hosts.
    """

    def __init__(
        self, directories: Directories, checks: Mapping[str, Check], advice: Callable[[int], list[str]], clock: Clock
    ) -> None:
        self.advice = advice
        self._directories = directories
        self._checks = checks
        self._admitted = PerMinute[int](TRIALS_PER_MINUTE, "trials", clock)

    def admit(self, domain_id: int) -> None:
        """Count a test of a directory in the domain. Raises TooMany if the domain has reached the limit of tests in
        a minute."""
        self._admitted.admit(domain_id)

    async def run(self, domain_id: int, configuration: DirectoryConfiguration) -> DirectoryTrialResult:
        """Test a directory. The given settings replace the stored settings for the test. Raises Invalid if the service
        cannot read the directory, or if the settings could not be saved. Raises Conflict, StoreError, SecretError."""
        source = await self._directories.source(domain_id, configuration)
        check = self._checks.get(source.kind)
        if check is None:
            raise Invalid.about("the service reads only directories of the kinds ldap, graph and okta", "kind")
        try:
            with trio.fail_after(TRIAL_S):
                found = await check(source)
        except trio.TooSlowError:
            return DirectoryTrialResult(usable=False, message=f"the directory has not answered within {TRIAL_S:.0f} s")
        except (Refused, StoreError, SecretError):
            raise
        except (SallyportError, OSError) as error:
            return DirectoryTrialResult(usable=False, message=str(error))
        return DirectoryTrialResult(usable=True, message=f"the directory answers, and has {found} or more accounts")


def _columns(tx: Tx, known: Directory | None, configuration: DirectoryConfiguration, flaw: str) -> dict[str, Value]:
    """Return the columns that a configuration sets, without the secret. flaw: the result of `key_flaw` for the secret.

    A directory that has people may not change from a cloud directory to another kind, nor from another kind to a cloud
    directory. Raises Conflict in this case. Raises Invalid if the secret is not usable. Also raises Invalid if the
    stored secret may not be used with the new settings, so that the caller must give the secret again.
    """
    kind = configuration.kind or _kind_of(known, configuration.app_url or "")
    if known is not None and (known.kind in CLOUD) != (kind in CLOUD) and entries.has_people(tx, known.id):
        raise Conflict("the directory has people, so its kind cannot change: add another directory")
    before: dict[str, str] = json.loads(known.settings) if known is not None else {}
    settings = {**before, **{k: v for k, v in (configuration.settings or {}).items() if v is not None}}
    columns: dict[str, Value] = {"kind": kind.value, "settings": json.dumps({k: v for k, v in settings.items() if v})}
    given = {"account_name": configuration.account_name, "app_url": configuration.app_url}
    columns |= {name: value for name, value in given.items() if value is not None}
    keeps = known is not None and known.secret is not None and not configuration.secret
    if known is not None and keeps and _goes_elsewhere(known, columns, settings):
        raise Invalid("the secret is needed again", (FieldError("bindPassword", _NEEDED_AGAIN),))
    if configuration.secret and flaw and kind is DirectoryKind.OKTA and settings.get("clientId"):
        raise Invalid("invalid clientSecret", (FieldError("clientSecret", flaw),))
    if known is not None and (columns.get("app_url", known.app_url) != known.app_url or settings != before):
        columns["cursor"] = ""  # the cursor belongs to another directory, or to another part of it
    return columns


def _goes_elsewhere(directory: Directory, columns: Mapping[str, Value], settings: Mapping[str, str]) -> bool:
    """Return whether the new values would send the stored secret to another server, or would use it with another
    account or certificate. This must not happen, because one operator could thus obtain a secret that another operator
    has entered."""
    known = {"kind": directory.kind, "account_name": directory.account_name, "app_url": directory.app_url}
    before: dict[str, str] = json.loads(directory.settings)
    return any(columns.get(name, value) != value for name, value in known.items()) or any(
        settings.get(name, "") != before.get(name, "") for name in _DESTINATION
    )


def _audited(directory: Directory) -> dict[str, JSON]:
    """Return the values of a directory for the audit trail."""
    settings: dict[str, JSON] = json.loads(directory.settings)
    own: dict[str, JSON] = {"kind": directory.kind, "accountName": directory.account_name, "appUrl": directory.app_url}
    return {**own, **settings}


def _kind_of(known: Directory | None, app_url: str) -> DirectoryKind:
    """Return the kind of a directory for which the caller gives no kind. In two cases, the appUrl determines the kind:
    the directory is new, or it had only LDIF files and now gets an appUrl. In all other cases, the directory keeps its
    kind."""
    if known is None or (known.kind == DirectoryKind.LDIF and app_url):
        return kind_of(app_url)
    return DirectoryKind(known.kind)
