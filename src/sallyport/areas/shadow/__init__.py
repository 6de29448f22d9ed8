"""Shadow mode: Sallyport beside another RADIUS server. It compares its own decisions with those of that server.

    shadow_login  values: a shadow login, the answer of the other server, the result of a comparison
    logs          readers of the logs of NPS, FreeRADIUS and Cisco ISE, for the command line
    copies        requests of RADIUS clients that are marked as shadow: copies of the traffic of the other server
    repo          SQL: records shadow logins, and pairs copies with answers
    comparing     decides a shadow login by the current rules, and compares
    service       records shadow logins, and reports the results of all of them

A shadow login is no login: it is in a table of its own, which only the comparison reads. It counts for no lock-out,
prompt, session, entry of a list, learned value or metric. No credential of it is stored, and none is tried: the result
of the first factor is that of the other server.

A report decides all shadow logins of a domain at the time of the report. So after a change of the rules, the next
report shows its effect without reading the logs again. The report yields to the event loop every two milliseconds, and
has at most one slice of the logins in memory.

This package is a layer above `preview`. It uses its enrolments and its slices of time.
"""
