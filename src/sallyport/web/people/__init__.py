"""The site of people: the pages at which they prove a second factor (`/mfa`) and manage their factors (`/me`).

The site has an address of its own (`people_bind`) and an app of its own. So a firewall can open it to the Internet,
while the API, the console, the metrics and the documentation stay inside: the app does not have their routes.

    class FactorsArea(Area):
        def people_routes(self, site: PeopleSite) -> Sequence[BaseRoute]:
            return [site.route("/mfa", show, submit, templates=Path(__file__).parent / "templates")]

GET shows a page, and changes nothing, because mail scanners and previews open links. POST submits a form. Each handler
gets a `PeopleVisit`, and returns a `PeoplePage` or a response. The templates extend `people.html`. They work without
JavaScript. The file `people.js` is only for passkeys: it answers the form with `data-passkey`.

The site knows a browser by a random cookie that the first POST sets. The services store only its hash. A form is
accepted only from a page of this site (`Sec-Fetch-Site`, or `Origin` of older browsers). A page is not cached, framed
or indexed, and sends no referrer. The log and the metrics have the template of a route, never the path with its code.

`PeopleVisit.belongs_to` notes the tenant of a request, when the handler has found it. Pages are rendered in turns:
those of known people by tenant, the others by address. Connections are limited by address (`web.connections`). If
there are too many, the one that has waited longest is closed. So people behind one address share its connections, and
a browser opens another one.
"""
