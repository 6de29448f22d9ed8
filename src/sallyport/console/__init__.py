"""The web console: pages for people, rendered on the server, in the same process and on the same address as the API.

A page is a function and a template. It runs the operations of the API in process, with the roles and the tenant of the
signed-in person. So a page cannot do what the API would refuse, and limits, validation and the audit trail are those of
the API. No page has SQL, and no page imports a service.

    pages = Pages()

    @pages.show("/bypass", "MAC bypass", roles=READERS, template="bypass.html", menu="Sign-in policy")
    async def bypass(visit: Visit) -> Context:
        domain = visit.domain()
        table = await listed(visit, COLUMNS, "/policy/ListBypass", "stations", domain=domain.id)
        return {"domain": domain, "table": table}

    @pages.show("/bypass/{station}/remove", "Remove a station", roles=OPERATORS, template="bypass_remove.html")
    async def confirm(visit: Visit) -> Context:
        return {"station": visit.at["station"]}

    @pages.submit("/bypass/{station}/remove", roles=OPERATORS)
    async def remove(visit: Visit) -> Redirect:
        await visit.call("/policy/RemoveBypass", {"station": visit.at["station"]}, domain=visit.domain().id)
        return Redirect("/bypass", "The station is removed.")

To add a page: write its module in `pages/`, its template in `templates/`, and add the module to the list in
`pages/__init__.py`. The path, the title, the roles and the template are in the declaration. The site does everything
else: session, roles, form token, headers, errors, CSV.

    guard     cookies, form tokens, and what a request must prove
    visit     Visit: one request of a signed-in person, and its operations; Pages: the declaration of pages and forms
    table     lists: filters, sorting, paging, columns and CSV, all in the URL
    assets    templates and static files
    live      events that the server sends to an open page
    running   answers that take longer than a second
    sign_in   the pages of sign-in and sign-out
    site      the routes: checks, rendering, errors
    pages     the pages

Rules for pages:

- A page that is shown changes nothing. Each change is a form on a page of its own path; the path that a form is sent to
  also shows the form. So a destructive change is a page that lists everything that it deletes, with a button. If the
  operation refuses the form, the page is shown again with the reason and the submitted values.
- Every page works without JavaScript. The only script is `static/console.js`. It adds live rows, partial refresh, the
  keyboard search, local times and busy buttons, all by attributes in the templates.
- A template has no style attribute, no inline style and no inline script, because the Content-Security-Policy refuses
  them. Autoescape is always on, and `safe` is not used.
- An empty list says what to do next.
- A page or a form that may take longer than a second is declared with `is_slow=True`: if its function is not done after
  0.7 s, the browser shows a page that refreshes itself.

The session cookie is `SameSite=Lax`, not `Strict`: links to filtered pages are shared in chats and tickets, and with
`Strict` such a link would lead to the sign-in page. Every change needs the form token as well, which is bound to the
session. A sign-in through an identity provider starts with a link, not a form, because `form-action 'self'` also
applies to redirects.
"""
