"""Who did what over HTTP? Every action of an operator leaves a row in the audit, with how it stood before and after.

| action                          | `what`         | written                                     |
|---------------------------------|----------------|---------------------------------------------|
| a key is made, revoked          | `add-key`, `revoke-key` | with the key                        |
| a user is not recorded, is again, is erased | `opt-out`, `opt-in`, `erase-user` | with the change |
| traffic, rollouts, models       | `traffic`, `approve`, `pause`, `resume`, `rollback`, `override`, `revalidate`, `register` | with the rollout (`deploy`) |
| a training is asked for, ended  | `train`, `trigger`, `cancel` | when the job is durable        |
| a validation is begun, a failure is pinned | `validate`, `pin` | when it is durable             |
| the judge is asked again        | `retry-judge`  | when it is durable                           |
| a dead letter is tried again    | `replay`       | when it is durable                           |
| an alert is acknowledged        | `acknowledge`  | with the alert                              |
| what really happened is stated  | `outcome`      | when it is durable                           |
| an operator's word on a trajectory | `feedback`  | when it is durable, where its `source` is `operator` |
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from upswing.api.router import Request
from upswing.infra.sql.audit import AuditTrail, audit_entry
from upswing.records import AuditEntry

AUDITED = {
    ("POST", "/v1/keys"): "add-key",
    ("DELETE", "/v1/keys/{key_id}"): "revoke-key",
    ("PUT", "/v1/optouts/{user}"): "opt-out",
    ("DELETE", "/v1/optouts/{user}"): "opt-in",
    ("DELETE", "/v1/users/{user}/data"): "erase-user",
    ("POST", "/v1/judgements/retry"): "retry-judge",
    ("POST", "/v1/outcomes"): "outcome",
    ("POST", "/v1/dead/{dead_id}/replay"): "replay",
    ("POST", "/v1/alerts/{alert_id}/acknowledge"): "acknowledge",
    ("POST", "/training/start"): "train",
    ("POST", "/training/{job_id}/cancel"): "cancel",
    ("POST", "/api/admin/training/trigger"): "trigger",
    ("POST", "/v1/validations"): "validate",
    ("POST", "/v1/pins"): "pin",
    ("POST", "/admin/models"): "register",
    ("PUT", "/admin/traffic"): "traffic",
    ("POST", "/v1/rollback"): "rollback",
    ("POST", "/v1/rollouts/{model_id}/revalidate"): "revalidate",
    ("POST", "/v1/rollouts/{model_id}/approve"): "approve",
    ("POST", "/v1/rollouts/{model_id}/pause"): "pause",
    ("POST", "/v1/rollouts/{model_id}/resume"): "resume",
    ("POST", "/v1/rollouts/{model_id}/rollback"): "rollback",
    ("POST", "/v1/rollouts/{model_id}/override"): "override",
}
"""Every route by which only operators write → what the audit calls it."""


def actor_of(request: Request) -> str:
    """Whose action it is, and which assistant asked for it where a person confirmed that."""
    if (who := request.principal) is None:
        return "unknown"
    return f"key {who.key_id}, asked by key {who.asked_by}" if who.asked_by else f"key {who.key_id}"


class Auditor:
    """Makes entries of requests."""

    def __init__(self, trail: AuditTrail, clock: Callable[[], datetime]) -> None:
        self._trail, self._clock = trail, clock

    def entry(
        self,
        request: Request,
        what: str,
        about: str,
        *,
        detail: object = None,
        before: object = None,
        after: object = None,
    ) -> AuditEntry:
        """For who writes it with the change itself."""
        return audit_entry(
            actor_of(request),
            what,
            about,
            self._clock(),
            detail=detail,
            before=before,
            after=after,
        )

    async def note(
        self,
        request: Request,
        what: str,
        about: str,
        *,
        detail: object = None,
        before: object = None,
        after: object = None,
    ) -> None:
        """Of a change that is durable."""
        await self._trail.append(
            self.entry(request, what, about, detail=detail, before=before, after=after)
        )
