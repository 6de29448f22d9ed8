"""Login rules of a domain: they allow a login, require a second factor, or block it (/ad/...LoginRule(s)).

    rule         a rule in memory and in the store
    bodies       request and response bodies
    match        evaluation of a domain's rules for a login; no I/O, some microseconds
    translation  names in bodies to numbers and octets: Service-Type, medium, clients, reply attributes
    service      all rules in memory, replaced as a whole after each change, so that it applies to the next request

A rule has scopes: lists of users, groups, clients and so on. Of each list that is not empty, one entry must match the
login. Rules with users are read first, then rules with groups, then rules with OUs, then the others; among these, rules
are ordered by priority, then by id. The first rule that matches decides.

**A missing fact does not exempt a login.** Otherwise a device could omit Calling-Station-Id to evade a rule about
stations. If a condition cannot be evaluated (an absent attribute, groups that could not be read), the rule *may* match.
The stricter outcome applies:

- An `allow` rule that may match is skipped.
- A `block` or `mfa_required` rule that may match sets the minimum. The rules after it are read nevertheless, because a
rule that surely matches may be stricter: an omitted attribute must not turn a block into a prompt. - The reply
attributes of a rule that may match are not sent.
"""
