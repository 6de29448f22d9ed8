"""The entrance of imports from other RADIUS servers, by the API and the console."""

from collections.abc import Sequence
from functools import partial

import trio

from sallyport.areas.configuration.service import Engine
from sallyport.areas.domains.service import Domains
from sallyport.areas.entrance import Area, Parts
from sallyport.areas.migration import operations as api
from sallyport.areas.migration.service import GroupsBySid, Import
from sallyport.areas.migration.uploads import NamelessFiles
from sallyport.areas.users.accounts.service import Users
from sallyport.areas.users.imports import import_users
from sallyport.web.operation import Operations
from sallyport.web.scope import Gate


class MigrationArea(Area):
    """Imports of the configuration of other RADIUS servers."""

    def __init__(
        self, parts: Parts, engine: Engine, domains: Domains, groups_by_sid: GroupsBySid, users: Users
    ) -> None:
        self.files = NamelessFiles(parts.settings.data_dir)
        import_people = partial(import_users, parts.store, users)
        self.service = Import(engine, domains, groups_by_sid, import_people, self.files, parts.store)

    async def prepare(self) -> None:
        """Delete what a killed process has left of an archive."""
        await trio.to_thread.run_sync(self.files.delete_unpacked)

    def operations(self, gate: Gate) -> Sequence[Operations]:
        """Return the operation that imports a file."""
        return [api.operations(self.service, self.files, gate)]
