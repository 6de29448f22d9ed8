"""Directory domains: the users of a login, and whether their second factor is monitored or enforced (/ad/*).

All domains are in memory (`DomainTable`). Each change replaces the table as a whole, so that the login path needs no
query and a change applies to the next request.
"""
