"""The operation ImportConfiguration: a file of another RADIUS server becomes a plan, and then objects."""

from itertools import starmap
from typing import Final

from sallyport.areas.configuration.item import Item, Sign, Step
from sallyport.areas.configuration.managed import shown
from sallyport.areas.migration.bodies import (
    LISTED,
    ImportConfiguration,
    ImportFinding,
    ImportPlanned,
    ImportStep,
)
from sallyport.areas.migration.merging import admitting
from sallyport.areas.migration.service import Import, Planned
from sallyport.areas.migration.translation import OTHERWISE, Decision, Finding, Options, Weight
from sallyport.areas.migration.uploads import NamelessFiles
from sallyport.areas.users.imports import Outcome
from sallyport.areas.users.imports import Planned as PlannedUser
from sallyport.base.errors import invalid_field
from sallyport.base.text import counted
from sallyport.store.audit import HIDDEN
from sallyport.web.operation import Operations
from sallyport.web.scope import ADMINS, Caller, Gate
from sallyport.web.upload import Upload

MAX_SIZE: Final = 16 << 20
_ORDER: Final = (Weight.UNDECIDED, Weight.DISABLED, Weight.NOTE, Weight.LEFT_OUT)


def operations(service: Import, files: NamelessFiles, gate: Gate) -> Operations:
    imports = Operations("Configuration", gate)

    @imports.upload(
        "/ad/ImportConfiguration",
        roles=ADMINS,
        form=ImportConfiguration,
        keeper=files,
        limit=MAX_SIZE,
        can_override=True,
    )
    async def import_configuration(upload: Upload[ImportConfiguration], caller: Caller) -> ImportPlanned:
        """Import the configuration of another RADIUS server from a file of at most 16 MiB: NPS (`nps`), Cisco ISE
        (`ise`), Aruba ClearPass (`clearpass`), any table (`csv`), or an archive of the folder of FreeRADIUS
        (`freeradius`).

        The first request returns a plan: the objects that are new or change, and what cannot be expressed. Nothing is
        written. A second request with the same file, the same options and the name of the plan writes it. The file is
        never kept, so it is sent twice. References to files and to the environment are not resolved. `sallyport import`
        reads larger files.

        Users of FreeRADIUS are written after the other objects, in transactions of their own. If the service stops in
        between, or refuses one of them, import the file again: only what is missing is added. A finding names a user
        that was refused.

        409: the file, the options or the configuration have changed since the plan was made, or a policy needs a
        decision, or the plan changes objects that files manage (`managed`), without `override`.
        """
        form = upload.form
        name = "".join(filter(str.isprintable, form.fileName or upload.file_name))[:100] or "file"
        by = None if caller.is_installation else caller.role
        try:
            planned = await service.plan(
                caller.tenant_id, form.domainId, form.format, files.file(upload.kept), name, _options(form), by
            )
        finally:
            await files.discard(upload.kept)
        if not form.plan:
            return _shown(planned, "nothing is changed yet", applied=False)
        return shown_write(planned, await service.write(form.domainId, planned, form.plan, override=upload.override))

    return imports


def _options(form: ImportConfiguration) -> Options:
    """Return the options of a form, without the name of the domain. Raises Invalid."""
    try:
        decisions = {name: Decision(text) for name, text in _pairs(form.decisions, "decisions").items()}
    except ValueError:
        raise invalid_field("decisions", "must have lines NAME=block or NAME=skip") from None
    groups = {sid.upper(): name for sid, name in _pairs(form.groups, "groups").items()}
    columns = _pairs(form.columns, "columns")
    return Options("", form.timezone, groups, decisions, form.noDialInPermissions, columns)


def _pairs(text: str, field: str) -> dict[str, str]:
    """Return the names and values of lines NAME=VALUE. A line without a value is left out. Raises Invalid."""
    found = dict[str, str]()
    for line in filter(None, map(str.strip, text.splitlines())):
        name, sign, value = line.rpartition("=") if field == "decisions" else line.partition("=")
        if not sign:
            raise invalid_field(field, f"has the line {line[:50]!r} without =")
        if value.strip():
            found[name.strip()] = value.strip()
    return found


def shown_write(planned: Planned, written: Planned) -> ImportPlanned:
    """Return the answer to a request that has written a plan, of which some users may be missing."""
    count, missing = len(written.plan.changes) + len(written.people), len(planned.people) - len(written.people)
    message = f"{counted(count, 'object')} imported"
    if missing:
        message += f", {counted(missing, 'user')} not: import the file again"
    return _shown(written, message, applied=True)


def _shown(planned: Planned, message: str, *, applied: bool) -> ImportPlanned:
    plan, found = planned.plan, planned.found
    steps = plan.changes
    signs = [each.sign for each in plan.steps]
    users = [each.outcome for _, each in planned.people]
    findings = sorted(found.findings, key=_rank)
    return ImportPlanned(
        message=message,
        applied=applied,
        plan=planned.name,
        added=signs.count(Sign.ADDED) + users.count(Outcome.NEW),
        changed=signs.count(Sign.CHANGED) + users.count(Outcome.CHANGED),
        unchanged=signs.count(Sign.UNCHANGED) + planned.unchanged,
        admitting=admitting(found),
        steps=[*map(_step, steps[:LISTED]), *starmap(_user_step, planned.people)][:LISTED],
        findings=[ImportFinding.model_validate(each.as_json()) for each in findings[:LISTED]],
        findingCount=len(findings),
        undecided=list(dict.fromkeys(each.name.partition(OTHERWISE)[0] for each in found.named(Weight.UNDECIDED))),
        unknownGroups=planned.unknown_groups,
        managed=[shown(each.kind, each.identity) for each in plan.overridden[:LISTED]],
    )


def _step(step: Step) -> ImportStep:
    is_new = step.sign is Sign.ADDED
    return ImportStep(
        sign="+" if is_new else "~",
        kind=step.kind.name,
        name=step.name,
        source=step.source,
        fields=_given(step) if is_new else dict(step.fields),
    )


def _user_step(item: Item, planned: PlannedUser) -> ImportStep:
    """Return the step of a user. Of a changed one, its values stay out, because they may be passwords."""
    hidden = {name: [HIDDEN, HIDDEN] for name in planned.changes}
    return ImportStep(
        sign="+" if planned.outcome is Outcome.NEW else "~",
        kind="user",
        name=item.name,
        source=item.source,
        fields=dict(hidden),
    )


def _given(step: Step) -> dict[str, object]:
    """Return the values of a new object that are not the default, without secrets."""
    defaults = {name: field.default for name, field in step.kind.body.model_fields.items()}
    found = {name: values for name, values in step.fields.items() if values[1] not in (None, "", [], {}, HIDDEN)}
    return {name: values for name, values in found.items() if values[1] != defaults.get(name)}


def _rank(finding: Finding) -> int:
    return _ORDER.index(finding.weight)
