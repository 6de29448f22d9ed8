"""Monitoring of the service: dashboards for Grafana, recording rules and alert rules for Prometheus.

    python -m grafana          writes dashboards/*.json again, from the modules of this package

Each dashboard is a module that declares a `Board` of rows, numbers and graphs; `build` turns it into Grafana's classic
JSON. Both are committed, and a test compares them. The expressions are PromQL. `$here` in an expression stands for the
selector of the instances that the dashboard shows.

overview, radius, mfa, domains, directories, endpoints, credentials, process    the dashboards
dashboards      their JSON
provisioning    for Grafana: the data source, and the directory of the dashboards
prometheus      for Prometheus: the scrape configuration, recording and alert rules, and tests of the rules
"""
