"""The impact preview. It decides the recorded logins of a domain again, with the function that decides live logins.

    periods    groups times of day that login rules cannot distinguish
    repo       SQL that counts recorded logins in groups that login rules cannot distinguish
    enrolled   finds out which users have a second factor, without prompting them
    tally      counts outcomes, and keeps the users and devices with the worst outcomes
    rule_test  finds the rule that would decide a hypothetical login
    service    decides recorded logins, and lists the users and devices with the worst outcomes

Only logins that have passed their first factor are used, because any client can invent the names in other logins. The
source address, the Service-Type and the time come from the record. For everything else the current state is used,
because it decides on the user's next login: rules, fallback, RADIUS clients, products of devices, provider, enrolments
and endpoint users.

No prompt is sent. For some seconds the provider is asked about users whose enrolment is unknown, those with the most
logins first. The number of these users is limited. For all others the enrolment remains `unknown`.

Logins do not wait for a preview of millions of events. The store counts in small portions on its search connections.
The Python code yields to the event loop every two milliseconds.

This package is a layer above `login`, whose decision function, forecast and enrolments it uses.
"""
