"""The impact preview: the recorded logins of a domain, decided again by the function that decides live ones.

    periods  when the rules' times of day hold, so that logins of a month can be grouped
    repo     recorded logins that the rules cannot distinguish, counted by the store
    enrolled the second factors of many users, without a prompt
    tally    counts of outcomes, and the items with the worst ones
    rule_test  one login that has not happened, and the rule that decides it
    service  login rules, enrolment and `decide` for them; users and devices with the worst outcome, by name

**Taken as recorded**: that the first factor was right (other names are noise that any client can make), and source,
service and time of the login. **Taken as it is now**: rules, fallback, RADIUS clients, products of devices, provider,
enrolments, and whether a local user still exists. The next login of the same user meets these.

**No user is disturbed.** Known enrolments are used; beyond them the provider is asked about a bounded number of users
within some seconds, those with most logins first. The others are `unknown`. The store counts in slices on its search
connections, and the Python part gives way to the event loop every two milliseconds, so that logins do not wait for a
preview of millions of events.

The area is above `login`: it uses its decision function, its forecast and its enrolments, and no login waits for it.
"""
