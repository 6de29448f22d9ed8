"""Directory domains: the users of a login, and whether their second factor is monitored or enforced (/ad/*).

All domains are in memory (`DomainTable`), so that the login path needs no query. Each change replaces the table as a
whole, and applies to the next request.

domain            a domain, and the table
enforcement       the switch between monitor and enforce, and the revert of an unconfirmed one
removal           the removal of a domain, and the deletion of its rows
first_factor_cli  `sallyport domain first-factor` and `domain check`; the operations are in `login.first`
"""
