"""Directory domains. Each login belongs to a domain. The HTTP operations of domains are below /ad/.

In enforce mode, a domain requires a second factor of its users. In monitor mode, the domain requires none, and only
records the decision of the enforce mode.

All domains are in memory (`DomainTable`), so that the login path needs no query. Each change replaces the whole table,
and applies to the next request.

    domain            a domain, and the table
    enforcement       switches a domain between monitor and enforce, and reverts unconfirmed switches
    removal           the removal of a domain, and the deletion of its rows
"""
