"""Who gets which alert, and how often?

An urgent one goes out at once and is repeated every hour; a warning waits for its like and is repeated twice a day.
"""

from __future__ import annotations

from upswing.monitor.ops.targets import OpsSetup, duration
from upswing.monitor.ops.yaml import Tree, dump

_RECEIVER = "upswing"


def alertmanager_config(setup: OpsSetup) -> str:
    """`alertmanager.yml`."""
    wait = setup.limits.group_wait
    return dump(
        {
            "route": {
                "receiver": _RECEIVER,
                "group_by": ["alertname", "service"],
                "group_wait": duration(wait),
                "group_interval": duration(max(1, 10 * wait)),
                "repeat_interval": "12h",
                "routes": [
                    {
                        "matchers": ['severity="urgent"'],
                        "receiver": _RECEIVER,
                        "group_wait": "0s",
                        "group_interval": duration(max(1, wait)),
                        "repeat_interval": "1h",
                    }
                ],
            },
            "receivers": [_receiver(setup.targets.webhook)],
        }
    )


def _receiver(webhook: str | None) -> Tree:
    """One without a destination is allowed: alerts are shown on Alertmanager's own page."""
    if webhook is None:
        return {"name": _RECEIVER}
    return {
        "name": _RECEIVER,
        "webhook_configs": [{"url": webhook, "send_resolved": True}],
    }
