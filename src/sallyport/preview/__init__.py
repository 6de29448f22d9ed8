"""The impact preview decides the recorded logins of a domain again, by the function that decides live logins.

    periods    the spans in which the rules' times of day apply, so that logins of a month can be grouped
    repo       recorded logins that the rules cannot distinguish, counted by the store
    enrolled   the second factors of many users, without a prompt
    tally      counts of outcomes, and the items with the worst ones
    rule_test  the rule that decides a given hypothetical login
    service    decides recorded logins by rules, enrolments and `decide`; names users and devices with the worst
               outcomes

The preview uses only recorded logins that passed their first factor, because any client can invent the names in other
logins. From the record it takes the source, the service and the time. It uses the present rules, fallback, RADIUS
clients, products of devices, provider, enrolments and local users, because these decide on the user's next login.

No prompt is sent. For some seconds, the provider is asked about a limited number of users whose enrolment is not known.
The users with the most logins come first. The enrolments of the others remain `unknown`. The store counts in slices on
its search connections, and the Python code yields to the event loop every two milliseconds, so that logins do not wait
for a preview of millions of events.

This area is a layer above `login`: it uses the decision function, the forecast and the enrolments of `login`. No login
waits for a preview.
"""
