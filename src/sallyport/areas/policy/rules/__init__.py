"""Login rules of a domain: they allow a login, require a second factor, or block it (/ad/...LoginRule(s)).

    conditions   the conditions of rules, one entry for each: fact, comparison, texts
    comparisons  compares facts with the values of conditions; `index`, `patterns` and `window` look up values, patterns
                 and times
    facts        the facts of a login
    rule         a rule in memory and in the store; `repo` has the SQL
    bodies       request and response bodies
    match        evaluates a domain's rules for a login; no I/O, some microseconds
    translation  converts names in bodies to numbers and octets: Service-Type, medium, clients, reply attributes;
                 `names` warns of users, groups and clients that do not exist
    service      keeps all rules in memory; a change applies to the next request

A rule has scopes, such as users, groups or clients. A scope is a list of values; an empty list is no condition. A rule
matches if the login fits at least one value in each of the other scopes. Rules with users are read first, then rules
with groups, then rules with OUs, then all others. Within each of these four kinds, rules are ordered by priority, then
by id. The first rule that matches decides. A domain with `ruleOrder` `listed` reads all its rules by priority alone, as
other RADIUS servers read their policies.

**A station that is on no list of MAC addresses** has the kind `unknown`, if its domain lets rules decide about it. Only
rules that name this kind, and rules that block, are read for it. It is admitted only by an `allow` rule with a VLAN or
role.

**A missing fact does not exempt a login.** Otherwise a device could omit Calling-Station-Id to evade a rule about
stations. A fact is, for example, an attribute or the list of the user's groups. If a fact is missing, a rule that needs
the fact *may* match. Then the stricter outcome applies:

- An `allow` rule that may match is skipped.
- A `block` or `mfa_required` rule that may match is kept as the minimum. The next rules are still read, because one of
  them may match with certainty and be stricter. So a client cannot turn a block into a prompt by omitting an attribute.
- The role and the reply attributes of a rule that may match are not sent.
"""
