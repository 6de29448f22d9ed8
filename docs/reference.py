"""A Sphinx extension that writes the pages of docs/reference from the code, before each build.

The pages are not committed, so that the declaration of a name, default, field or option is its only place.
"""

import ast
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

import click
import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from sphinx.application import Sphinx
from tests.metrics.everything import labelled

from sallyport import __version__
from sallyport.base.secret import Secret
from sallyport.cli.main import root
from sallyport.deploy.settings_file import change, shown, without_default
from sallyport.metrics import StoreMetrics
from sallyport.radius.dictionary import load as load_dictionary
from sallyport.radius.vendors import MEDIA, PRODUCTS
from sallyport.service.app import App
from sallyport.service.operations import gate_of
from sallyport.service.operations import operations as declared_operations
from sallyport.settings.limits import LIMITS
from sallyport.settings.settings import Settings
from sallyport.settings.values import MASTER_KEY, MASTER_KEY_FILE, environment_name
from sallyport.shell.exits import ExitStatus
from sallyport.store.data_folder import Reserve
from sallyport.store.sqlite import SqliteStore
from sallyport.store.vault import Vault
from sallyport.web.description import document

Json = Mapping[str, Any]
Row = Sequence[str]

ALERTS: Final = Path(__file__).parents[1] / "grafana" / "prometheus" / "rules" / "alerts.yml"
FIELDS: Final = Path(__file__).parent / "json_fields.yml"
EVENTS: Final = Path(__file__).parent / "log_events.yml"
INTROS: Final = Path(__file__).parent / "reference_intros.yml"
SOURCES: Final = Path(__file__).parents[1] / "src"
_EVENT: Final = re.compile("[a-z0-9]+(_[a-z0-9]+)*")
_LEVELS: Final = {"debug": "debug", "info": "info", "warning": "warning", "error": "error", "exception": "error"}
_DEPTH: Final = 4  # levels of nested fields that a table shows


def setup(app: Sphinx) -> dict[str, object]:
    """Register the generator with Sphinx."""
    app.connect("builder-inited", lambda sphinx: write(Path(sphinx.srcdir) / "reference"))
    app.connect("build-finished", release_description)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def release_description(sphinx: Sphinx, error: Exception | None) -> None:
    """Write the OpenAPI document beside the pages of a build that has not failed."""
    if error is None and sphinx.builder.format == "html":
        described = {**api(), "info": {**api()["info"], "version": __version__}}
        text = json.dumps(described, ensure_ascii=False)
        Path(sphinx.outdir, "openapi.json").write_text(text, encoding="utf-8")


def write(folder: Path) -> None:
    """Write every page whose text has changed, and delete pages that no longer exist."""
    pages = dict(_pages())
    for old in set(folder.rglob("*.md")) - {folder / name for name in pages}:
        old.unlink()
    for name, text in pages.items():
        page = folder / name
        page.parent.mkdir(parents=True, exist_ok=True)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def _pages() -> Iterator[tuple[str, str]]:
    single: dict[str, Callable[[], str]] = {
        "commands": commands,
        "settings": settings,
        "limits": limits,
        "metrics": metrics,
        "log-events": log_events,
        "alerts": alerts,
        "products": products,
        "attributes": attributes,
    }
    for name, make in single.items():
        yield f"{name}.md", make()
    described = api()
    tags = sorted({str(each["tags"][0]) for _, _, each in _operations(described)})
    for tag in tags:
        yield f"operations/{_file(tag)}.md", operations(described, tag)
    yield "operations/index.md", _index("Operations", "Every operation of the API, by subject.", map(_file, tags))
    yield "index.md", _index("Reference", "These pages are generated from the code.", [*single, "operations/index"])


def commands() -> str:
    """Return the page of all commands with their arguments and options."""
    context = click.Context(root, info_name="sallyport", **root.context_settings)
    statuses = ((str(int(each)), each.meaning) for each in ExitStatus)
    table = _table(("exit status", "meaning"), statuses)
    return _page("Commands", "## Exit statuses", table, *_command(root, context))


