"""The impact preview. It decides the recorded logins of a domain again, with the function that decides live logins.

    periods    groups times of day that login rules cannot distinguish
    repo       SQL that counts recorded logins in groups that login rules cannot distinguish
    enrolled   finds out which users have a second factor, without prompting them
    tally      counts outcomes, and keeps the users and devices with the worst outcomes
    rule_test  finds the rule that would decide a hypothetical login
    service    decides recorded logins, and lists the users and devices with the worst outcomes

Only logins that have passed their first factor are used, because any client can invent the names in other logins. The
source address, the Service-Type and the time are taken from the record. Everything else is taken from the current
state, because the current state decides the user's next login: rules, fallback, RADIUS clients, products of devices,
provider, enrolments and endpoint users.

No prompt is sent. If the enrolment of users is unknown, the provider is asked about them for some seconds. It is asked
about a limited number of users, those with the most logins first. The enrolment of all other users remains `unknown`.

A preview of millions of events does not delay logins. The store counts in portions of some thousand events on its
search connections, the newest first. The Python code yields to the event loop every two milliseconds. A caller can
limit the work to a number of pairs of a user and a device.

This package is a layer above `login`. It uses the decision function, the forecast and the enrolments of `login`.
"""
