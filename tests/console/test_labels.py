"""The labels of settings, in words instead of the names of the API."""

import re
from itertools import chain

import pytest

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.login.first.fields import LdapFields, UpstreamFields
from sallyport.console.labels import FIRST_FACTORS, PROVIDERS, label
from sallyport.console.pages.domains import configuration
from sallyport.console.pages.factors import FIELDS

SETTINGS = sorted(
    {*LdapFields.model_fields, *UpstreamFields.model_fields}
    | {name for name, _ in chain.from_iterable(FIELDS.values())}
)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_has_a_label_in_words(name: str) -> None:
    """No label has the spelling of the API, such as baseDN."""
    assert label(name)[0].isupper()
    assert not re.search(r"[a-z][A-Z]|_", label(name).replace("StartTLS", ""))


def test_a_setting_of_another_package_gets_its_name_as_words() -> None:
    """A provider of another package can have fields that the console does not know."""
    assert (label("pushTitle"), label("poll_seconds")) == ("Push title", "Poll seconds")


def test_every_factor_has_a_name() -> None:
    """The choices of both factors are named in words."""
    assert set(FIRST_FACTORS) == {each.value for each in FirstFactor}
    assert set(PROVIDERS) == set(FIELDS)


def test_a_certificate_is_not_listed_as_text() -> None:
    """The page says that own certificates are set, instead of showing their PEM."""
    first = {"firstFactor": "ldap", "ldap": {"baseDN": "dc=x", "caCertificate": "-----BEGIN CERTIFICATE-----\nMII"}}
    assert configuration(first) == [("Base DN", "dc=x"), ("Trusted certificates", "set")]  # type: ignore[arg-type]