def _command(group: click.Group, context: click.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        level = 2 if context.parent is None else 3
        yield f"{'#' * level} {inner.command_path.removeprefix('sallyport ')}"
        yield _help(command)
        if isinstance(command, click.Group):
            yield from _command(command, inner)
            continue
        yield f"```text\n{' '.join([inner.command_path, *command.collect_usage_pieces(inner)])}\n```"
        records = (each.get_help_record(inner) for each in command.get_params(inner))
        described = ((_code(record[0]), record[1]) for record in records if record and record[1])
        yield _table(("option", "meaning"), described)
        if printed := json_fields().get(inner.command_path.removeprefix("sallyport ")):
            yield _printed(printed)


@cache
def json_fields() -> Mapping[str, Json]:
    """Return the entries of json_fields.yml by the words of the command."""
    found: Mapping[str, Json] = yaml.safe_load(FIELDS.read_text(encoding="utf-8"))
    return {words: each for words, each in found.items() if not words.startswith("_")}


def _printed(entry: Json) -> str:
    """Return the text about what a command prints with --json."""
    parts = [f"With `--json`: {_source(entry)}", str(entry.get("note", ""))]
    lines = " ".join(filter(None, parts))
    rows = ((_code(name), meaning) for name, meaning in entry.get("plus", {}).items())
    return f"{lines}\n\n{_table(('field', 'meaning'), rows)}" if entry.get("plus") else lines


def _source(entry: Json) -> str:
    shape = "an array of objects with these fields" if entry.get("is_array") else "an object with these fields"
    path = entry.get("operation")
    if path is None:
        return f"{shape}."
    method, operation = next(iter(api()["paths"][path].items()))
    answer = f"[{method.upper()} {path}](operations/{_file(operation['tags'][0])}.md)"
    and_these = ", and these fields" if entry.get("plus") else ""
    if "list" not in entry:
        return f"the answer of {answer}{and_these}."
    of = f"of {answer}" if entry["list"] == "-" else f"of `{entry['list']}` in the answer of {answer}"
    return f"{'one entry' if entry.get('is_one') else 'an array of the entries'} {of}{and_these}."


def _help(command: click.Command) -> str:
    return re.sub(r"[ \t]*\n[ \t]*(?!\n)", "\n", (command.help or "").replace("\b", ""))


def settings() -> str:
    """Return the page of all settings with their environment variables and defaults."""
    rows = [
        (
            _code(name),
            _code(environment_name(name)) if name != "identity_providers" else "only in the file",
            without_default(name) or _code(shown(field.default)),
            change(name),
            field.description or "",
        )
        for name, field in Settings.model_fields.items()
    ]
    meaning = "64 hex digits, or several keys as `2:NEW,1:OLD`; from the environment only"
    rows.append(("", _code(MASTER_KEY), "the file `master.key`", "restart", meaning))
    rows.append(("", _code(MASTER_KEY_FILE), "the file `master.key`", "restart", "file with the master key"))
    return _page("Settings", _table(("setting", "environment", "default", "a change needs", "meaning"), rows))


def limits() -> str:
    """Return the page of the limits of a tenant."""
    rows = ((_code(each.name), f"{each.most:,}", each.counts, _beyond(each)) for each in LIMITS)
    return _page(
        "Limits of a tenant",
        _table(("limit", "default", "counts", "what happens beyond it"), rows),
    )


def _beyond(limit: object) -> str:
    if getattr(limit, "keeps_newest", False):
        return "the oldest is deleted"
    return "no row is added" if getattr(limit, "leaves_out", False) else "the operation is refused (409)"


def metrics() -> str:
    """Return the page of all metrics."""
    rows = (
        (_code(_exposed(each)), each.type, ", ".join(map(_code, labels)), each.documentation)
        for each, labels in labelled()
    )
    return _page("Metrics", _table(("metric", "type", "labels", "meaning"), rows))


def _exposed(metric: Metric) -> str:
    return metric.name + ("_total" if metric.type == "counter" else "")


_PLACE = re.compile(r"{{.*?}}")
"""A template expression in the text of an alert, which Prometheus replaces."""


def _shown(place: re.Match[str]) -> str:
    """Return the replacement of a template expression: N for a number, a label's name for its value."""
    if place[0].startswith(("{{ with", "{{ end")):
        return ""
    label = re.search(r"^{{ \$labels\.(\w+) }}$", place[0])
    return f"*{label[1]}*" if label else "N %" if "Percentage" in place[0] else "N"


def alerts() -> str:
    """Return the page of all Prometheus alerts with their runbooks."""
    parts = []
    for group in yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]:
        for rule in group["rules"]:
            notes = {name: " ".join(text.split()) for name, text in rule["annotations"].items()}
            parts += [
                f"## {rule['alert']}",
                f"Severity: {rule['labels']['severity']}. Fires after: {rule.get('for', '0s')}.",
                _PLACE.sub(_shown, notes["description"]),
                f"**What to do**: {notes['runbook']}",
                f"```text\n{rule['expr'].strip()}\n```",
            ]
    legend = (
        "`grafana/prometheus/rules` has these rules. An alert fires if its expression has been true for the time after "
        "*Fires after*. In the texts, N means a number, and an italic word the value of a label. In commands, "
        "replace words in capitals, such as DOMAIN."
    )
    return _page("Alerts", legend, *parts)


