"""What is a gateway given when it is made? Its bounds, who may use it, and how it routes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from upswing.config import ExploreConfig, FallbackConfig
from upswing.contracts.traffic import Plan
from upswing.gateway.admin_client import AdminClient
from upswing.gateway.core.serving_policy import ServingPolicy
from upswing.gateway.limits import GatewayLimits


@dataclass(frozen=True, slots=True)
class GatewayAuth:
    """Who may use the gateway, and how it identifies itself to models' servers."""

    client_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    """A client's key → its name."""
    keys_from_loop: bool = False
    """The loop tells of more keys. Without these and without client keys, everybody who reaches the port may ask."""
    admin_token: str | None = field(default=None, repr=False)
    """None: nobody is admin."""
    backend_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The beginning of a server's URL → the key that it wants."""


@dataclass(frozen=True, slots=True)
class RoutingOptions:
    """How models are chosen, beside the traffic plan."""

    policy: ServingPolicy = field(default_factory=ServingPolicy)
    by_user: bool = False
    """Users keep their model between episodes."""
    explore: ExploreConfig | None = None
    fallback: FallbackConfig | None = None
    """Who answers while the models' own server is away."""


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """Everything that a gateway is given beside its clock, its ids and its connections."""

    plan: Plan | None = None
    """Followed from the start; later ones come by the bus."""
    limits: GatewayLimits = field(default_factory=GatewayLimits)
    auth: GatewayAuth = field(default_factory=GatewayAuth)
    routing: RoutingOptions = field(default_factory=RoutingOptions)
    admin_client: AdminClient | None = None
    """None: no controller runs beside this gateway, so nothing can be changed here."""
    training_url: str | None = None
    """Where requests to the training service go."""
