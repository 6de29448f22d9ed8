"""Tests of the fields of the built-in providers: required fields, defaults, and the texts for admins."""

import pytest
from pydantic import ValidationError

from sallyport.areas.mfa import bodies, providers
from sallyport.areas.mfa.bodies import (
    AddMfaProvider,
    CheckMfaProvider,
    DeleteMfaProvider,
    GetMfaProvider,
    WholeProvider,
)
from sallyport.areas.mfa.fields import BUILT_IN, FACTORS, Fields, OwnFields, RadiusFields, secret_field
from sallyport.base.model import Model
from sallyport.web.bodies import MAX_MEMBERS

REQUIRED = {
    "totp": set[str](),
    "duo": {"ikey", "skey", "host"},
    "okta": {"domain", "apiToken"},
    "privacyidea": {"url"},
    "webhook": {"url", "secret"},
    "radius": {"host", "secret"},
    "wallet": {"issuerDid"},
    "own": set[str](),
}
SECRETS = {
    "totp": None,
    "duo": "skey",
    "okta": "apiToken",
    "privacyidea": "adminToken",
    "webhook": "secret",
    "radius": "secret",
    "wallet": None,
    "own": "clientSecret",
}
SCOPE = {"orgId": 1, "tenantId": 1, "domainId": 1}
HEAD = {**SCOPE, "provider": "totp"}
EACH = [pytest.param(model, id=name) for name, model in BUILT_IN.items()]


def test_the_fields_belong_to_the_providers() -> None:
    """The command line and the console read the fields without the providers. Both have the same."""
    assert {each.name: each.fields for each in providers.BUILT_IN} == BUILT_IN


@pytest.mark.parametrize("name", BUILT_IN)
def test_required_fields_and_secrets(name: str) -> None:
    model = BUILT_IN[name]
    assert {key for key, field in model.model_fields.items() if field.is_required()} == REQUIRED[name]
    assert secret_field(model) == SECRETS[name]


@pytest.mark.parametrize("model", EACH)
def test_each_field_has_a_label_and_a_description(model: type[Fields]) -> None:
    """The form of the console shows the label. The reference and the command line show the description."""
    for name, field in model.model_fields.items():
        assert field.title, name
        assert field.description and field.description.endswith("."), name


@pytest.mark.parametrize(
    "model",
    [each for each in vars(bodies).values() if isinstance(each, type) and each.__module__ == bodies.__name__],
)
def test_each_field_of_a_body_has_a_description(model: type[Model]) -> None:
    for name in model.__annotations__:
        if name in model.model_fields:
            assert model.model_fields[name].description, name


def test_defaults() -> None:
    """An admin who gives nothing gets the defaults that the descriptions name."""
    assert RadiusFields.model_validate({"host": "192.0.2.7", "secret": "s"}).port == 1812
    own = OwnFields()
    assert (own.binding, own.factors, own.digits) == ("code", "passkey,totp,bypass", 6)
    assert (own.pageByMail, own.enrolByChallenge, own.changeStrength, own.ownCodes) == (False, False, "any", 0)
    assert (own.userClaim, own.userIs, own.userSuffix, own.authTime) == ("preferred_username", "name", "", "required")
    assert (own.issuer, own.clientId, own.clientSecret.get_secret_value()) == ("", "", "")
    assert (own.amr, own.acr, own.resistantAmr) == ("", "", "")


def test_all_factors_together() -> None:
    """All factors are accepted, in the order of the page."""
    assert OwnFields(factors="mail,bypass,totp,oidc,passkey").factors == "passkey,oidc,totp,bypass,mail"
    assert OwnFields(factors=",".join(FACTORS)).factors == ",".join(FACTORS)


@pytest.mark.parametrize(
    ("field", "accepted", "refused"),
    [
        ("digits", (4, 8), (3, 9)),
        ("ownCodes", (0, 10), (-1, 11)),
    ],
)
def test_limits_of_numbers(field: str, accepted: tuple[int, ...], refused: tuple[int, ...]) -> None:
    for number in accepted:
        assert getattr(OwnFields.model_validate({field: number}), field) == number
    for number in refused:
        with pytest.raises(ValidationError, match=field):
            OwnFields.model_validate({field: number})


# --- bodies -------------------------------------------------------------------------------------------------------


def test_the_time_of_an_answer() -> None:
    """A user may have 5 to 300 seconds, and has 60 by default."""
    assert AddMfaProvider.model_validate(HEAD).timeoutSeconds == 60
    for seconds in (5, 300):
        body = AddMfaProvider.model_validate({**HEAD, "timeoutSeconds": seconds})
        assert body.timeoutSeconds == seconds
    for seconds in (4, 301):
        with pytest.raises(ValidationError, match="timeoutSeconds"):
            AddMfaProvider.model_validate({**HEAD, "timeoutSeconds": seconds})


def test_the_name_of_a_provider() -> None:
    """A name is in any case. Without a name, an operation is about the default provider."""
    assert AddMfaProvider.model_validate({**HEAD, "provider": " TOTP "}).provider == "totp"
    for model in (GetMfaProvider, CheckMfaProvider, DeleteMfaProvider):
        assert model.model_validate(SCOPE).provider == ""
        assert model.model_validate({**SCOPE, "provider": " Duo "}).provider == "duo"


def test_the_fields_of_a_provider_are_few() -> None:
    """A body with very many fields is refused before a provider reads them."""
    own = {f"field{number}": "x" for number in range(MAX_MEMBERS)}
    assert AddMfaProvider.model_validate({**HEAD, **own}).own_fields() == own
    for many in ({**own, "more": "x"}, {"list": list(own)}):
        with pytest.raises(ValidationError, match="at most 500 members"):
            AddMfaProvider.model_validate({**HEAD, **many})


def test_a_provider_in_a_file_is_the_default_one() -> None:
    assert not WholeProvider.model_validate(HEAD).beside
