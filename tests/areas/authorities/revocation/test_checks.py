"""Tests of the check of a chain by lists and responders, which a small HTTP server publishes."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
import trio
from cryptography import x509
from cryptography.x509 import ocsp
from prometheus_client import CollectorRegistry

from sallyport.areas.authorities.revocation.fetching import ListFetcher, next_fetch
from sallyport.areas.authorities.revocation.lists import key_hash
from sallyport.areas.authorities.revocation.ocsp import OcspQuestion
from sallyport.areas.authorities.revocation.responders import FIRST_PAUSE_US, LIMIT_S, Responders
from sallyport.areas.authorities.revocation.revoked_repo import RevokedCertificates
from sallyport.areas.authorities.revocation.service import RevocationChecks
from sallyport.areas.authorities.revocation.sources import MAX_LISTS, PAUSE_US, RevocationLists
from sallyport.areas.authorities.revocation.state import RevocationRules, RevocationState, RevocationStatus
from sallyport.areas.mfa.contract import Behaviour
from sallyport.base.clock import SECOND
from sallyport.metrics import RevocationMetrics
from sallyport.nodes.notices import NoNotices
from sallyport.outgoing.http import HttpFactory
from sallyport.settings.values import ANYWHERE
from sallyport.store.model import Engine
from tests.areas import SetClock
from tests.areas.authorities.revocation.bench import CA, Bench, running
from tests.areas.authorities.revocation.issuer import DAY, NOW, Issuer, nonce_of, point, scope
from tests.waiting import until

GOOD, REVOKED, UNKNOWN = RevocationStatus.GOOD, RevocationStatus.REVOKED, RevocationStatus.UNKNOWN


# --- lists ----------------------------------------------------------------------------------------------------------


async def test_a_list_of_the_settings_decides(bench: Bench) -> None:
    """The list is fetched without a login. A certificate on it is revoked, another one is good, and the text says by
    which list."""
    bench.published["/ca.crl"] = CA.crl(7)
    rules = bench.rules(lists=(bench.url("/ca.crl"),))
    await bench.fetched("/ca.crl")
    revoked = await bench.state(CA.issue(serial=7), rules)
    assert (revoked.status, revoked.text) == (REVOKED, f"list {bench.url('/ca.crl')} of 2025-12-31 00:00: revoked")
    good = await bench.state(CA.issue(), rules)
    assert (good.status, good.text) == (GOOD, f"list {bench.url('/ca.crl')} of 2025-12-31 00:00: good")
    assert good.until == bench.clock.now + 86_400 * SECOND


async def test_a_list_of_the_certificate_is_fetched_once(bench: Bench) -> None:
    """The first login waits for the list that its certificate names. An LDAP address before it is skipped."""
    bench.published["/ca.crl"] = CA.crl(7)
    points = [point("ldap:///CN=Example%20CA?certificateRevocationList"), point(bench.url("/ca.crl"))]
    rules = bench.rules()
    assert (await bench.state(CA.issue(serial=7, lists=points), rules)).status is REVOKED
    assert (await bench.state(CA.issue(lists=points), rules)).status is GOOD
    assert [each.path for each in bench.calls] == ["/ca.crl"]


async def test_a_state_is_known_until_the_list_changes(bench: Bench) -> None:
    """A state that was found is returned without waiting, until there is a newer list."""
    bench.published["/ca.crl"] = CA.crl(number=1)
    rules = bench.rules(lists=(bench.url("/ca.crl"),))
    await bench.fetched("/ca.crl")
    chain = [CA.issue(serial=7), CA.certificate]
    assert bench.checks.known(chain, rules) is None
    assert (await bench.checks.state(chain, rules)).status is GOOD
    known = bench.checks.known(chain, rules)
    assert known is not None and known.status is GOOD
    bench.published["/ca.crl"] = CA.crl(7, number=2)
    await bench.fetched_again("/ca.crl")
    assert bench.checks.known(chain, rules) is None
    assert (await bench.checks.state(chain, rules)).status is REVOKED


async def test_a_clock_that_is_set_back_delays_no_list(bench: Bench) -> None:
    """If the clock is set back by a day, a list is fetched again at once, and not a day later."""
    bench.published["/ca.crl"] = CA.crl(7)
    bench.rules(lists=(bench.url("/ca.crl"),))
    await bench.fetched("/ca.crl")
    bench.clock.pass_by(-86_400)
    bench.lists.tell()
    await until(lambda: len(bench.calls) >= 2)


async def test_an_older_list_is_not_used(bench: Bench) -> None:
    """A list with a smaller number does not replace the list, and the source has the reason."""
    bench.published["/ca.crl"] = CA.crl(7, number=2)
    rules = bench.rules(lists=(bench.url("/ca.crl"),))
    await bench.fetched("/ca.crl")
    bench.published["/ca.crl"] = CA.crl(number=1)
    await bench.fetched_again("/ca.crl")
    assert bench.lists.of(1)[bench.url("/ca.crl")].row.error.startswith("the list is older")
    assert (await bench.state(CA.issue(serial=7), rules)).status is REVOKED
    assert bench.count("revocation_list_fetches", "older") >= 1  # the leader may have fetched it again since


async def test_a_late_list_revokes_but_does_not_clear(bench: Bench) -> None:
    """After nextUpdate, a certificate on the list is still revoked, and the state of another one is unknown."""
    bench.published["/ca.crl"] = CA.crl(7, until=NOW + timedelta(hours=1))
    rules = bench.rules(lists=(bench.url("/ca.crl"),), is_hard=True)
    await bench.fetched("/ca.crl")
    assert (await bench.state(CA.issue(), rules)).status is GOOD
    await bench.fetched_again("/ca.crl")
    state = await bench.state(CA.issue(), rules)
    assert state.status is UNKNOWN and "expired at 2026-01-01 01:00 UTC" in state.text
    assert state.refuses(rules) and not state.refuses(bench.rules(lists=rules.lists))
    assert (await bench.state(CA.issue(serial=7), rules)).status is REVOKED


async def test_a_delta_list_is_fetched_and_applied(bench: Bench) -> None:
    """The delta list that the complete list names adds and removes revocations."""
    fresh = x509.FreshestCRL([point(bench.url("/delta.crl"))])
    bench.published["/ca.crl"] = CA.crl(1, 2, number=10, extensions=[(fresh, False)])
    bench.published["/delta.crl"] = CA.crl(3, number=11, base=10, removed=[2])
    rules = bench.rules(lists=(bench.url("/ca.crl"),))
    await bench.fetched("/delta.crl")
    states = [(await bench.state(CA.issue(serial=each), rules)).status for each in (1, 2, 3, 4)]
    assert states == [REVOKED, GOOD, REVOKED, GOOD]
    assert "delta of" in (await bench.state(CA.issue(serial=4), rules)).text
    listed = bench.checks.revocations(rules, key_hash(CA.certificate))
    assert [listed(each) for each in (1, 2, 3, 4)] == [True, False, True, False]


async def test_lists_outlast_a_restart(store: Engine) -> None:
    """After a restart, the lists are read from the store, and not fetched again."""
    clock = SetClock()
    async with running(store, clock) as bench:
        bench.published["/ca.crl"] = CA.crl(*range(1, 300))
        rules = bench.rules(lists=(bench.url("/ca.crl"),))
        await bench.fetched("/ca.crl")
        address = rules.lists[0]
    again = RevocationLists(store, NoNotices(), clock)
    await again.load()
    found = again.of(1)[address].list
    assert found is not None and found.entries.count == 299
    checks = RevocationChecks(
        again,
        Responders(HttpFactory(), clock, RevocationMetrics(CollectorRegistry()), RevokedCertificates(store, clock)),
        clock,
    )
    assert (await checks.state([CA.issue(serial=299), CA.certificate], rules)).status is REVOKED


async def test_a_login_waits_for_a_list_that_is_being_read(bench: Bench) -> None:
    """After a start, the entries of large lists are read in the background. Another login's wish does not read them."""
    bench.published["/ca.crl"] = CA.crl(*range(1, 300))
    rules = bench.rules(lists=(bench.url("/ca.crl"),))
    await bench.fetched("/ca.crl")
    again = RevocationLists(bench.store, NoNotices(), bench.clock)
    await again._load_rows()
    assert again.of(1)[rules.lists[0]].is_loading
    stored, metrics = RevokedCertificates(bench.store, bench.clock), RevocationMetrics(CollectorRegistry())
    checks = RevocationChecks(again, Responders(HttpFactory(), bench.clock, metrics, stored), bench.clock)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(again.load)
        state = await checks.state([CA.issue(serial=299), CA.certificate], rules)
    assert state.status is REVOKED
    assert not again.of(1)[rules.lists[0]].is_loading


