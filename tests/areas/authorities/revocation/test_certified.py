"""Tests of the users with certificates: their sessions end when a certificate is revoked."""

from dataclasses import replace
from functools import partial

import trio
import trio.testing
from cryptography import x509
from cryptography.x509 import ocsp

from sallyport.areas.authorities.revocation.certified_repo import CertifiedUser, count_of, delete_oldest, put
from sallyport.areas.authorities.revocation.lists import key_hash
from sallyport.areas.authorities.revocation.state import NEVER, RevocationRules, RevocationState, RevocationStatus
from tests.areas.authorities.revocation.bench import CA, Bench


async def log_in(bench: Bench, certificate: x509.Certificate, rules: RevocationRules, user: str) -> None:
    """Check a certificate, and note the login of its user; return when the user is stored."""
    chain = [certificate, CA.certificate]
    state = await bench.checks.state(chain, rules)
    bench.certified.note(chain, rules, 5, user, state)
    sql, count = "select count(*) from certified_users where user_name = :user", 0
    with trio.fail_after(30):
        while not count:
            await trio.sleep(0.01)
            count = await bench.store.read(lambda tx: tx.value(int, sql, user=user) or 0)


async def ended(bench: Bench) -> None:
    """Wait until sessions were ended, and their users deleted."""
    with trio.fail_after(30):
        while not bench.ended:
            await trio.sleep(0.01)


async def test_a_new_list_ends_the_sessions_of_its_certificates(bench: Bench) -> None:
    """The users of a certificate on the new list lose their sessions, also a computer's by its outer name; others keep
    theirs."""
    bench.published["/ca.crl"] = CA.crl(number=1)
    rules = bench.rules(lists=(bench.url("/ca.crl"),))
    await bench.fetched("/ca.crl")
    await log_in(bench, CA.issue(serial=7), rules, "ann")
    await log_in(bench, CA.issue(serial=8), rules, "bob")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.certified.lead)
        bench.published["/ca.crl"] = CA.crl(7, number=2)
        await bench.fetched_again("/ca.crl")
        await ended(bench)
        nursery.cancel_scope.cancel()
    assert bench.ended == [(5, "ann"), (5, "host/ann")]
    names = await bench.store.read(lambda tx: tx.rows("select user_name from certified_users"))
    assert names == [("bob",)]


async def test_a_responder_is_asked_again_about_recent_logins(bench: Bench) -> None:
    """When the answer of the responder has ended, the leader asks again without a login, and ends the sessions."""
    certificate = CA.issue()
    bench.published["/ocsp"] = CA.answer(certificate, CA)
    rules = bench.rules(responder=bench.url("/ocsp"))
    await log_in(bench, certificate, rules, "ann")
    bench.published["/ocsp"] = CA.answer(certificate, CA, ocsp.OCSPCertStatus.REVOKED)
    bench.clock.pass_by(3600)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.certified.lead)
        await ended(bench)
        nursery.cancel_scope.cancel()
    assert bench.ended == [(5, "ann"), (5, "host/ann")]
    assert len(bench.calls) == 2


async def test_a_login_is_noted_once_a_day(bench: Bench) -> None:
    """Further logins of the user with the certificate write nothing."""
    bench.published["/ca.crl"] = CA.crl()
    rules = bench.rules(lists=(bench.url("/ca.crl"),))
    await bench.fetched("/ca.crl")
    certificate = CA.issue(serial=7)
    await log_in(bench, certificate, rules, "ann")
    changes = bench.store.changes
    chain = [certificate, CA.certificate]
    bench.certified.note(chain, rules, 5, "ann", await bench.checks.state(chain, rules))
    await trio.testing.wait_all_tasks_blocked()
    assert bench.store.changes == changes


async def test_a_row_that_cannot_be_read_ends_no_task(bench: Bench) -> None:
    """A row with a bad serial number is asked about later, and the other users are still asked about."""
    certificate = CA.issue()
    bench.published["/ocsp"] = CA.answer(certificate, CA)
    rules = bench.rules(responder=bench.url("/ocsp"))
    await log_in(bench, certificate, rules, "ann")
    key, sql = key_hash(CA.certificate).hex(), "select asked_until from certified_users where user_name = 'bad'"
    bad = [CertifiedUser(5, 1, key, each, "bad", rules.responder, 0, bench.clock.now, 1 << 60) for each in ("-5", "x")]
    await bench.store.write(lambda tx: put(tx, bad))
    bench.published["/ocsp"] = CA.answer(certificate, CA, ocsp.OCSPCertStatus.REVOKED)
    bench.clock.pass_by(3600)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.certified.lead)
        await ended(bench)
        with trio.fail_after(30):
            while any(not until for (until,) in await bench.store.read(lambda tx: tx.rows(sql))):
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()


