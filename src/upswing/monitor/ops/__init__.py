"""How do Prometheus, Alertmanager, Grafana and Loki watch a loop? Their configuration, generated from one place.

addresses, limits ─▶ scrape config · recording rules · alert rules · routes · dashboards · log collector ─▶ files
"""
