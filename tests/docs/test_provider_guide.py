"""The tables and examples of docs/guides/mfa-provider.md agree with the code."""

import inspect
import json
import re
import runpy
import tomllib
from dataclasses import fields
from pathlib import Path

from sallyport import plugins
from sallyport.areas.mfa.host import ConfiguredProvider, Host
from sallyport.areas.mfa.provider import (
    CHECK_USER,
    Answer,
    Code,
    Enrolled,
    Enrolment,
    Outcome,
    Provider,
    Question,
    Strength,
)
from sallyport.areas.mfa.radius import Radius
from sallyport.areas.mfa.wallet import Wallet
from sallyport.areas.mfa.webhook import Webhook, signature
from sallyport.base.clock import iso

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
PAGE = (GUIDES / "mfa-provider.md").read_text(encoding="utf-8")
OPTIONAL = {"only_codes", "check", "most_calls", "strongest", "hints", "refuse", "binds_by_code"}
"""Members of a provider that the protocol describes but does not declare."""


def named(heading: str) -> list[str]:
    """Return the names in the first column of the tables below a heading."""
    section = re.split(r"^#+ ", PAGE.partition(f"### {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return [name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)]


def test_the_table_of_the_class_is_complete() -> None:
    """The table has each method and attribute of a provider, and the optional ones that the code reads."""
    members = {*vars(Provider), *Provider.__annotations__, *ConfiguredProvider.__annotations__}
    assert set(named("The class")) == {name for name in members if not name.startswith("_")} | OPTIONAL
    assert all(name in (Provider.__doc__ or "") or name == "only_codes" for name in OPTIONAL)


def test_the_table_shows_the_optional_members_as_the_code_declares_them() -> None:
    """The types are those of the built-in providers that have the member."""
    returned = inspect.signature(Webhook.check, eval_str=True).return_annotation
    shown = (
        f"`only_codes: {Radius.__annotations__['only_codes']} = {Radius.only_codes}`",
        f"`most_calls: {Wallet.__annotations__['most_calls']}`",
        f"`async def check(self) -> {returned.__name__}`",
    )
    assert [text for text in shown if text not in PAGE] == []
    assert f"the user `{CHECK_USER}`" in PAGE


def test_the_table_of_the_values_is_complete() -> None:
    """The tables have each outcome, and each field of the values that a provider gets and returns."""
    members = [f"{kind.__name__}.{member.name}" for kind in (Outcome, Enrolment, Strength) for member in kind]
    values = (Answer, Enrolled, Question, Code, Host)
    parts = [f"{kind.__name__}.{field.name}" for kind in values for field in fields(kind)]
    assert sorted(named("The values")) == sorted([*members, *parts, f"Code.{Code.matches.__name__}"])


def test_the_example_request_is_signed_correctly() -> None:
    """The signature is that of the shown body with the shown secret. The time has the described format."""
    secret = re.search(r"with the secret `(\w+)`", PAGE)
    shown = re.search(r"Timestamp: (\d+)\nX-Sallyport-Signature: (\w+)\n\n(.*)\n```", PAGE)
    assert secret and shown
    assert signature(secret[1].encode(), shown[1], shown[3].encode()) == shown[2]
    body = json.loads(shown[3])
    assert body["expires_at"] == iso((int(shown[1]) + 60) * 1_000_000)
    assert f"X-Sallyport-Id: {body['challenge_id']}\n" in PAGE


def test_the_pyproject_names_the_class_of_the_example() -> None:
    blocks = [tomllib.loads(text) for text in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)]
    (project,) = [block for block in blocks if "project" in block]
    module, _, name = project["project"]["entry-points"]["sallyport.mfa"]["acme"].partition(":")
    assert project["tool"]["setuptools"]["py-modules"] == [module]
    assert runpy.run_path(str(GUIDES / f"{module}.py"))[name].name == "acme"


def test_a_provider_imports_public_names_only() -> None:
    """The example and its test import from `sallyport.plugins` alone, and the page explains each name there."""
    for path in (GUIDES / "acme_sallyport.py", Path(__file__).with_name("test_acme_provider.py")):
        modules = re.findall(r"^(?:from|import) (\S+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert {each for each in modules if each.partition(".")[0] == "sallyport"} == {"sallyport.plugins"}, path
    prose = re.sub(r"^```.*?^```$", "", PAGE, flags=re.MULTILINE | re.DOTALL)
    explained = {name for code in re.findall(r"`[^`\n]+`", prose) for name in re.findall(r"\w+", code)}
    assert set(plugins.__all__) - explained == set()


def test_the_public_names() -> None:
    """`sallyport.plugins` exports exactly the names that it imports."""
    assert {name for name in vars(plugins) if not name.startswith("__")} == set(plugins.__all__)
