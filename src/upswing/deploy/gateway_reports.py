"""What do gateways report: which of them live, what may they serve, and what have they counted?"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from upswing.contracts.traffic import Switches
from upswing.deploy.core.gateway_switches import blocked_reason, pinned_models, pinned_versions
from upswing.deploy.core.record import Tallies
from upswing.deploy.core.rows import LeadershipLost
from upswing.deploy.environment import DeployEnvironment
from upswing.errors import Transient

log = logging.getLogger(__name__)


class GatewayReports:
    """The board's side of gateways; one that cannot be read is as it was before."""

    def __init__(self, env: DeployEnvironment) -> None:
        self._env = env
        self.switches: Mapping[str, Switches] = {}
        """Of the gateways that live, as they were last read."""
        self.pinned: frozenset[str] = frozenset()
        """Models that some of them are pinned to."""

    async def tallies(self) -> Tallies:
        """What gateways have counted; nothing when the board is away."""
        try:
            return await self._env.board.tallies()
        except LeadershipLost:
            raise
        except Transient as error:
            log.warning("%s", error, extra={"action": "tallies"})
            return {}

    async def refresh(self) -> None:
        """Read which gateways live, and what their switches mean."""
        try:
            self.switches = await self._env.board.gateways()
        except LeadershipLost:
            raise
        except Transient as error:
            log.warning("%s", error, extra={"action": "gateways"})
            return
        await self.read_pins()

    async def read_pins(self) -> None:
        """Which models the pinned versions are, by the rows."""
        wanted = pinned_versions(self.switches)
        rows = await self._env.store.models() if wanted else ()
        self.pinned = pinned_models(wanted, rows)

    @property
    def blocked_reason(self) -> str:
        """Why no gateway may serve a candidate; empty: one may."""
        return blocked_reason(self.switches)
