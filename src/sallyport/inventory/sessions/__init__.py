"""Who is connected where: the sessions that network devices account for (RFC 2866), live and past.

    report    what one Accounting-Request tells: octets in, plain values out
    session   what a report changes in its session: pure, and the same in any order of arrival
    repo      the rows; `service.write_records` puts them into the transaction of the accounting records

A session is one Acct-Session-Id of one device. Records come late, twice, out of order and not at all, so nothing
here rests on their order: counters only grow, the begin is the earliest that a record shows, what a newer record
says replaces what an older one said. A NAS that restarts counts its Acct-Session-Ids from the beginning again: what
began after a session ended is another one of the same name.

A record counts once. A NAS that gets no answer repeats it under another identifier with a larger Acct-Delay-Time
(RFC 2866 section 5.2), which duplicate detection cannot know. So a session keeps digests of its last records without
what changes then; it is read and written for each record anyway, where an index of all digests would cost a page of
the log for each.
"""
