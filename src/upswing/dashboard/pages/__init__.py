"""Which page is where? Each is a function that draws it; what it shows comes from panels that load."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from upswing.dashboard.pages.backtest import backtest_page
from upswing.dashboard.pages.compare import compare_page
from upswing.dashboard.pages.decision import decision_page, decisions_page
from upswing.dashboard.pages.job import job_page
from upswing.dashboard.pages.jobs import jobs_page
from upswing.dashboard.pages.keys import keys_page
from upswing.dashboard.pages.model import model_page
from upswing.dashboard.pages.models import models_page
from upswing.dashboard.pages.overview import overview_page
from upswing.dashboard.pages.rollouts import rollout_page, rollouts_page
from upswing.dashboard.pages.settings import settings_page
from upswing.dashboard.pages.trajectories import trajectories_page
from upswing.dashboard.pages.trajectory import trajectory_page
from upswing.dashboard.pages.users import users_page
from upswing.dashboard.pages.validation import validation_page
from upswing.dashboard.pages.watching import alerts_page, report_page, reports_page

ROUTES: dict[str, Callable[..., Any]] = {
    "/": overview_page,
    "/trajectories": trajectories_page,
    "/trajectories/{trajectory_id}": trajectory_page,
    "/models": models_page,
    "/model": model_page,
    "/compare": compare_page,
    "/validations/{validation_id}": validation_page,
    "/rollouts": rollouts_page,
    "/rollouts/{rollout_id}": rollout_page,
    "/backtest": backtest_page,
    "/decisions": decisions_page,
    "/decisions/{decision_id}": decision_page,
    "/jobs": jobs_page,
    "/jobs/{job_id}": job_page,
    "/alerts": alerts_page,
    "/reports": reports_page,
    "/reports/{report_id}": report_page,
    "/keys": keys_page,
    "/users": users_page,
    "/settings": settings_page,
}