async def test_a_user_is_noted_again_after_the_row_is_deleted(bench: Bench) -> None:
    """A certificate on hold is used again: its user is noted, so that the next revocation ends the session."""
    bench.published["/ca.crl"] = CA.crl(7, number=1)
    rules = bench.rules(lists=(bench.url("/ca.crl"),))
    certificate = CA.issue(serial=7)
    await log_in(bench, certificate, rules, "ann")
    await bench.fetched("/ca.crl")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.certified.lead)
        await ended(bench)
        nursery.cancel_scope.cancel()
    bench.published["/ca.crl"] = CA.crl(number=2)
    await bench.fetched_again("/ca.crl")
    await log_in(bench, certificate, rules, "ann")


async def test_a_user_that_cannot_be_stored_loses_no_other(bench: Bench) -> None:
    """The users of each authority are stored by themselves."""
    chain = [CA.issue(serial=7), CA.certificate]
    state = RevocationState(RevocationStatus.GOOD, "", NEVER)
    bench.certified.note(chain, bench.rules(authority_id=1), 5, "lone \ud800", state)
    bench.certified.note(chain, bench.rules(authority_id=2), 5, "bob", state)
    await trio.testing.wait_all_tasks_blocked()
    await log_in(bench, CA.issue(serial=8), bench.rules(authority_id=3), "ann")
    names = await bench.store.read(lambda tx: tx.rows("select user_name from certified_users order by user_name"))
    assert names == [("ann",), ("bob",)]


def due(bench: Bench, count: int, authority_id: int, path: str, user: str) -> list[CertifiedUser]:
    """Return users about whom responders are asked, each at an address of its own. path: without the number."""
    key, now = key_hash(CA.certificate).hex(), bench.clock.now
    return [
        CertifiedUser(5, authority_id, key, f"{7 + each:x}", user, bench.url(f"{path}{each}"), 0, now, 1 << 60)
        for each in range(count)
    ]


async def test_slow_responders_of_a_tenant_delay_no_other(bench: Bench) -> None:
    """A new list is looked at while responders are asked, and each tenant has its turn at its responders."""
    slow = due(bench, 100, 1, "/slow", "slow")
    bench.held.update({f"/slow{each}": 1 << 60 for each in range(100)})
    bench.published["/fast0"] = CA.answer(CA.issue(serial=7), CA, ocsp.OCSPCertStatus.REVOKED)
    bench.rules()
    bench.rules(authority_id=2, tenant_id=2)
    listed = bench.rules(authority_id=3, tenant_id=3, lists=(bench.url("/ca.crl"),))
    bench.published["/ca.crl"] = CA.crl(9)
    await bench.store.write(lambda tx: put(tx, [*slow, *due(bench, 1, 2, "/fast", "bob")]))
    await bench.fetched("/ca.crl", 3)
    await log_in(bench, CA.issue(serial=8), listed, "ann")
    await bench.store.write(lambda tx: tx.execute("update certified_users set serial = '9' where user_name = 'ann'"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.certified.lead)
        with trio.fail_after(15):  # one after the other, those of the first tenant take 25 seconds
            while len(bench.ended) < 4:
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    assert bench.ended == [(5, "ann"), (5, "host/ann"), (5, "bob"), (5, "host/bob")]


async def test_a_tenant_has_a_limit_of_users(bench: Bench) -> None:
    """The users of the last logins stay. Other tenants lose none."""
    own = [replace(each, seen_at=number) for number, each in enumerate(due(bench, 5, 1, "/ocsp", "ann"))]
    other = due(bench, 1, 2, "/ocsp", "bob")
    await bench.store.write(lambda tx: put(tx, [*own, *other]))
    await bench.store.write(partial(delete_oldest, authorities=[1], most=2))
    rows = await bench.store.read(lambda tx: tx.rows("select user_name, serial from certified_users order by id"))
    assert rows == [("ann", "a"), ("ann", "b"), ("bob", "7")]
    assert await bench.store.read(partial(count_of, authorities=[1])) == 2
