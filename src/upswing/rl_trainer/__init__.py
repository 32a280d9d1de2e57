"""What does an RL trainer do by hand? The helper functions of its profile, each a thin layer over the real part.

| function                | does                                                                | over                    |
|-------------------------|---------------------------------------------------------------------|-------------------------|
| `subscribe_nats`        | messages of a subject, acknowledged one by one                      | JetStream               |
| `publish_nats`          | a message, checked, redacted and durable                            | JetStream               |
| `validate_trajectory`   | is it a trajectory?                                                 | `contracts`             |
| `redact_sensitive_info` | what must not be stored becomes placeholders                        | `redact`                |
| `compute_reward`        | what a trajectory is worth, beside those before it                  | `reward.core`           |
| `download_checkpoint`   | a checkpoint from a folder or S3, verified                          | `train.checkpoints`     |
| `run_benchmarks`        | a model plays suites against the one that answers                   | the loop's validations  |
| `deploy_to_tensorzero`  | a checkpoint becomes a candidate: validated, then rolled out        | the loop's controller   |

The loop does all of this by itself, all the time; these are for looking, for trials and for other trainers. They block, and
they raise `upswing.errors`: a sentence with what to do. Where the loop is, they find as the recorder does: `AGENTGYM_RL_URL` with
`AGENTGYM_RL_API_KEY`, `NATS_URL`, or the loop of `UPSWING_DATA`.
"""

from upswing.rl_trainer.bus import NatsSubscription, publish_nats, subscribe_nats
from upswing.rl_trainer.messages import (
    REWARD_WEIGHTS,
    compute_reward,
    redact_sensitive_info,
    validate_trajectory,
)
from upswing.rl_trainer.models import deploy_to_tensorzero, download_checkpoint, run_benchmarks

__all__ = [
    "REWARD_WEIGHTS",
    "NatsSubscription",
    "compute_reward",
    "deploy_to_tensorzero",
    "download_checkpoint",
    "publish_nats",
    "redact_sensitive_info",
    "run_benchmarks",
    "subscribe_nats",
    "validate_trajectory",
]
