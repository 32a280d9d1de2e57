"""The bus: a real nats-server, its permissions and streams, and our connection to it."""
