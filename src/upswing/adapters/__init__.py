"""The outside world behind our ports: nats, sql, object storage. Foreign errors become ours here."""
