"""User sessions, live and past, from the RADIUS accounting of network devices (RFC 2866).

    report    the values of one Accounting-Request
    session   how a report changes a session; the result does not depend on the order of arrival
    repo      SQL; `service.write_records` updates sessions in the transaction of the accounting records

A session is identified by its device and its Acct-Session-Id. Records may arrive late, twice, out of order or never.
The order does not change the resulting session. Counters only increase, the session begins at the earliest begin in any
record, and the values of a newer record replace older values. A NAS may reuse Acct-Session-Ids after a restart. If a
session began after the end of another session with the same id, it is a new session.

A record counts once. If a NAS gets no answer, it sends the record again, with another identifier and a larger
Acct-Delay-Time (RFC 2866 section 5.2). Duplicate detection does not recognize this copy. Therefore a session stores
digests of its last records. The digests leave out the attributes that differ between copies.

The digests are stored in the session's row, because this row is read and written for each record anyway. An index of
all digests would cost an additional page for each record.
"""
