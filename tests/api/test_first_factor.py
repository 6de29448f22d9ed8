"""/ad/GetFirstFactor, /ad/SetFirstFactor and /ad/CheckFirstFactor."""

from tests.api.world import PASSWORD, Tenant

GET, SET, CHECK = "/ad/GetFirstFactor", "/ad/SetFirstFactor", "/ad/CheckFirstFactor"


def shown(tenant: Tenant) -> dict[str, object]:
    """Return the first factor of the tenant's domain."""
    answer: dict[str, object] = tenant.ask(GET, domainId=tenant.domain)
    assert (answer.pop("code"), answer.pop("status")) == (200, "Success")
    return answer


def test_a_new_domain_checks_its_own_users(tenant: Tenant) -> None:
    """A new domain has the first factor `local` without further configuration."""
    assert shown(tenant) == {"domainId": tenant.domain, "firstFactor": "local", "ldap": None, "radius": None}


def test_a_first_factor_holds_for_the_next_login(tenant: Tenant) -> None:
    """A first factor is accepted in any letter case and applies to the next login.

    A client that may not vouch for passwords is refused at once.
    """
    answer = tenant.ask(SET, domainId=tenant.domain, firstFactor="NONE")
    assert answer == {"code": 200, "status": "Success", "message": "the first factor is none", "warnings": []}
    assert shown(tenant)["firstFactor"] == "none"


def test_malformed_first_factors(tenant: Tenant) -> None:
    """A factor is refused if it is unknown or not configured, or if its fields are not an object."""
    for fields, message in (
        ({}, "missing firstFactor"),
        ({"firstFactor": "kerberos"}, "invalid firstFactor"),
        ({"firstFactor": "ldap"}, "missing ldap"),
        ({"firstFactor": "radius"}, "missing radius"),
        ({"firstFactor": "ldap", "ldap": "ldaps://dc"}, "invalid ldap"),
    ):
        assert tenant.refused(SET, domainId=tenant.domain, **fields) == (400, message), fields
    assert shown(tenant)["firstFactor"] == "local"
    assert PASSWORD not in str(shown(tenant))


def test_the_first_factor_web_needs_its_provider(tenant: Tenant) -> None:
    """Without the provider `own` and the factor oidc, the answer says what is missing. A new domain cannot have it."""
    status, message = tenant.refused(SET, domainId=tenant.domain, firstFactor="web")
    assert (status, "the provider must be own, with the factor oidc" in str(message)) == (409, True)
    assert shown(tenant)["firstFactor"] == "local"
    assert tenant.refused("/ad/AddDomain", domainName="vpn", firstFactor="web") == (400, "invalid firstFactor")


def test_a_check_reports_each_step(tenant: Tenant) -> None:
    """A check reports each step of a login and its outcome. It does not report the password and records no login."""
    tenant.user("zoe")
    right = tenant.ask(CHECK, domainId=tenant.domain, userName="zoe", password=PASSWORD)
    assert right["message"] == "the password is right"
    assert (right["code"], right["status"], right["reason"]) == (200, "Success", "")
    wrong = tenant.ask(CHECK, domainId=tenant.domain, userName="CORP\\zoe", password="not it")
    assert (wrong["reason"], wrong["steps"][-1]) == ("wrong password", "refused: wrong password")
    nobody = tenant.ask(CHECK, domainId=tenant.domain, userName="zoe@elsewhere", password=PASSWORD)
    assert nobody["reason"] == "unknown realm"
    assert PASSWORD not in str(right) and "not it" not in str(wrong)
    assert tenant.ask("/ad/GetAuthLog", domainId=tenant.domain)["events"] == []


def test_checks_are_limited(tenant: Tenant) -> None:
    """A domain may run five checks a minute, successful or not, so that checks cannot be used to guess passwords."""
    for _ in range(5):
        tenant.ask(CHECK, domainId=tenant.domain, userName="ann", password="guess")
    refusal = tenant.refused(CHECK, domainId=tenant.domain, userName="ann", password=PASSWORD)
    assert refusal == (429, "the limit of 5 trials in a minute is reached: try again later")


def test_checks_that_are_refused(tenant: Tenant) -> None:
    """A check refuses a name or password that RADIUS cannot carry, and a domain that does not check passwords
    itself.
    """
    for fields, message in (
        ({"userName": "", "password": "x"}, "invalid userName"),
        ({"userName": "ann"}, "missing password"),
        ({"userName": "\u00e4" * 127, "password": "x"}, "invalid userName"),
        ({"userName": "ann", "password": "x" * 129}, "invalid password"),
    ):
        assert tenant.refused(CHECK, domainId=tenant.domain, **fields) == (400, message), fields
    tenant.ask(SET, domainId=tenant.domain, firstFactor="none")
    assert tenant.refused(CHECK, domainId=tenant.domain, userName="ann", password="x")[0] == 409
