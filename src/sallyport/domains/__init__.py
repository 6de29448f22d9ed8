"""Directory domains: who a login belongs to, and whether its second factor is monitored or enforced (/ad/*).

All domains are held in memory (`DomainTable`), replaced as a whole after each change, so that the login path asks
nobody and a change holds for the very next request.
"""
