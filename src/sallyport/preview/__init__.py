"""The impact preview: the recorded logins of a domain, decided again by the function that decides live ones.

    periods    when the rules' times of day hold, so that logins of a month can be grouped
    repo       recorded logins that the rules cannot distinguish, counted by the store
    enrolled   the second factors of many users, without a prompt
    tally      counts of outcomes, and the items with the worst ones
    rule_test  one login that has not happened, and the rule that decides it
    service    login rules, enrolment and `decide` for them; users and devices with the worst outcome, by name

The preview takes these facts from the record of a login: a right first factor (it leaves out other logins, whose names
any client can invent), the source, the service and the time. It takes these as they are now, since the next login of
the same user meets them: rules, fallback, RADIUS clients, products of devices, provider, enrolments, and whether a
local user still exists.

No prompt is sent. The provider is asked about a bounded number of users whose enrolment is not known, those with most
logins first, for some seconds. The others are `unknown`. The store counts in slices on its search connections, and the
Python part yields to the event loop every two milliseconds, so that logins do not wait for a preview of millions of
events.

The area is above `login`, whose decision function, forecast and enrolments it uses. No login waits for it.
"""
