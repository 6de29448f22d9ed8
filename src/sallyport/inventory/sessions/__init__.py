"""Sessions that network devices account for (RFC 2866), live and past.

    report    the content of one Accounting-Request: octets in, plain values out
    session   the change of a session by a report: pure, and the same in any order of arrival
    repo      the rows; `service.write_records` writes them in the transaction of the accounting records

A session is one Acct-Session-Id of one device. Records arrive late, twice, out of order or never, so the result does
not depend on their order: counters only grow, the begin is the earliest of all records, and a newer record overrides an
older one. A NAS that restarts reuses its Acct-Session-Ids: a session that began after the end of another session with
the same id is a new one.

A record counts once. A NAS without an answer sends it again with another identifier and a larger Acct-Delay-Time (RFC
2866 section 5.2), which duplicate detection cannot recognize. So a session keeps digests of its last records without
the attributes that change. It is read and written for each record anyway; an index of all digests would cost a page
for each.
"""