async def test_a_list_that_is_being_read_is_not_fetched(bench: Bench) -> None:
    """The list at the address may be older than the one in the store, which is not known yet."""
    bench.published["/ca.crl"] = CA.crl(7, number=2)
    rules = bench.rules(lists=(bench.url("/ca.crl"),))
    await bench.fetched("/ca.crl")
    bench.published["/ca.crl"] = CA.crl(number=1)
    again = RevocationLists(bench.store, NoNotices(), bench.clock)
    await again._load_rows()
    (source,) = again.all()
    again.put(replace(source, row=replace(source.row, next_at=0)))
    metrics, http = RevocationMetrics(CollectorRegistry()), HttpFactory(egress=ANYWHERE)
    fetcher = ListFetcher(again, bench.store, http, bench.clock, lambda: {1: rules}, metrics)
    async with trio.open_nursery() as nursery:
        await fetcher._tend(nursery)
    assert len(bench.calls) == 1


async def test_the_lists_of_the_installation_have_a_limit(bench: Bench) -> None:
    """A tenant with more than an equal share gets no larger list; another tenant still gets its own."""
    bench.published["/ca.crl"] = CA.crl(*range(1, 300))
    bench.rules(lists=(bench.url("/ca.crl"),))
    await bench.fetched("/ca.crl")
    source = bench.lists.of(1)[bench.url("/ca.crl")]
    assert source.list is not None
    size, metrics = source.list.size, RevocationMetrics(CollectorRegistry())
    fetcher = ListFetcher(bench.lists, bench.store, HttpFactory(), bench.clock, dict, metrics, most=size)
    assert "of all tenants" in fetcher._excess(source.row, size + 1)
    assert fetcher._excess(replace(source.row, id=2, tenant_id=2), size // 2) == ""
    assert "of all tenants" in fetcher._excess(replace(source.row, id=2, tenant_id=2), size)


async def test_another_node_reads_what_the_leader_has_fetched(store: Engine) -> None:
    """A node without the lease asks for a list; the leader fetches it, and the node reads it from the store."""
    clock = SetClock()
    async with running(store, clock) as leader:
        leader.published["/ca.crl"] = CA.crl(7)
        rules = leader.rules()
        other = RevocationLists(store, NoNotices(), clock)
        await other.load()
        await other.want(rules, leader.url("/ca.crl"))
        await leader.lists.load()
        await leader.fetched("/ca.crl")
        await other.load()
        found = other.of(1)[leader.url("/ca.crl")].list
        assert found is not None and found.entries.count == 1


async def test_each_authority_checks_a_shared_address_by_its_own_certificates(bench: Bench) -> None:
    """An authority that names the address of another one's list gets nothing from it."""
    bench.published["/ca.crl"] = CA.crl(7)
    twin = Issuer.new()
    bench.rules(lists=(bench.url("/ca.crl"),))
    other = bench.rules(authority_id=2, tenant_id=2, bundle=twin.pem, lists=(bench.url("/ca.crl"),))
    await bench.fetched("/ca.crl", 1)
    await bench.fetched("/ca.crl", 2)
    assert bench.lists.of(1)[bench.url("/ca.crl")].list is not None
    assert bench.lists.of(2)[bench.url("/ca.crl")].list is None
    state = await bench.checks.state([twin.issue(serial=7), twin.certificate], other)
    assert state.status is UNKNOWN and "not signed by its issuer's key" in state.text


async def test_an_authority_has_a_limit_of_lists(bench: Bench) -> None:
    """Certificates that name ever new addresses do not make the service fetch ever more lists."""
    rules = bench.rules()
    for number in range(MAX_LISTS):
        await bench.lists.want(rules, bench.url(f"/{number}.crl"))
    state = await bench.state(CA.issue(lists=[point(bench.url("/more.crl"))]), rules)
    assert state.status is UNKNOWN and f"{MAX_LISTS} lists already" in state.text
    assert len(bench.lists.of(1)) == MAX_LISTS


async def test_lists_that_are_no_longer_wanted_are_removed(bench: Bench) -> None:
    """A list of a removed authority disappears from memory and from the store."""
    bench.published["/ca.crl"] = CA.crl(7)
    bench.rules(lists=(bench.url("/ca.crl"),))
    await bench.fetched("/ca.crl")
    bench.authorities.clear()
    bench.clock.pass_by(61)
    bench.lists.tell()
    with trio.fail_after(30):
        while bench.lists.of(1):
            await bench.lists.changed.wait()
    sql = "select (select count(*) from revocation_lists) + (select count(*) from revocation_entries)"
    assert await bench.store.read(lambda tx: tx.value(int, sql)) == 0


async def test_an_intermediate_is_checked_too(bench: Bench) -> None:
    """A chain with a revoked authority is revoked, although its leaf is good. The authority's list is verified by its
    certificate in the chain, which the bundle does not have."""
    points = [point(bench.url("/root.crl"))]
    issuing = CA.subordinate(lists=points)
    leaf = issuing.issue(lists=[point(bench.url("/issuing.crl"))])
    bench.published["/root.crl"] = CA.crl(issuing.certificate.serial_number)
    bench.published["/issuing.crl"] = issuing.crl()
    rules = bench.rules(bundle=CA.pem)
    state = await bench.checks.state([leaf, issuing.certificate, CA.certificate], rules)
    assert state.status is REVOKED and "issuing.crl" in state.text and "root.crl" in state.text


async def test_a_certificate_that_names_nothing_is_unknown(bench: Bench) -> None:
    """Without any address, the state is unknown, and the text says why."""
    state = await bench.state(CA.issue(), bench.rules())
    assert state.status is UNKNOWN and "names no revocation list and no responder" in state.text


async def test_addresses_of_certificates_are_used_only_if_the_authority_says_so(bench: Bench) -> None:
    """An authority can forbid the addresses in certificates; then nothing is asked."""
    bench.published["/ca.crl"] = CA.crl(7)
    certificate = CA.issue(serial=7, lists=[point(bench.url("/ca.crl"))], responder=bench.url("/ocsp"))
    assert (await bench.state(certificate, bench.rules(uses_certificates=False))).status is UNKNOWN
    assert not bench.calls


def test_a_list_is_fetched_ahead_of_its_end() -> None:
    """A list is fetched several times in its validity, sooner near its end, and soon after a failure."""
    now = SetClock().now
    assert next_fetch(None, 1, now) == now + 30 * SECOND
    assert next_fetch(None, 9, now) == now + 60 * SECOND


# --- OCSP -----------------------------------------------------------------------------------------------------------


async def test_a_responder_is_asked_once(bench: Bench) -> None:
    """The answer of the responder is used for later logins, until it ends; then the responder is asked again."""
    certificate = CA.issue()
    bench.published["/ocsp"] = CA.answer(certificate, CA)
    rules = bench.rules(responder=bench.url("/ocsp"))
    states = [await bench.state(certificate, rules) for _ in range(3)]
    assert {each.status for each in states} == {GOOD}
    assert states[0].text == f"OCSP {bench.url('/ocsp')} of 2026-01-01 00:00: good"
    assert len(bench.calls) == 1
    bench.clock.pass_by(3600)
    bench.published["/ocsp"] = CA.answer(certificate, CA, ocsp.OCSPCertStatus.REVOKED)
    assert (await bench.state(certificate, rules)).status is REVOKED
    assert len(bench.calls) == 2


async def test_the_responder_of_the_certificate_is_asked(bench: Bench) -> None:
    """The address in the certificate is used if the authority has none. Concurrent logins share one request."""
    certificate = CA.issue(responder=bench.url("/ocsp"))
    bench.published["/ocsp"] = CA.answer(certificate, CA, ocsp.OCSPCertStatus.REVOKED)
    rules = bench.rules()
    found: list[RevocationState] = []

    async def check() -> None:
        found.append(await bench.state(certificate, rules))

    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(check)
    assert {each.status for each in found} == {REVOKED}
    assert len(bench.calls) == 1


async def test_the_nonce_comes_back(bench: Bench) -> None:
    """An authority with nonces sends a new one in each request."""
    certificate, other = CA.issue(), CA.issue()
    bench.published["/ocsp"] = CA.answer(certificate, CA, nonce=bytes(32))
    rules = bench.rules(responder=bench.url("/ocsp"), uses_nonce=True)
    state = await bench.state(certificate, rules)
    assert state.status is UNKNOWN and "nonce of another request" in state.text
    await bench.state(other, rules)
    nonces = [nonce_of(each.body) for each in bench.calls]
    assert len(set(nonces)) == 2 and {len(each) for each in nonces} == {32}


async def test_a_dead_responder_costs_one_login_its_limit(bench: Bench, mock_clock: trio.testing.MockClock) -> None:
    """A silent responder is not asked again until a pause has passed; then one login asks, and the pause doubles. A
    login that does not ask would hang here, if it waited: the time stands still."""
    bench.server.behave(Behaviour.SILENT)
    rules = bench.rules(responder=bench.url("/ocsp"))
    first = await asked_in_vain(bench, rules, mock_clock)
    assert first.status is UNKNOWN and "no answer in 2 s" in first.text
    requests = bench.server.requests
    second = await bench.state(CA.issue(), rules)
    assert second.status is UNKNOWN and "not asked, because it has failed" in second.text
    bench.clock.pass_by(FIRST_PAUSE_US / SECOND)
    await asked_in_vain(bench, rules, mock_clock)
    bench.clock.pass_by(FIRST_PAUSE_US / SECOND)
    await bench.state(CA.issue(), rules)
    assert bench.server.requests == requests + 1
    assert bench.count("ocsp_requests", "failed") == 2


async def asked_in_vain(bench: Bench, rules: RevocationRules, clock: trio.testing.MockClock) -> RevocationState:
    """Return the state of a certificate. Its login asks the silent responder, and then the time of its limit passes."""
    before, found = bench.server.requests, list[RevocationState]()

    async def log_in() -> None:
        found.append(await bench.state(CA.issue(), rules))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(log_in)
        while bench.server.requests == before:
            await trio.lowlevel.checkpoint()
        clock.jump(LIMIT_S)
    return found[0]


async def test_a_dead_responder_of_one_tenant_does_not_concern_another(bench: Bench) -> None:
    """Another tenant's authority with the same responder asks it all the same."""
    certificate = CA.issue()
    bench.server.behave(Behaviour.FAIL)
    assert (await bench.state(certificate, bench.rules(responder=bench.url("/ocsp")))).status is UNKNOWN
    bench.server.behave(Behaviour.APPROVE)
    bench.published["/ocsp"] = CA.answer(certificate, CA)
    other = bench.rules(authority_id=2, tenant_id=2, responder=bench.url("/ocsp"))
    assert (await bench.state(certificate, other)).status is GOOD


async def test_a_valid_list_decides_if_the_responder_fails(bench: Bench) -> None:
    """With a list and a dead responder, the list decides, and the text names both."""
    bench.published["/ca.crl"] = CA.crl(7)
    rules = bench.rules(lists=(bench.url("/ca.crl"),), responder=bench.url("/ocsp"))
    await bench.fetched("/ca.crl")
    state = await bench.state(CA.issue(), rules)
    assert state.status is GOOD
    assert state.text.startswith(f"OCSP {bench.url('/ocsp')}: 127.0.0.1: the server answered HTTP 404; list ")
    assert (await bench.state(CA.issue(serial=7), rules)).status is REVOKED


async def test_an_address_that_is_not_allowed_is_not_asked(store: Engine) -> None:
    """The egress rules hold for addresses of certificates: the loopback address is not asked."""
    clock = SetClock()
    lists = RevocationLists(store, NoNotices(), clock)
    checks = RevocationChecks(
        lists,
        Responders(HttpFactory(), clock, RevocationMetrics(CollectorRegistry()), RevokedCertificates(store, clock)),
        clock,
    )
    rules = RevocationRules(1, 1, CA.pem)
    state = await checks.state([CA.issue(responder="http://127.0.0.1:9/ocsp"), CA.certificate], rules)
    assert state.status is UNKNOWN and "address not allowed" in state.text


@pytest.mark.parametrize(
    "address",
    ["ldap://pki.example.test/x", "file:///etc/passwd", "http://a:b@pki.example.test/", "http://", "x" * 2000],
)
async def test_only_http_addresses_are_asked(bench: Bench, address: str) -> None:
    """An address of another scheme, with a user name, or that is none, is skipped."""
    points: Sequence[x509.DistributionPoint] = [point(address)]
    state = await bench.state(CA.issue(lists=points, responder=address), bench.rules())
    assert state.status is UNKNOWN and "names no revocation list and no responder" in state.text


async def test_a_partition_says_nothing_about_other_certificates(bench: Bench) -> None:
    """The list of another partition does not make a certificate good."""
    here = x509.UniformResourceIdentifier(bench.url("/1.crl"))
    bench.published["/1.crl"] = CA.crl(extensions=[(scope(full_name=[here]), True)])
    rules = bench.rules()
    assert (await bench.state(CA.issue(lists=[point(bench.url("/1.crl"))]), rules)).status is GOOD
    assert (await bench.state(CA.issue(lists=[point(bench.url("/2.crl"))]), rules)).status is UNKNOWN


async def test_a_certificate_for_which_no_request_can_be_made_is_unknown(bench: Bench) -> None:
    """An OCSP request has no negative serial number; the state is unknown, and no task ends."""
    rules, question = bench.rules(), OcspQuestion(-5, CA.certificate, b"")
    state = await bench.responders.ask(rules, bench.url("/ocsp"), (1, b"", -5), question)
    assert state.status is UNKNOWN and "no request can be made" in state.text


async def test_an_unexpected_error_of_a_list_is_a_failure(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is fetched again later, and the lists of others are still fetched."""

    def broken(*_given: object) -> None:
        raise RuntimeError

    bench.published["/ca.crl"] = CA.crl(7)
    with monkeypatch.context() as patch:
        patch.setattr(bench.fetcher, "_compared", broken)
        bench.rules(lists=(bench.url("/ca.crl"),))
        await bench.fetched("/ca.crl")
    row = bench.lists.of(1)[bench.url("/ca.crl")].row
    assert row.failures == 1 and row.next_at > bench.clock.now and row.error.startswith("internal error")
    await bench.fetched_again("/ca.crl")
    assert bench.lists.of(1)[bench.url("/ca.crl")].list is not None


async def test_a_revoked_certificate_stays_revoked(bench: Bench) -> None:
    """An answer that the certificate is revoked is kept: neither a dead responder, nor other settings, nor a repeated
    older answer makes it good again."""
    certificate = CA.issue()
    rules = bench.rules(responder=bench.url("/ocsp"))
    bench.published["/ocsp"] = CA.answer(certificate, CA, ocsp.OCSPCertStatus.REVOKED, since=NOW)
    assert (await bench.state(certificate, rules)).status is REVOKED
    bench.published["/ocsp"] = CA.answer(certificate, CA, since=NOW - timedelta(hours=1))
    bench.clock.pass_by(7200)
    assert (await bench.state(certificate, rules)).status is REVOKED
    del bench.published["/ocsp"]
    assert (await bench.state(certificate, bench.rules(uses_certificates=False))).status is REVOKED


def restarted(bench: Bench) -> RevocationChecks:
    """Return the checks of another node, or of this one after a restart."""
    stored = RevokedCertificates(bench.store, bench.clock)
    responders = Responders(HttpFactory(egress=ANYWHERE), bench.clock, RevocationMetrics(CollectorRegistry()), stored)
    return RevocationChecks(bench.lists, responders, bench.clock)


async def test_another_node_knows_a_revoked_certificate(bench: Bench) -> None:
    """It does not ask the responder, whatever this one answers now. A hold ends by a newer answer at any node."""
    certificate, chain = CA.issue(serial=7), [CA.issue(serial=7), CA.certificate]
    rules = bench.rules(responder=bench.url("/ocsp"))
    bench.published["/ocsp"] = CA.answer(certificate, CA, ocsp.OCSPCertStatus.REVOKED)
    assert (await bench.state(certificate, rules)).status is REVOKED
    bench.published["/ocsp"] = CA.answer(certificate, CA)
    assert (await restarted(bench).state(chain, rules)).status is REVOKED
    assert len(bench.calls) == 1


async def test_another_node_knows_a_hold(bench: Bench) -> None:
    """It asks the responder. A failure does not end the hold, and a newer answer does, also for the next node."""
    certificate, hold = CA.issue(serial=7), x509.ReasonFlags.certificate_hold
    rules = bench.rules(responder=bench.url("/ocsp"))
    bench.published["/ocsp"] = CA.answer(certificate, CA, ocsp.OCSPCertStatus.REVOKED, since=NOW - DAY, reason=hold)
    assert (await bench.state(certificate, rules)).status is REVOKED
    del bench.published["/ocsp"]
    assert (await restarted(bench).state([certificate, CA.certificate], rules)).status is REVOKED
    bench.published["/ocsp"] = CA.answer(certificate, CA, since=NOW)
    assert (await restarted(bench).state([certificate, CA.certificate], rules)).status is GOOD
    assert await bench.store.read(lambda tx: tx.rows("select * from revoked_certificates")) == []


async def test_a_hold_ends_with_a_newer_answer(bench: Bench) -> None:
    """A certificate on hold stays revoked while the responder fails or repeats an older answer; a newer one ends the
    hold."""
    certificate, hold = CA.issue(), x509.ReasonFlags.certificate_hold
    rules = bench.rules(responder=bench.url("/ocsp"))
    bench.published["/ocsp"] = CA.answer(certificate, CA, ocsp.OCSPCertStatus.REVOKED, since=NOW, reason=hold)
    assert (await bench.state(certificate, rules)).status is REVOKED
    bench.published["/ocsp"] = CA.answer(certificate, CA, since=NOW - timedelta(hours=1))
    bench.clock.pass_by(3600)
    state = await bench.state(certificate, rules)
    assert state.status is REVOKED and "not newer than" in state.text
    del bench.published["/ocsp"]
    bench.clock.pass_by(60)
    assert (await bench.state(certificate, rules)).status is REVOKED
    bench.published["/ocsp"] = CA.answer(certificate, CA, since=NOW + timedelta(hours=1))
    bench.clock.pass_by(60)
    assert (await bench.state(certificate, rules)).status is GOOD


async def test_an_issuing_authority_outside_the_bundle_gets_a_new_key(bench: Bench) -> None:
    """Its list is verified by the certificate in the chain of the login that asks now, after a fetch has failed."""
    path, (old, new) = "/issuing.crl", (CA.subordinate(), CA.subordinate())
    bench.published[path] = old.crl(number=1, until=NOW + timedelta(hours=1))
    rules, points = bench.rules(), [point(bench.url(path))]
    with trio.fail_after(30):
        await bench.checks.state([old.issue(lists=points), old.certificate, CA.certificate], rules)
    leaf = new.issue(lists=points)
    bench.published[path] = new.crl(leaf.serial_number, number=1, since=NOW, until=NOW + 2 * DAY)
    await bench.fetched_again(path)
    chain = [leaf, new.certificate, CA.certificate]
    assert "not signed by" in bench.lists.of(1)[bench.url(path)].row.error
    with trio.fail_after(30):
        await bench.checks.state(chain, rules)
        await bench.fetched_again(path)
        assert (await bench.checks.state(chain, rules)).status is REVOKED


async def test_a_list_is_fetched_on_request_at_most_twice_a_minute(bench: Bench) -> None:
    """A request within 30 seconds after a fetch waits until they have passed."""
    bench.published["/ca.crl"] = CA.crl()
    bench.rules(lists=(bench.url("/ca.crl"),))
    await bench.fetched("/ca.crl")
    for _ in range(3):
        await bench.lists.look_again(1)
    row = bench.lists.of(1)[bench.url("/ca.crl")].row
    assert row.next_at == row.checked_at + PAUSE_US
    assert len(bench.calls) == 1


async def test_a_request_during_a_fetch_is_kept(bench: Bench) -> None:
    """The list that is being fetched may be older than the request, so it is fetched again soon."""
    bench.published["/ca.crl"], bench.held["/ca.crl"] = CA.crl(), 2
    bench.rules(lists=(bench.url("/ca.crl"),))
    with trio.fail_after(30):
        while not bench.calls:
            await trio.sleep(0.01)
    await bench.store.write(lambda tx: tx.execute("update revocation_lists set next_at = 1"))
    bench.held.clear()
    await bench.fetched("/ca.crl")
    sql = "select next_at - checked_at from revocation_lists"
    assert await bench.store.read(lambda tx: tx.value(int, sql)) == PAUSE_US


async def test_all_certificates_of_a_chain_are_asked_about_at_once(bench: Bench) -> None:
    """A login waits two seconds for all of them together: here, each answer waits for the requests of both."""
    middle = CA.subordinate()
    leaf = middle.issue()
    bench.published["/ocsp"], bench.held["/ocsp"] = CA.answer(middle.certificate, CA), 2
    rules = bench.rules(responder=bench.url("/ocsp"))
    with trio.fail_after(30):
        state = await bench.checks.state([leaf, middle.certificate, CA.certificate], rules)
    assert "good" in state.text and "no answer" not in state.text
