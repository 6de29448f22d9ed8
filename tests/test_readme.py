"""The README says all that there is, and nothing that there is not: settings, commands, metrics and operations.

Each list comes from the code itself: what is new there and has no line here fails, and so does a line of what is gone.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import click
import pytest
from pydantic import ValidationError

from sallyport import metrics
from sallyport.audit import operations as audit_api
from sallyport.audit.service import Audit
from sallyport.base.clock import now_us
from sallyport.base.config import MASTER_KEY, PREFIX, Address, Settings, environment_name
from sallyport.base.limits import DEFAULTS, LIMITS
from sallyport.cli.main import root
from sallyport.did import public as did_pages
from sallyport.did.credentials import operations as credentials_api
from sallyport.did.credentials.service import Credentials
from sallyport.did.dids import operations as dids_api
from sallyport.did.dids.service import Dids
from sallyport.did.presentations import operations as presentations_api
from sallyport.did.presentations.asking import Verifier
from sallyport.did.presentations.service import Presentations
from sallyport.did.schemas import operations as schemas_api
from sallyport.did.schemas.service import Schemas
from sallyport.did.wallets import operations as wallets_api
from sallyport.did.wallets.service import Wallets
from sallyport.directory import operations as directories_api
from sallyport.directory.area import DirectoryArea
from sallyport.directory.runs import Runs
from sallyport.domains import operations as domains_api
from sallyport.domains.enforcement import Enforcement
from sallyport.domains.impact import Foresight
from sallyport.domains.service import Domains
from sallyport.dynamic import operations as dynamic_api
from sallyport.dynamic.service import DynamicAuthorization
from sallyport.endpoints import operations as enrolments_api
from sallyport.endpoints.agents import agent_operations
from sallyport.endpoints.agents import operations as agents_api
from sallyport.endpoints.agents.service import Agents
from sallyport.endpoints.groups import operations as groups_api
from sallyport.endpoints.groups.service import Groups
from sallyport.endpoints.instances import operations as instances_api
from sallyport.endpoints.instances.service import Instances
from sallyport.endpoints.totp import OneTimeSeeds
from sallyport.endpoints.users import operations as users_api
from sallyport.endpoints.users.service import Users
from sallyport.events import operations as events_api
from sallyport.events.service import Events
from sallyport.inventory.clients import operations as clients_api
from sallyport.inventory.clients.service import Clients
from sallyport.inventory.devices import operations as devices_api
from sallyport.inventory.devices.service import Devices
from sallyport.inventory.sessions import operations as sessions_api
from sallyport.inventory.sessions.service import Sessions
from sallyport.login.first import operations as first_factors_api
from sallyport.login.first.service import FirstFactors
from sallyport.login.first.trial import Trials
from sallyport.mfa import operations as providers_api
from sallyport.mfa.service import Providers
from sallyport.passwords import operations as policies_api
from sallyport.passwords.service import PasswordPolicies
from sallyport.policy.bypass import operations as bypass_api
from sallyport.policy.bypass.service import Bypass
from sallyport.policy.lockouts import operations as lockouts_api
from sallyport.policy.lockouts.service import Lockouts
from sallyport.policy.rules import operations as rules_api
from sallyport.policy.rules.service import LoginRules
from sallyport.preview import operations as previews_api
from sallyport.tenancy.keys import operations as keys_api
from sallyport.tenancy.keys.service import Keys
from sallyport.web.scope import Authenticator, DomainOwners, Gate
from tests.metrics.everything import collected, exposed

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
NOTHING = object()


def section(title: str) -> str:
    """The text under a heading, up to the next one of its level or above."""
    level, _, _ = title.partition(" ")
    found = re.search(rf"^{re.escape(title)}$(.*?)(?=^#{{1,{len(level)}}} |\Z)", README, re.DOTALL | re.MULTILINE)
    assert found is not None, f"the README has no section {title!r}"
    return found[1]


def rows(title: str) -> list[list[str]]:
    """The cells of a section's table without its head; an escaped bar is a bar."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")][2:]
    return [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def quoted(text: str) -> list[str]:
    """What stands in backquotes."""
    return re.findall(r"`([^`]+)`", text)


SETTINGS = {name: row for row in rows("### Settings") for name in quoted(row[0])}


def test_every_setting_has_a_line() -> None:
    """A field of Settings is in the README's table, and each name in the table is a field."""
    assert SETTINGS.keys() == Settings.model_fields.keys()


@pytest.mark.parametrize("name", Settings.model_fields)
def test_a_setting_has_its_environment_variable(name: str) -> None:
    """The variable of each setting stands in its line; no variable of the table is unknown to the service."""
    assert environment_name(name) in quoted(SETTINGS[name][1])


def test_every_variable_is_read() -> None:
    """What the README calls SALLYPORT_... anywhere is a setting's variable or the master key's."""
    known = {environment_name(name) for name in Settings.model_fields} | {MASTER_KEY}
    assert set(re.findall(rf"{PREFIX}[A-Z_]+", README)) == known


def shown(value: object) -> str:
    """A default as the README writes it."""
    if isinstance(value, tuple) and not isinstance(value, Address):
        return ",".join(map(str, value))
    if isinstance(value, Path) and not value.is_absolute():
        return f"./{value}"
    return f"{value:g}" if isinstance(value, float) else str(value)


NO_DEFAULT = (None, "", (), DEFAULTS)


@pytest.mark.parametrize("name", [n for n, f in Settings.model_fields.items() if f.default not in NO_DEFAULT])
def test_a_setting_has_its_default(name: str) -> None:
    """A default that is a value stands in the table as that value."""
    assert SETTINGS[name][2].strip("`") == shown(Settings.model_fields[name].default)


@pytest.mark.parametrize("name", [n for n, f in Settings.model_fields.items() if f.default in NO_DEFAULT])
def test_a_setting_without_a_default_says_what_holds_then(name: str) -> None:
    """Where a setting has no default of its own, the table says in words what is done without it."""
    assert len(SETTINGS[name][2].split()) > 1


def test_every_limit_has_its_line() -> None:
    """The limits of a tenant stand in their table, each with its default."""
    told = [(quoted(name)[0], int(most.replace(",", ""))) for name, most, _ in rows("### Limits of a tenant")]
    assert told == [(limit.name, limit.most) for limit in LIMITS]


@pytest.mark.parametrize(("name", "low", "high"), [("duplicate_window_s", 5, 30), ("reject_delay_s", 0, 10)], ids=str)
def test_a_setting_has_its_range(name: str, low: int, high: int) -> None:
    """A setting that is bounded on both sides says so, and refuses what is outside."""
    assert f"({low} to {high})" in SETTINGS[name][3]
    for outside in (low - 1, high + 1):
        with pytest.raises(ValidationError):
            Settings.model_validate({name: outside})


def commands(group: click.Group = root, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command with the words that call it: `client import`, `agent key create`."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


COMMAND_BY_WORDS = dict(commands())


def told_commands() -> list[str]:
    """What the table of commands calls a command, without the program's name."""
    return [text.removeprefix("sallyport ") for row in rows("### Commands") for text in quoted(" ".join(row))]


@pytest.mark.parametrize("words", COMMAND_BY_WORDS)
def test_every_command_has_a_line(words: str) -> None:
    """A command that can be called is in the README's table of commands."""
    assert any(text == words or text.startswith(words + " ") for text in told_commands())


def test_every_command_of_the_readme_exists() -> None:
    """What the README calls as `sallyport ...`, in text or in an example, is a command."""
    called = re.findall(r"(?:`|bin/)sallyport ([a-z]+)(?: ([a-z-]+))?(?: ([a-z-]+))?", README)
    assert called
    for words in called:
        beginnings = {" ".join(words[:count]) for count in (1, 2, 3)}
        assert beginnings & COMMAND_BY_WORDS.keys(), words


@pytest.mark.parametrize("words", COMMAND_BY_WORDS)
def test_every_option_of_a_line_exists(words: str) -> None:
    """An option that the table of commands shows belongs to the command that it is shown with."""
    known = {option for parameter in COMMAND_BY_WORDS[words].params for option in parameter.opts}
    for text in told_commands():
        if text == words or text.startswith(words + " "):
            assert set(re.findall(r"--[a-z-]+", text)) <= known


@pytest.mark.parametrize("words", COMMAND_BY_WORDS)
def test_every_option_that_a_command_needs_is_shown(words: str) -> None:
    """A line of the table works as it is printed: it has every option without which the command is refused."""
    needed = {p.opts[0] for p in COMMAND_BY_WORDS[words].params if isinstance(p, click.Option) and p.required}
    told = [text for text in told_commands() if text == words or text.startswith(words + " ")]
    assert any(needed <= set(re.findall(r"--[a-z-]+", text)) for text in told)


@pytest.mark.parametrize("words", [words for words in COMMAND_BY_WORDS if words.endswith(" list")])
def test_every_list_has_json(words: str) -> None:
    """'Every list has `--json`' is true."""
    assert "--json" in {option for parameter in COMMAND_BY_WORDS[words].params for option in parameter.opts}


def test_every_metric_has_a_line() -> None:
    """A metric that the service exposes is in the README's table, and each name in the table is exposed."""
    told = [name for row in rows("### Metrics") for name in quoted(row[0])]
    assert len(told) == len(set(told))
    assert set(told) == {exposed(metric) for metric in collected()}


def test_every_class_of_metrics_is_looked_at() -> None:
    """`tests.metrics.everything` makes every class of metrics that there is; a new one has to be added there."""
    made = {
        "AgentMetrics",
        "RadiusMetrics",
        "LoginMetrics",
        "LockoutMetrics",
        "MfaMetrics",
        "CredentialMetrics",
        "UpstreamMetrics",
        "InventoryMetrics",
        "SessionMetrics",
        "DirectoryMetrics",
        "DomainMetrics",
        "DynamicMetrics",
        "PresentationMetrics",
        "StoreMetrics",
        "HttpMetrics",
        "OutletMetrics",
    }
    assert {name for name in vars(metrics) if name.endswith("Metrics")} == made | {"ProcessMetrics"}


def operations() -> Iterator[str]:
    """The path of every operation; declaring them asks no service for anything."""
    gate = Gate(cast(Authenticator, NOTHING), cast(DomainOwners, NOTHING))
    for slice_operations in (
        devices_api.operations(cast(Devices, NOTHING), gate, now_us),
        sessions_api.operations(cast(Sessions, NOTHING), lambda _attribute, _number: None, gate),
        clients_api.operations(cast(Clients, NOTHING), gate),
        dynamic_api.operations(cast(DynamicAuthorization, NOTHING), gate),
        domains_api.operations(cast(Domains, NOTHING), cast(Enforcement, NOTHING), gate),
        previews_api.operations(cast(Foresight, NOTHING), gate),
        providers_api.operations(cast(Providers, NOTHING), gate),
        first_factors_api.operations(cast(FirstFactors, NOTHING), cast(Trials, NOTHING), cast(Domains, NOTHING), gate),
        rules_api.operations(cast(LoginRules, NOTHING), gate),
        bypass_api.operations(cast(Bypass, NOTHING), gate),
        policies_api.operations(cast(PasswordPolicies, NOTHING), gate),
        instances_api.operations(cast(Instances, NOTHING), gate),
        directories_api.operations(
            cast(
                DirectoryArea,
                SimpleNamespace(directories=SimpleNamespace(files=NOTHING), mappings=NOTHING, schedules=NOTHING),
            ),
            lambda _tenant: (),
            gate,
        ),
        directories_api.agent_operations(cast(Runs, NOTHING), gate),
        agents_api.operations(cast(Agents, NOTHING), gate),
        agent_operations.operations(cast(Agents, NOTHING), gate),
        groups_api.operations(cast(Groups, NOTHING), gate),
        users_api.operations(cast(Users, NOTHING), gate),
        enrolments_api.operations(cast(OneTimeSeeds, NOTHING), str, gate),
        dids_api.operations(cast(Dids, NOTHING), gate),
        schemas_api.operations(cast(Schemas, NOTHING), gate),
        credentials_api.operations(cast(Credentials, NOTHING), now_us, gate),
        events_api.operations(cast(Events, NOTHING), cast(Domains, NOTHING), gate),
        lockouts_api.operations(cast(Lockouts, NOTHING), gate),
        audit_api.operations(cast(Audit, NOTHING), gate),
        wallets_api.operations(cast(Wallets, NOTHING), gate),
        presentations_api.operations(cast(Verifier, NOTHING), cast(Presentations, NOTHING), gate),
        keys_api.operations(cast(Keys, NOTHING), lambda _key, _secret, _wished: "", gate),
    ):
        for operation in slice_operations.all:
            yield from operation.paths
    yield did_pages.RESOLVE  # a route of its own: it has no body


@pytest.mark.parametrize("path", list(operations()))
def test_every_operation_has_a_line(path: str) -> None:
    """An operation of the API is named in the README by its path."""
    assert path in README


def test_every_operation_of_the_readme_exists() -> None:
    """A path of the API that the README names is one that answers."""
    paths = set(re.findall(r"(?<![\w.])/(?:network_device|ad|api)/[A-Za-z0-9/-]+", README))
    assert paths <= set(operations())


def test_no_placeholder_is_left() -> None:
    """A section that was to be filled in has been."""
    assert not re.findall(r"^(?:[A-Z]{4,}|TODO.*|TBD.*)$", README, re.MULTILINE)