def log_events() -> str:
    """Return the page of all log events. ValueError: log_events.yml lacks the text of an event, or has a text without
    an event."""
    texts: dict[str, str] = yaml.safe_load(EVENTS.read_text(encoding="utf-8"))
    found: dict[str, tuple[str, dict[str, None]]] = {}
    for source in sorted(SOURCES.rglob("*.py")):
        for name, level, fields in _logged(ast.parse(source.read_text(encoding="utf-8"))):
            found.setdefault(name, (level, {}))[1].update(dict.fromkeys(fields))
    if differ := sorted(found.keys() ^ texts.keys()):
        raise ValueError(f"log_events.yml and the code differ in {', '.join(differ)}")
    rows = (
        (_code(name), level, ", ".join(map(_code, fields)), texts[name])
        for name, (level, fields) in sorted(found.items())
    )
    return _page(
        "Log events",
        "The names are stable: write alerts on them. Every event also has `level` and `timestamp`.",
        _table(("event", "level", "fields", "meaning"), rows),
    )


def _logged(module: ast.Module) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the name, level and fields of each event that a module logs."""
    for call in (node for node in ast.walk(module) if isinstance(node, ast.Call)):
        function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        fields = [each.arg for each in call.keywords if each.arg and each.arg not in {"exc_info", "failure"}]
        for each in call.keywords:
            if each.arg == "failure" and isinstance(each.value, ast.Constant):
                yield str(each.value.value), "warning", ["error"]
        names = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        if not names or not _EVENT.fullmatch(names[0]):
            continue
        if function in _LEVELS and "log" in ast.unparse(call.func):
            yield names[0], _LEVELS[function], fields
        elif function in {"_warn", "tell"} and "_" in names[0]:
            yield names[0], "warning", fields or ["domain", "server", "why"]


def products() -> str:
    """Return the page of the products and media that rules and RADIUS clients can name."""
    rows = [(_code(name),) for name in PRODUCTS]
    media = [(_code(name),) for name in dict.fromkeys(MEDIA.values())]
    return _page("Products and media", _table(("product",), rows), "## Media", _table(("medium",), media))


def attributes() -> str:
    """Return the page of the RADIUS attributes that rules and answers can name."""
    dictionary = load_dictionary()
    by_vendor: dict[str, list[Row]] = {}
    for each in sorted(dictionary.attributes.values(), key=lambda found: (found.vendor, found.number, found.name)):
        vendor = dictionary.vendors.get(each.vendor, "Standard attributes") if each.vendor else "Standard attributes"
        by_vendor.setdefault(vendor, []).append((str(each.number), _code(each.name), str(each.type.value)))
    tables = (f"## {vendor}\n\n{_table(('number', 'name', 'type'), rows)}" for vendor, rows in by_vendor.items())
    return _page("RADIUS attributes", "A reply attribute of a login rule is one of these names.", *tables)


@cache
def api() -> Json:
    """Return the OpenAPI document without its version, of a service that has an empty store and does not run."""
    with TemporaryDirectory() as directory:
        settings, registry = Settings(data_dir=Path(directory)), CollectorRegistry()
        place = settings.database_path
        store = SqliteStore(place, StoreMetrics(registry), Reserve(place.with_suffix(".reserve"), 0))
        with closing(store):
            app = App(settings, store, Vault(Secret(bytes(32))), load_dictionary(), registry)
            declared = declared_operations(app, gate_of(app))
    return document([each for group in declared for each in group.all], version="")


def operations(described: Json, tag: str) -> str:
    """Return the page of the operations with a tag."""
    parts = []
    for path, method, each in _operations(described):
        if each["tags"][0] == tag:
            body = next(iter(each["requestBody"]["content"].values()))
            answer = each["responses"]["200"]["content"]["application/json"]
            parts += [
                f"## {method.upper()} {path}",
                str(each["description"]),
                *(f"Query parameter {_code(one['name'])}: {one['description']}" for one in each.get("parameters", ())),
                "**Request**",
                _table(("field", "type", "required", "meaning"), _fields(described, body["schema"])),
                "**Answer**",
                _table(("field", "type", "always", "meaning"), _fields(described, answer["schema"])),
            ]
    return _page(tag, *parts)


def _operations(described: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _fields(described: Json, schema: Json, before: str = "", depth: int = _DEPTH) -> Iterator[Row]:
    """Yield a row for each field of a schema, and for those of the objects inside it."""
    resolved = _resolved(described, schema)
    for part in resolved.get("allOf", ()):
        yield from _fields(described, part, before, depth)
    if resolved.get("type") == "array":
        resolved, before = _resolved(described, resolved["items"]), f"{before}[]."
    required = resolved.get("required", ())
    for name, field in resolved.get("properties", {}).items():
        inner = _resolved(described, field)
        meaning = str(field.get("description") or inner.get("description") or "")
        yield _code(before + name), _type(described, field), "yes" if name in required else "", meaning
        if depth:
            yield from _inside(described, inner, before + name, depth - 1)


def _inside(described: Json, schema: Json, name: str, depth: int) -> Iterator[Row]:
    for choice in (schema, *schema.get("anyOf", ())):
        resolved = _resolved(described, choice)
        if resolved.get("type") == "object":
            yield from _fields(described, resolved, f"{name}.", depth)
        elif resolved.get("type") == "array" and "items" in resolved:
            yield from _fields(described, resolved["items"], f"{name}[].", depth)


def _resolved(described: Json, schema: Json) -> Json:
    while "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        schema = described["components"]["schemas"][name]
    return schema


def _type(described: Json, schema: Json) -> str:
    """Return a type in words, with the values or the range that it allows."""
    resolved = _resolved(described, schema)
    if "anyOf" in resolved:
        kinds = [_type(described, each) for each in resolved["anyOf"]]
        return " or ".join(dict.fromkeys(kinds))
    if values := resolved.get("enum") or ([resolved["const"]] if "const" in resolved else None):
        return ", ".join(_code(str(value)) for value in values)
    name = str(resolved.get("type", "any"))
    if name == "array":
        return f"array of {_type(described, resolved.get('items', {}))}"
    bounds = [
        text.format(resolved[key])
        for key, text in (("minimum", "from {}"), ("maximum", "to {}"), ("maxLength", "up to {} characters"))
        if key in resolved
    ]
    return " ".join([name, *bounds])


def _page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", *(part for part in (_intros().get(title, ""), *parts) if part)]) + "\n"


@cache
def _intros() -> dict[str, str]:
    return cast(dict[str, str], yaml.safe_load(INTROS.read_text(encoding="utf-8")))


def _index(title: str, text: str, pages: Iterable[str]) -> str:
    return _page(title, text, "```{toctree}\n:maxdepth: 2\n\n" + "\n".join(pages) + "\n```")


def _table(head: Row, rows: Iterable[Row]) -> str:
    """Return a table, or an empty text if there is no row."""
    lines = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *lines]) if lines else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{text}`"


def _file(tag: str) -> str:
    return re.sub(r"\W+", "-", tag.lower()).strip("-")
