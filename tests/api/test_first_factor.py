"""/ad/GetFirstFactor, /ad/SetFirstFactor and /ad/CheckFirstFactor."""

from tests.api.world import PASSWORD, Tenant

GET, SET, CHECK = "/ad/GetFirstFactor", "/ad/SetFirstFactor", "/ad/CheckFirstFactor"


def shown(tenant: Tenant) -> dict[str, object]:
    """The first factor of the tenant's domain."""
    answer: dict[str, object] = tenant.ask(GET, domainId=tenant.domain)
    assert (answer.pop("code"), answer.pop("status")) == (200, "Success")
    return answer


def test_a_new_domain_checks_its_own_users(tenant: Tenant) -> None:
    """`local`, with nothing else configured."""
    assert shown(tenant) == {"domainId": tenant.domain, "firstFactor": "local", "ldap": None, "radius": None}


def test_it_is_set_in_any_case(tenant: Tenant) -> None:
    """And holds for the next login: a client that may not vouch for passwords is refused at once."""
    answer = tenant.ask(SET, domainId=tenant.domain, firstFactor="NONE")
    assert answer == {"code": 200, "status": "Success", "message": "the first factor is none"}
    assert shown(tenant)["firstFactor"] == "none"


def test_what_is_refused(tenant: Tenant) -> None:
    """A factor that there is not, one that was never configured, and fields that are no object."""
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


def test_a_trial(tenant: Tenant) -> None:
    """It tells what a login would come to, step by step and without the password; no login is recorded."""
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


def test_trials_are_few(tenant: Tenant) -> None:
    """Five a minute for a domain, right or wrong, so that nobody can guess passwords by them."""
    for _ in range(5):
        tenant.ask(CHECK, domainId=tenant.domain, userName="ann", password="guess")
    told = tenant.refused(CHECK, domainId=tenant.domain, userName="ann", password=PASSWORD)
    assert told == (429, "more than 5 trials a minute")


def test_what_cannot_be_tried(tenant: Tenant) -> None:
    """A name or a password that RADIUS does not carry, and a domain whose passwords somebody else checks."""
    for fields, message in (
        ({"userName": "", "password": "x"}, "invalid userName"),
        ({"userName": "ann"}, "missing password"),
        ({"userName": "\u00e4" * 127, "password": "x"}, "invalid userName"),
        ({"userName": "ann", "password": "x" * 129}, "invalid password"),
    ):
        assert tenant.refused(CHECK, domainId=tenant.domain, **fields) == (400, message), fields
    tenant.ask(SET, domainId=tenant.domain, firstFactor="none")
    assert tenant.refused(CHECK, domainId=tenant.domain, userName="ann", password="x")[0] == 409
