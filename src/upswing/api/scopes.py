"""Whose key may ask what? The scopes of keys, and the sets of them that routes are open to."""

from __future__ import annotations

OPERATOR = frozenset({"operator"})
ASSISTANT = "assistant"
"""The scope of language models that ask for a person: they read, request work, and take traffic away from a model."""
READER = frozenset({"reader", "operator", ASSISTANT})
REQUESTER = frozenset({"operator", ASSISTANT})
"""Whose keys set work going that nobody has to be afraid of."""
GATEWAY = "gateway"
"""The scope of gateways: their clients' keys, and the models and shares that they show to admins."""
SCOPES = ("agent", "operator", "reader", GATEWAY, ASSISTANT)
GATEWAY_CLIENTS = frozenset({"agent", "operator"})
"""Whose keys open a gateway."""
