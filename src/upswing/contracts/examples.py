"""What does each message look like? One small, true example, shown in the schemas and tested."""

from __future__ import annotations

from typing import Any

from upswing.contracts.dead import DeadLetter
from upswing.contracts.feedback import Feedback
from upswing.contracts.model import ModelDeployed
from upswing.contracts.notices import AlertNotice, ReportNotice
from upswing.contracts.reward import Reward
from upswing.contracts.training import TrainingRequest, TrainingStatus
from upswing.contracts.trajectory import Trajectory
from upswing.contracts.wire import Message

_TRAJECTORY_ID = "0d4c7a52-7f2e-4c39-9a4e-6f8d2f0b8a11"
_JOB_ID = "manual-7f1de3c6-54a1-4f0e-8f5e-2a7c9f0e6b1d"

EXAMPLES: dict[type[Message], dict[str, Any]] = {
    Trajectory: {
        "trajectory_id": _TRAJECTORY_ID,
        "session_id": "session-7",
        "agent_id": "agent-zero",
        "subordinate_profile": "developer",
        "start_timestamp": "2025-12-08T13:00:00Z",
        "end_timestamp": "2025-12-08T13:00:42Z",
        "turns": [
            {
                "turn_id": 1,
                "timestamp": "2025-12-08T13:00:01Z",
                "observation": {
                    "type": "user_message",
                    "content": "Implement binary search in Python.",
                    "context": {"available_tools": ["python", "search"]},
                },
                "thought_process": ["A loop over two bounds is enough."],
                "action": {
                    "type": "tool_call",
                    "tool_name": "python",
                    "tool_args": {"code": "def search(items, x): ..."},
                    "raw_response": "I will write it and run the tests.",
                },
                "result": {
                    "success": True,
                    "output": "4 passed",
                    "error": None,
                    "execution_time_ms": 180,
                },
            }
        ],
        "task_context": {
            "task_id": "task-1",
            "instructions": "Implement binary search in Python.",
            "complexity_score": 0.3,
            "domain": "coding",
        },
        "metadata": {
            "model": "qwen2.5-32b-instruct",
            "temperature": 0.7,
            "total_tokens": 812,
            "total_cost_usd": 0.002,
            "user_id": "user-4",
        },
    },
    Reward: {
        "reward_id": "4f7b7a70-4a0f-4d49-8b7e-8b8f1e6a2f10",
        "trajectory_id": _TRAJECTORY_ID,
        "session_id": "session-7",
        "timestamp": "2025-12-08T13:00:43Z",
        "reward_components": {
            "task_completion": {
                "score": 1.0,
                "weight": 0.47,
                "source": "automated",
                "reasoning": "The agent reports the task as completed.",
            },
            "efficiency": {"score": 0.85, "weight": 0.24, "source": "automated"},
            "user_feedback": {"score": 0.5, "weight": 0.29, "source": "human"},
        },
        "total_reward": 0.82,
        "reward_type": "dense",
        "normalization": {"method": "none"},
        "metadata": {
            "evaluator": "upswing",
            "evaluation_method": "automated",
            "confidence": 0.9,
            "revision": 1,
            "raw_total": 0.82,
        },
    },
    TrainingRequest: {
        "training_job_id": _JOB_ID,
        "timestamp": "2025-12-08T13:00:00Z",
        "requester": "admin-manual",
        "trigger_reason": "manual",
        "training_config": {
            "algorithm": "ppo",
            "base_model": "qwen2.5-32b-instruct",
            "dataset": {
                "source": "nats_stream",
                "stream_name": "RL_TRAJECTORIES",
                "sample_size": 5000,
            },
            "hyperparameters": {"learning_rate": 1e-05, "batch_size": 32, "epochs": 3},
        },
    },
    TrainingStatus: {
        "training_job_id": _JOB_ID,
        "timestamp": "2025-12-08T14:00:00Z",
        "status": "running",
        "progress": {
            "current_epoch": 1,
            "total_epochs": 3,
            "current_step": 120,
            "total_steps": 450,
            "percent_complete": 26.7,
            "eta_seconds": 9000,
        },
        "metrics": {"current": {"loss": 0.41, "reward_mean": 0.63, "kl_divergence": 0.02}},
    },
    ModelDeployed: {
        "deployment_id": "deploy-12",
        "training_job_id": _JOB_ID,
        "timestamp": "2025-12-08T18:00:00Z",
        "model_info": {
            "model_id": "agent-zero-rl-v2.4",
            "base_model": "qwen2.5-32b-instruct",
            "checkpoint_path": "s3://models/rl-checkpoints/v2.4",
            "training_samples": 5000,
            "final_reward": 0.83,
        },
        "deployment_config": {
            "serving_platform": "vllm",
            "endpoint": "http://127.0.0.1:8000/v1",
            "model_name": "agent-zero-rl-v2.4",
            "rollout_strategy": "canary",
            "traffic_percentage": 10,
        },
        "validation_results": {
            "benchmark_passed": True,
            "safety_checks_passed": True,
            "performance_regression": False,
        },
        "metadata": {"event": "deployed", "approval_status": "automated"},
    },
    Feedback: {
        "feedback_id": "feedback-31",
        "timestamp": "2025-12-09T08:12:00Z",
        "trajectory_id": _TRAJECTORY_ID,
        "user_id": "user-4",
        "type": "rating",
        "rating": 4,
        "source": "web",
    },
    DeadLetter: {
        "dead_id": "b9c0f6f4-6a47-4f5e-a5f0-5d5e1d7c3c22",
        "timestamp": "2025-12-08T13:00:44Z",
        "subject": "agent.rl.trajectory.v1",
        "reason": "schema",
        "detail": "Object missing required field `turns`.",
        "deliveries": 1,
        "payload": '{"trajectory_id": "…"}',
    },
    AlertNotice: {
        "alert_id": "6f0b6c1e-9f0a-4f7e-8a53-0a52f3f6c9d4",
        "timestamp": "2025-12-08T19:05:00Z",
        "name": "ModelRolledBack",
        "severity": "urgent",
        "state": "firing",
        "summary": "agent-zero-rl-v2.4 was rolled back: 8 % of its requests failed, 5 % may.",
        "labels": {"model": "agent-zero-rl-v2.4"},
        "evidence": {"reason": "high_error_rate"},
        "runbook": "docs/alerts-and-reports.md#modelrolledback",
    },
    ReportNotice: {
        "report_id": "daily-2025-12-09",
        "timestamp": "2025-12-09T08:00:00Z",
        "kind": "daily",
        "period": {"start": "2025-12-08T08:00:00Z", "end": "2025-12-09T08:00:00Z"},
        "figures": {"trajectories": 1204},
        "text": "# Daily summary, 9 December 2025\n\nTrajectories collected: 1,204\n",
    },
}
