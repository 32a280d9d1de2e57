"""What does each field mean to whoever writes a producer in another language? Type, field, sentence.

Fields that say it where they are declared are not repeated here.
"""

from __future__ import annotations

DESCRIPTIONS: dict[str, dict[str, str]] = {
    "Trajectory": {
        "session_id": "The session that it is part of.",
        "agent_id": "Who acted.",
        "subordinate_profile": "Which profile the agent had, where it was another agent's helper.",
        "turns": "All steps, in their order.",
        "task_context": "What was asked.",
        "metadata": "With which model, at what price, and how it went.",
    },
    "Turn": {
        "observation": "What the agent saw.",
        "thought_process": "What it thought, one thought each.",
        "action": "What it did about it.",
        "result": "What came of it.",
    },
    "Observation": {
        "type": "From whom it came.",
        "context": "What the agent had at hand.",
    },
    "Context": {
        "memory_state": "What it remembered.",
        "available_tools": "The names of the tools that it could call.",
        "subordinates_active": "How many helpers were at work.",
    },
    "Action": {
        "type": "What kind of step it was.",
        "tool_name": "The tool or helper that was called.",
        "tool_args": "What it was called with.",
    },
    "Result": {
        "success": "Whether the step worked.",
        "output": "What came back.",
        "error": "What went wrong, where something did.",
        "execution_time_ms": "How long it took, in milliseconds.",
    },
    "TaskContext": {
        "task_id": "The task; attempts at the same one are compared.",
        "instructions": "What the user asked for.",
        "complexity_score": "How hard it is, from 0 to 1.",
        "domain": "What kind of task it is; left out, it is found from the instructions.",
    },
    "TrajectoryMetadata": {
        "model": "Which model answered.",
        "temperature": "At which temperature it sampled.",
        "total_tokens": "Tokens of all its requests and answers.",
        "total_cost_usd": "What they cost, in US dollars.",
    },
    "Reward": {
        "session_id": "The session of its trajectory.",
        "total_reward": "The weighted sum of the normalised scores.",
        "reward_type": "`dense`: from many views of the work; `sparse`: from its end alone.",
        "normalization": "What the raw total was compared with.",
        "metadata": "Who judged and how, and which revision it is.",
    },
    "Component": {
        "weight": "How much it counts; the weights of a reward sum to 1.",
        "reasoning": "Why, in a sentence.",
        "raw_data": "The evidence, the normalised score and what it was compared with.",
    },
    "Normalization": {
        "method": "How scores were compared with those before them.",
        "mean": "The mean of the history.",
        "std": "Its standard deviation.",
        "min": "The least of it.",
        "max": "The greatest of it.",
    },
    "RewardMetadata": {
        "evaluator": "Who made the reward.",
        "evaluation_method": "Whether rules, people, both or a model judged.",
        "confidence": "How sure it is, from 0 to 1.",
    },
    "TrainingRequest": {
        "requester": "Which part or person asks.",
        "trigger_reason": "Why it is time to train.",
        "priority": "Which job goes first, where several wait.",
        "training_config": "The recipe.",
        "evaluation": "How the result is measured.",
        "metadata": "Who asked, and after which job.",
    },
    "TrainingConfig": {
        "algorithm": "How it learns.",
        "base_model": "The model that it starts from.",
        "dataset": "What it learns from.",
        "hyperparameters": "How the algorithm steps.",
        "compute": "On what it runs.",
        "checkpointing": "How often it saves, and where.",
    },
    "Dataset": {
        "source": "Where the trajectories come from.",
        "stream_name": "The stream, where the source is one.",
        "sample_size": "How many trajectories at most.",
        "filter": "Which of them take part.",
    },
    "DatasetFilter": {
        "max_trajectory_length": "Longer ones are left out, in turns.",
        "date_range": "Those that ended in this time.",
        "task_domains": "Those of these domains.",
        "exclude_subordinate_profiles": "Not those of helpers with these profiles.",
    },
    "DateRange": {
        "start": "The first moment that counts.",
        "end": "The last one.",
    },
    "Hyperparameters": {
        "learning_rate": "The step of the optimiser.",
        "batch_size": "Samples of one step.",
        "epochs": "How often the data is gone through.",
        "clip_epsilon": "How far the policy may move in one step: PPO's clipping.",
        "gamma": "What a later reward is worth, per turn.",
        "gae_lambda": "How far advantages look ahead: GAE's lambda.",
    },
    "Compute": {
        "gpu_count": "How many GPUs.",
        "gpu_type": "Which.",
        "distributed": "Whether several processes train together.",
        "mixed_precision": "The number format of the training.",
    },
    "Checkpointing": {
        "save_interval": "Steps between two checkpoints.",
        "max_checkpoints": "How many are kept.",
        "storage_path": "Where.",
    },
    "Evaluation": {
        "enabled": "Whether the result is measured.",
        "holdout_size": "The share of the data that is kept for it.",
        "metrics": "What is measured.",
        "benchmark_tasks": "Tasks that are played for it.",
    },
    "RequestMetadata": {
        "requested_by": "The person or agent that asked.",
        "previous_training_job": "The job that it goes on from.",
        "notes": "Whatever else is worth knowing.",
    },
    "TrainingStatus": {
        "status": "Where the job stands.",
        "progress": "How far it is.",
        "metrics": "How it learns.",
        "evaluation_results": "What the held-out data and the benchmarks say.",
        "artifacts": "What it left behind.",
        "resource_usage": "What it cost.",
        "error": "Why it failed.",
        "metadata": "On what platform it ran.",
    },
    "Progress": {
        "current_epoch": "The epoch that it is at.",
        "total_epochs": "Of how many.",
        "current_step": "The step that it is at.",
        "total_steps": "Of how many.",
        "percent_complete": "How much of it is done, in percent.",
        "eta_seconds": "How long the rest takes, in seconds.",
    },
    "Metrics": {
        "current": "How it learns now.",
        "best": "How it learned at its best.",
    },
    "CurrentMetrics": {
        "loss": "The loss of the last step.",
        "reward_mean": "The mean reward of its data.",
        "reward_std": "The standard deviation of that.",
        "policy_entropy": "How undecided the policy is, in nats per token.",
        "kl_divergence": "How far it has moved from where it started, in nats per token.",
        "learning_rate": "The step of the optimiser now.",
    },
    "BestMetrics": {
        "epoch": "In which epoch.",
        "step": "At which step.",
        "reward_mean": "The mean reward then.",
        "checkpoint_path": "What was saved then.",
    },
    "EvaluationResults": {
        "holdout_reward": "The reward on data that it did not learn from.",
        "benchmark_scores": "Benchmark to score.",
        "improvement_over_baseline": "How much better it is than the model that it started from.",
    },
    "Artifacts": {
        "final_checkpoint": "The weights.",
        "tensorboard_logs": "Logs for TensorBoard.",
        "training_curves": "The metrics of every step.",
        "model_card": "What the model is and what it was made from.",
    },
    "ResourceUsage": {
        "gpu_hours": "Hours of GPUs.",
        "cost_usd": "US dollars.",
        "peak_memory_gb": "The most memory that it had, in gigabytes.",
        "total_training_time_seconds": "How long it took, in seconds.",
    },
    "JobError": {
        "code": "The kind of failure.",
        "message": "What happened, in a sentence.",
        "traceback": "Where, redacted.",
    },
    "StatusMetadata": {
        "training_platform": "What trained.",
        "cuda_version": "With which CUDA.",
        "pytorch_version": "With which PyTorch.",
    },
    "ModelDeployed": {
        "deployment_id": "The rollout.",
        "model_info": "Which weights.",
        "deployment_config": "Where they serve, and to how much of the traffic.",
        "validation_results": "Why they may.",
        "metadata": "Who shipped it, and what happened.",
    },
    "ModelInfo": {
        "model_id": "The model's name.",
        "base_model": "The model that it was trained from.",
        "checkpoint_path": "Where its weights are.",
        "training_samples": "How many samples it learned from.",
        "final_reward": "The mean reward at the end of its training.",
    },
    "DeploymentConfig": {
        "serving_platform": "What serves it.",
        "model_name": "What it is called there.",
        "rollout_strategy": "How it gets its traffic.",
        "traffic_percentage": "How much it has now, in percent.",
        "ramp_schedule": "How much it gets, and when.",
    },
    "RampStep": {"percentage": "The share from then on, in percent."},
    "ValidationResults": {
        "benchmark_passed": "It is able enough.",
        "safety_checks_passed": "It does no harm that was looked for.",
        "performance_regression": "It is worse than the model before it.",
        "human_eval_score": "What people say of it, from 0 to 1.",
        "benchmark_scores": "Benchmark to score.",
    },
    "DeploymentMetadata": {
        "deployed_by": "The person or part that shipped it.",
        "approval_status": "Who agreed to it.",
        "previous_model": "The model that answered before.",
    },
    "Feedback": {
        "feedback_id": "Its id: the same one again changes nothing.",
        "episode_id": "The episode that it speaks of.",
        "inference_id": "The answer that it speaks of.",
        "user_id": "Who speaks; left out, it is the user of the work.",
        "type": "What is said.",
        "rating": "Stars, for the type `rating`.",
        "comment": "Text, for the types `comment` and `demonstration`.",
        "source": "Where it was said.",
        "metadata": "Whatever else is worth knowing.",
    },
    "DeadLetter": {"deliveries": "How often it was delivered before it was given up."},
    "AlertNotice": {
        "name": "What kind of trouble it is.",
        "severity": "How soon a person should look: `urgent` is now.",
        "state": "Whether it holds, was seen by somebody, or is over.",
        "labels": "Which model, job or part it is about.",
        "evidence": "The figures that it rests on.",
        "runbook": "Where it says what to do.",
    },
    "ReportNotice": {
        "kind": "What it is about.",
        "period": "From when to when; a job's report has the job's own.",
        "figures": "The figures in it, for programs.",
    },
    "ReportPeriod": {"start": "Its first moment.", "end": "The first moment after it."},
}


def add_field_descriptions(name: str, part: dict[str, object]) -> dict[str, object]:
    """The schema of the type `name` with a sentence for each field that has none."""
    fields = part.get("properties")
    if not isinstance(fields, dict):
        return part
    told = DESCRIPTIONS.get(name, {})
    said = {
        key: {"description": told[key], **value} if key in told else value
        for key, value in fields.items()
    }
    return {**part, "properties": said}
