"""The rules of field mappings of directories and groups."""

import json
from collections.abc import Mapping
from typing import Final

from sallyport.areas.directory import repo
from sallyport.areas.directory.directory import READ_BY_SERVICE, Directory, Group, PersonPreview, StoredMapping, User
from sallyport.areas.directory.imports.job import JobKind, NewJob
from sallyport.areas.directory.mappings.mapping import FieldMapping, fields_of
from sallyport.areas.directory.service import NO_DIRECTORY, NO_GROUP, Directories
from sallyport.areas.directory.stored import people
from sallyport.areas.directory.stored import repo as entries
from sallyport.base.clock import Clock
from sallyport.base.errors import NotFound
from sallyport.base.wire import JSON
from sallyport.store.audit import changed
from sallyport.store.model import ListQuery, Store, Tx

PREVIEWED: Final = 10


class Mappings:
    """The mappings of all directories and groups."""

    def __init__(self, store: Store, directories: Directories, clock: Clock) -> None:
        self._store = store
        self._directories = directories
        self._clock = clock

    async def group(self, group_id: int) -> Group:
        """Return a group. Raises NotFound."""
        group = await self._store.read(lambda tx: entries.group(tx, group_id))
        if group is None:
            raise NotFound(NO_GROUP)
        return group

    async def groups_named(self, directory: Directory, name: str) -> list[Group]:
        """Return the groups of a directory that have this name. The comparison is case-insensitive."""
        return await self._store.search(lambda tx: entries.groups_named(tx, directory.id, name))

    async def set(self, of: Directory | Group, fields: Mapping[str, str], *, apply: bool) -> None:
        """Set the given fields in the mapping of a directory or a group. apply: whether to queue a job that updates the
        stored people with the new mapping.

        Raises Conflict if the mapping has too many attributes. If `apply` is set, also raises Conflict if too many
        imports are waiting.
        """

        def transaction(tx: Tx) -> None:
            directory = self.set_in(tx, of, fields)
            if apply:
                self._directories.queue(tx, directory, NewJob(directory.id, JobKind.MAPPING))

        directory_id = of.directory_id if isinstance(of, Group) else of.id
        await self._store.search(lambda tx: entries.must_fit(tx, directory_id, fields))
        await self._store.write(transaction)
        self._directories.jobs.wake()

    def set_in(self, tx: Tx, of: Directory | Group, fields: Mapping[str, str]) -> Directory:
        """Set the given fields in the mapping of a directory or a group, in a transaction. Return the directory. The
        caller has checked the number of attributes. Raises NotFound."""
        current = entries.group(tx, of.id) if isinstance(of, Group) else repo.get(tx, of.id)
        directory = repo.get(tx, of.directory_id if isinstance(of, Group) else of.id)
        if current is None or directory is None:
            raise NotFound(NO_GROUP if isinstance(of, Group) else NO_DIRECTORY)
        before = json.loads(current.mapping)
        after = {field: attribute for field, attribute in {**before, **fields}.items() if attribute}
        if isinstance(current, Group):
            entries.set_group_mapping(tx, current.id, json.dumps(after))
            entries.forget_mapping_of_files(tx, current)
        else:
            repo.update(tx, current.id, {"mapping": json.dumps(after)}, self._clock())
        if not set(after.values()) <= set(before.values()) and directory.kind in READ_BY_SERVICE:
            # The next reading must be a full one, to read the new attributes of unchanged people.
            repo.update(tx, directory.id, {"cursor": ""}, self._clock())
        if differences := changed(before, after):
            part = f", group {of.id} {of.name}" if isinstance(of, Group) else ""
            repo.note(tx, "directory.mapping", directory, self._clock(), differences, part=part)
        return directory

    def set_groups_in(self, tx: Tx, directory: Directory, mappings: Mapping[str, Mapping[str, str]]) -> None:
        """Set the mapping of each group of a directory by its name, in a transaction. Other groups get none. Raises
        Conflict if the mappings have too many attributes."""
        every = {f"{name} {field}": taken for name, own in mappings.items() for field, taken in own.items()}
        entries.must_fit(tx, directory.id, every)
        before = entries.named_mappings(tx, directory.id)
        entries.set_named_mappings(tx, directory.id, mappings)
        if directory.kind in READ_BY_SERVICE:
            # The next reading must be a full one, to read the new attributes of unchanged people.
            repo.update(tx, directory.id, {"cursor": ""}, self._clock())
        if differences := changed(_texts(before), _texts(mappings)):
            repo.note(tx, "directory.mapping", directory, self._clock(), differences, part=", groups")

    async def of_domain(self, list_query: ListQuery) -> tuple[list[StoredMapping], int]:
        """Return one page of the mappings of a domain's directories and groups, and the total number of mappings."""

        def query(tx: Tx) -> list[StoredMapping]:
            found = list[StoredMapping]()
            for directory in repo.of_domain(tx, list_query.domain_id):
                found.append(StoredMapping(directory.name, 0, "", json.loads(directory.mapping)))
                for group in entries.groups_with_mapping(tx, directory.id):
                    found.append(StoredMapping(directory.name, group.id, group.name, json.loads(group.mapping)))
            return found

        found = await self._store.search(query)
        return found[list_query.offset : list_query.offset + list_query.limit], len(found)

    async def preview(self, of: Directory | Group, fields: Mapping[str, str]) -> list[PersonPreview]:
        """Return the fields of at most ten people before and after a change of the mapping."""

        def query(tx: Tx) -> list[PersonPreview]:
            directory_id = of.directory_id if isinstance(of, Group) else of.id
            directory = repo.get(tx, directory_id)
            mapping = {**json.loads(of.mapping), **fields}
            wanted = FieldMapping({field: attribute for field, attribute in mapping.items() if attribute})
            if isinstance(of, Group):
                own = FieldMapping(json.loads(directory.mapping) if directory is not None else {})
                wanted = wanted.over(own)
                found, _ = entries.users_of_group(tx, of, ListQuery(of.domain_id, 0, PREVIEWED), "")
            else:
                found = entries.users_of_directory(tx, directory_id, PREVIEWED)
            return [_previewed(tx, user, wanted) for user in found]

        return await self._store.search(query)


def _texts(mappings: Mapping[str, Mapping[str, str]]) -> dict[str, JSON]:
    return {name: json.dumps(mapping) for name, mapping in mappings.items()}


def _previewed(tx: Tx, user: User, mapping: FieldMapping) -> PersonPreview:
    after = fields_of(people.attributes_of(tx, user.id), mapping)
    username = after.username or user.login
    before = {"username": user.name, "email": user.email, **json.loads(user.fields)}
    return PersonPreview(user.id, user.dn, before, {"username": username, "email": after.email, **after.others})
