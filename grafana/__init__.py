"""What an admin sees of the service: dashboards for Grafana, recording and alert rules for Prometheus.

    python -m grafana          writes dashboards/*.json anew, from the modules here

Each dashboard is a module that declares a `Board` of rows, numbers and graphs; `build` turns it into Grafana's classic
JSON. Both are kept, and a test compares them. The expressions are the ones of Prometheus, with `$here` where the
dashboard's choice of instances goes.

overview, radius, mfa, domains, directories, endpoints, credentials, process    the dashboards
dashboards      their JSON
provisioning    for Grafana: where the data come from, and where the dashboards lie
prometheus      for Prometheus: how to scrape, recording and alert rules, and the rules' own tests
"""
