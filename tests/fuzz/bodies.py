"""The bodies of all operations, as HTTP and the control socket read them."""

import contextlib
import json
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import get_args

from prometheus_client import CollectorRegistry

from sallyport.base.errors import Invalid
from sallyport.base.secret import Secret
from sallyport.metrics import StoreMetrics
from sallyport.service.app import App
from sallyport.service.operations import gate_of, operations
from sallyport.settings.settings import Settings
from sallyport.store.data_folder import Reserve
from sallyport.store.sqlite import SqliteStore
from sallyport.store.vault import Vault
from sallyport.web.examples import EXAMPLES
from sallyport.web.handling import BodyShape
from sallyport.web.operation import unknown_fields
from tests.areas import dictionary, new_database


@cache
def shapes() -> list[tuple[tuple[str, str], BodyShape[object]]]:
    """Return the bodies of all operations that take JSON, with method and path, in a fixed order."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "s.db")
        path.write_bytes(new_database())
        registry = CollectorRegistry()
        with closing(SqliteStore(path, StoreMetrics(registry), Reserve(path.with_name("reserve"), 0))) as store:
            app = App(Settings(data_dir=path.parent), store, Vault(Secret(bytes(32))), dictionary(), registry)
            every = [each for group in operations(app, gate_of(app)) for each in group.all if not each.has_file]
    found = {}
    for each in every:
        (model,) = get_args(each.body) or (each.body,)
        found[each.method, each.paths[0]] = BodyShape(each.body, model, unknown_fields(each.paths))
    return sorted(found.items(), key=lambda pair: pair[0])


def body(octets: bytes) -> None:
    """A body is read, or Invalid with an answer that can be sent. The first two octets choose the operation."""
    every = shapes()
    _, shape = every[int.from_bytes(octets[:2]) % len(every)]
    with contextlib.suppress(Invalid):
        try:
            _, models = shape.parse(octets[2:])
        except Invalid as error:
            json.dumps(
                [str(error), *([each.field, each.message] for each in error.errors)], ensure_ascii=False
            ).encode()
            raise
        for each in models:
            each.model_dump_json()


def seeds() -> list[bytes]:
    """Return the example of each operation."""
    every = [place for place, _ in shapes()]
    return [
        every.index(place).to_bytes(2) + json.dumps(example).encode()
        for place, example in EXAMPLES.items()
        if place in every
    ]
