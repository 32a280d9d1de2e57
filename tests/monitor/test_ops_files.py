"""The files of `ops/`: up to date, what the tools themselves call valid, filled in with a loop's addresses."""

import json
import logging
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.monitor.metric_table import PAGE, as_markdown, table_of_page
from tests.monitor.seed_queries import OPS, SEEDS, panels
from tests.monitor.stack import AMTOOL, PROMTOOL, needs_prometheus
from tests.support import cli
from upswing.errors import Misuse
from upswing.logs import IDS, JsonFormatter
from upswing.monitor.ops import yaml as our_yaml
from upswing.monitor.ops.alert_rules import alert_rules
from upswing.monitor.ops.files import ops_files, write_ops_files
from upswing.monitor.ops.loki import DAYS, LABELS, METADATA, TIME
from upswing.monitor.ops.targets import OpsLimits, OpsSetup, OpsTargets
from upswing.redact import Redactor

ROOT = Path(__file__).parents[2]
PROMISED = {
    "RL Training Overview": {
        "Trajectory Collection Rate",
        "Reward Distribution",
        "Training Job Status",
        "Trajectories Collected (24h)",
        "CPU by Process",
        "Memory by Process",
        "Disk Used",
    },
    "Model Performance": {
        "Model Reward Over Time",
        "A/B Test: Reward Difference",
        "Errors by Model Version",
        "Error Rate by Model Version",
        "User Feedback",
    },
    "Deployment Health": {
        "Canary Rollout Progress",
        "Traffic Distribution",
        "Rollback History",
        "Validation Pass Rate (7d)",
    },
}
"""Dashboard → panels that it has at least: what comes in, what it is worth, who answers, what went wrong."""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# ── what is committed ────────────────────────────────────────────────────────────────────────────


def test_what_is_committed_is_what_the_generator_makes():
    pytest.importorskip("grafana_foundation_sdk", reason="grafana-foundation-sdk is not installed")
    assert run(sys.executable, "scripts/ops", "--check") == ""


def test_the_default_form_needs_no_development_tool():
    for name, text in ops_files(OpsSetup()).items():
        assert (OPS / name).read_text() == text, f"run scripts/ops: {name} is stale"


def test_every_dashboard_is_what_grafanas_own_types_read_and_write():
    """There is no Grafana here: its own types stand in for it."""
    pytest.importorskip("grafana_foundation_sdk", reason="grafana-foundation-sdk is not installed")
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard

    register_default_plugins()
    for path in (OPS / "grafana" / "dashboards").glob("*.json"):
        tree = json.loads(path.read_text())
        again = json.loads(json.dumps(Dashboard.from_json(tree), cls=JSONEncoder))
        assert again == tree, path.name
        numbers = [panel["id"] for panel in tree["panels"]]
        assert len(set(numbers)) == len(numbers)
        assert all(each["datasource"]["uid"] == "upswing-prometheus" for each in drawn(tree))


def drawn(tree):
    return [panel for panel in tree["panels"] if panel["type"] != "row"]


def test_the_dashboards_have_every_promised_panel():
    shown = {}
    for dashboard, panel, _ in panels():
        shown.setdefault(dashboard, set()).add(panel)
    assert shown.keys() == PROMISED.keys()
    for dashboard, wanted in PROMISED.items():
        assert wanted <= shown[dashboard]
    asked = {expr for _, _, expr in panels()}
    assert SEEDS["what came in a day"] in asked
    assert SEEDS["what models earn"] in asked
    assert SEEDS["what a trajectory earns on average"] in asked


# ── the tools' own word ──────────────────────────────────────────────────────────────────────────


@needs_prometheus
@pytest.mark.parametrize("webhook", [None, "http://127.0.0.1:9/alerts"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_prometheus_and_alertmanager_take_their_files(tmp_path, webhook, scheme):
    targets = OpsTargets(
        f"{scheme}://loop.example:8100",
        ("http://a:1", "https://b", f"{scheme}://c:3"),
        (f"{scheme}://[::1]:5",),
        webhook=webhook,
    )
    write_ops_files(tmp_path, OpsSetup(targets))
    run(PROMTOOL, "check", "config", tmp_path / "prometheus/prometheus.yml")
    run(PROMTOOL, "check", "rules", *(tmp_path / "prometheus/rules").glob("*.yml"))
    run(AMTOOL, "check-config", tmp_path / "alertmanager/alertmanager.yml")


MINUTES = 60


def series(name, values, **labels):
    text = ",".join(f'{key}="{value}"' for key, value in labels.items())
    return {"series": f"{name}{{{text}}}", "values": values}


CASES = {
    "BusUnreachable": (series("upswing_bus_connected", "0x30"), 4, 6),
    "TrainingServiceUnreachable": (series("up", "0x30", job="upswing"), 0, 2),
    "GatewayUnreachable": (series("up", "0x30", job="upswing-gateway"), 0, 2),
    "ModelServerUnreachable": (series("up", "0x30", job="upswing-model-server"), 0, 2),
    "TrainingFailing": (series("upswing_training_failures_in_a_row", "2x9 3x30"), 9, 11),
    "JudgeBudgetSpent": (series("upswing_judge_budget_spent", "0x9 1x30"), 9, 11),
    "BusMayLoseMessages": (series("upswing_bus_sync_always", "1x9 0x30"), 9, 11),
    "ModelRolledBack": (
        series("agent_rl_model_deployments_total", "0x9 1x120", status="rollback"),
        9,
        11,
    ),
    "ValidationFailed": (series("upswing_validations_total", "0x9 1x120", verdict="fail"), 9, 11),
}
"""Alert → a series that makes it fire, a minute at which it does not yet, and one at which it does."""


def rule_test(name, inputs, quiet, fires):
    """A test of promtool's: this series, and whether the alert fires at these minutes."""
    rule = {each.name: each for each in alert_rules(OpsLimits())}[name]
    labels = {"severity": rule.kind.severity, "service": "upswing"}
    seen = {"exp_labels": labels | fires[1]} if fires else {}
    cases = [{"eval_time": f"{each}m", "alertname": name, "exp_alerts": []} for each in quiet]
    if fires:
        cases.append({"eval_time": f"{fires[0]}m", "alertname": name, "exp_alerts": [seen]})
    return {"interval": "1m", "input_series": inputs, "alert_rule_test": cases}


def check_rules(tmp_path, *tests):
    """promtool compares annotations too: they are left out of what it reads."""
    rules = our_yaml_of(OPS / "prometheus/rules/alerts.yml")
    for rule in rules["groups"][0]["rules"]:
        del rule["annotations"]
    (tmp_path / "alerts.yml").write_text(our_yaml.dump(rules))
    (tmp_path / "recording.yml").write_text((OPS / "prometheus/rules/recording.yml").read_text())
    tree = {
        "rule_files": ["alerts.yml", "recording.yml"],
        "evaluation_interval": "1m",
        "group_eval_order": ["upswing-recording", "upswing-alerts"],
        "tests": list(tests),
    }
    (tmp_path / "tests.yml").write_text(our_yaml.dump(tree))
    run(PROMTOOL, "test", "rules", tmp_path / "tests.yml")


def our_yaml_of(path):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    return yaml.safe_load(path.read_text())


@needs_prometheus
@pytest.mark.parametrize("name", CASES)
def test_an_alert_waits_as_long_as_it_says(tmp_path, name):
    given, quiet, fires = CASES[name]
    labels = dict(
        pair.replace('"', "").split("=")
        for pair in given["series"].partition("{")[2].rstrip("}").split(",")
        if pair
    )
    check_rules(tmp_path, rule_test(name, [given], [quiet], (fires, labels)))


@needs_prometheus
def test_an_event_is_an_alert_for_an_hour_and_a_restart_is_none(tmp_path):
    name = "ModelRolledBack"
    once = series("agent_rl_model_deployments_total", "0x9 1x120", status="rollback")
    again = series("agent_rl_model_deployments_total", "5x9 0x120", status="rollback")
    check_rules(
        tmp_path,
        rule_test(name, [once], [9, 75], (40, {"status": "rollback"})),
        rule_test(name, [again], [5, 15, 60], None),
    )


@needs_prometheus
def test_a_tenth_of_the_messages_is_no_alert_and_more_of_many_is(tmp_path):
    taken = series("upswing_messages_total", "0+90x60", door="http", outcome="stored")
    refused = series("upswing_refused_total", "0+{}x60", door="http", reason="schema")

    def of(count):
        return [taken, refused | {"values": refused["values"].replace("{}", str(count))}]

    few = [
        taken | {"values": "0x60"},
        refused | {"values": "0x5 1x55"},
    ]
    name = "CollectionErrors"
    check_rules(
        tmp_path,
        rule_test(name, of(9), [20, 50], None),
        rule_test(name, of(12), [0], (20, {})),
        rule_test(name, few, [6, 8, 12, 30], None),
    )


@needs_prometheus
def test_a_disk_is_nearly_full_by_the_loops_own_measure(tmp_path):
    def disk(free, size):
        return [
            series("upswing_disk_free_bytes", f"{free}x20", disk="data"),
            series("upswing_disk_size_bytes", f"{size}x20", disk="data"),
        ]

    gigabyte = 1000**3
    name, labels = "DiskNearlyFull", {"disk": "data"}
    check_rules(
        tmp_path,
        rule_test(name, disk(20 * gigabyte, 4000 * gigabyte), [10], None),
        rule_test(name, disk(9 * gigabyte, 4000 * gigabyte), [0], (10, labels)),
        rule_test(name, disk(9 * gigabyte, 80 * gigabyte), [10], None),
        rule_test(name, disk(gigabyte // 20, gigabyte // 5), [0], (10, labels)),
    )


@needs_prometheus
def test_a_drift_fires_above_its_own_limit_and_not_while_a_model_is_rolled_out(tmp_path):
    def drop(value):
        return [
            series("upswing_reward_drop", f"{value}x20", model_version="m"),
            series("upswing_reward_drop_limit", "0.1x20", model_version="m"),
        ]

    name, rolled_out = "RewardDrift", series("upswing_canary_steps", "4x20", model_version="new")
    check_rules(
        tmp_path,
        rule_test(name, drop(0.09), [10], None),
        rule_test(name, drop(0.1), [0], (10, {"model_version": "m"})),
        rule_test(name, [*drop(0.3), rolled_out], [10], None),
    )


@needs_prometheus
def test_a_mean_reward_leaves_out_the_time_in_which_nothing_came(tmp_path):
    inputs = [
        series("agent_rl_trajectory_reward_sum", "0+5x10 50x60"),
        series("agent_rl_trajectory_reward_count", "0+10x10 100x60"),
    ]
    expr = "avg_over_time(agent_rl_trajectory_reward[1h])"
    mean = {
        "expr": expr,
        "eval_time": "50m",
        "exp_samples": [{"labels": "{}", "value": 0.5}],
    }
    check_rules(tmp_path, {"interval": "1m", "input_series": inputs, "promql_expr_test": [mean]})


# ── YAML, and where it is written ────────────────────────────────────────────────────────────────

_texts = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=12)
_lines = st.lists(_texts | _texts.map("  {}".format), max_size=4).map("\n".join)
_scalars = _texts | _lines | st.integers() | st.booleans() | st.sampled_from(["no", "5m", "~", "#"])
_trees = st.recursive(
    _scalars, lambda each: st.lists(each, max_size=3) | st.dictionaries(_texts, each, max_size=3)
)


@given(st.dictionaries(_texts, _trees, max_size=3))
def test_what_is_written_as_yaml_is_read_as_it_was(tree):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    assert yaml.safe_load(our_yaml.dump(tree)) == tree


def test_a_folder_is_filled_in_and_nothing_that_differs_is_lost(tmp_path):
    setup = OpsSetup(OpsTargets("http://10.0.0.1:8100", webhook="https://hooks.example/x"))
    written = write_ops_files(tmp_path / "ops", setup, overwrite=False)
    assert {str(path.relative_to(tmp_path / "ops")) for path in written} == ops_files(setup).keys()
    assert "10.0.0.1:8100" in (tmp_path / "ops/prometheus/prometheus.yml").read_text()
    assert "https://hooks.example/x" in (tmp_path / "ops/alertmanager/alertmanager.yml").read_text()
    provider = (tmp_path / "ops/grafana/provisioning/dashboards/upswing.yml").read_text()
    assert str(tmp_path / "ops/grafana/dashboards") in provider
    write_ops_files(tmp_path / "ops", setup, overwrite=False)
    mine = tmp_path / "ops/prometheus/rules/alerts.yml"
    mine.write_text("groups: []\n")
    with pytest.raises(Misuse, match=r"alerts.yml is there already and differs.*--force"):
        write_ops_files(tmp_path / "ops", setup, overwrite=False)
    assert mine.read_text() == "groups: []\n"
    write_ops_files(tmp_path / "ops", setup)
    assert "TrainingFailing" in mine.read_text()


def test_the_collector_reads_what_the_log_writes():
    ids = dict.fromkeys(IDS, "x")
    record = logging.makeLogRecord({"msg": "m", "name": "n", "levelno": 20, "action": "a", **ids})
    written = json.loads(JsonFormatter(Redactor(), "main").format(record))
    assert {TIME, *LABELS, *METADATA} <= written.keys()
    assert datetime.fromisoformat(written[TIME]).tzinfo is not None


def test_logs_are_kept_for_thirty_days():
    assert f"retention_period: {24 * DAYS}h" in (OPS / "loki/loki.yml").read_text()
    assert DAYS == 30


# ── the command ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.live
async def test_the_command_writes_the_addresses_of_the_loop_that_runs(loop, data, tmp_path):
    import asyncio

    done = await asyncio.to_thread(
        cli, "ops", str(tmp_path / "o"), "--gateway", "https://gw.example", "--json", data=data
    )
    assert len(msgspec.json.decode(done.stdout)["files"]) == len(ops_files(OpsSetup()))
    text = (tmp_path / "o/prometheus/prometheus.yml").read_text()
    assert loop.running.http_url.removeprefix("http://") in text
    assert "gw.example:443" in text
    assert "upswing-model-server" not in text, "this loop serves no model"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "No loop is running in"),
        (("--loop", "localhost:8100"), "localhost:8100 is no address such as"),
        (("--loop", "http://a:1", "--gateway", "http://b:x"), "http://b:x is no address such as"),
        (("--loop", "http://a:1", "--webhook", "hooks"), "hooks is no address such as"),
    ],
)
def test_an_address_that_is_none_is_refused_before_anything_is_written(tmp_path, options, sentence):
    done = cli("ops", str(tmp_path / "o"), *options, data=tmp_path / "data", check=False)
    assert done.returncode == 1
    assert sentence in done.stderr.decode()
    assert not (tmp_path / "o").exists()


def test_a_loop_elsewhere_is_named_by_its_address(tmp_path):
    told = ("--loop", "http://a:1", "--model-server", "http://b:2", "--logs", "/logs/x.log")
    done = cli("ops", str(tmp_path / "o"), *told, data=tmp_path / "data")
    assert b"prometheus --config.file=" in done.stdout
    assert "'b:2'" in (tmp_path / "o/prometheus/prometheus.yml").read_text()
    assert '"/logs/x.log"' in (tmp_path / "o/loki/config.alloy").read_text()


# ── the page ─────────────────────────────────────────────────────────────────────────────────────


def test_the_page_has_every_series_as_the_code_has_it():
    assert table_of_page() == as_markdown()


def test_the_page_has_every_alert_and_its_runbook_is_there():
    text = PAGE.read_text()
    for rule in alert_rules(OpsLimits()):
        page, _, anchor = rule.runbook.partition("#")
        row = f"| [{rule.name}]({Path(page).name}#{anchor}) | {rule.kind.severity} | "
        assert row in text, row
        headings = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(), re.MULTILINE)
        assert rule.name in headings, f"{page} has no section on {rule.name}"


# ── whose files, and whose words ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("overwrite", [True, False])
@pytest.mark.parametrize("name", sorted(ops_files(OpsSetup())))
def test_nothing_is_written_through_a_link_and_nothing_at_all_then(tmp_path, name, overwrite):
    """A file or a folder on the way to it, whether or not there is anything behind it: whose it is, nobody knows."""

    def files():
        whole = (each for each in tmp_path.rglob("*") if not each.is_symlink())
        return {str(each): each.read_text() for each in whole if each.is_file()}

    for number, linked in enumerate((name, name.partition("/")[0])):
        for there in (True, False):
            folder, elsewhere = tmp_path / f"{number}-{there}", tmp_path / f"else-{number}-{there}"
            if there and linked == name:
                elsewhere.write_text("theirs")
            elif there:
                elsewhere.mkdir()
            (folder / linked).parent.mkdir(parents=True)
            (folder / linked).symlink_to(elsewhere)
            before = files()
            with pytest.raises(Misuse):
                write_ops_files(folder, OpsSetup(), overwrite=overwrite)
            assert files() == before


def test_a_folder_in_the_place_of_a_file_and_a_file_in_that_of_a_folder_are_named(tmp_path):
    (tmp_path / "a/loki/loki.yml").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b/grafana").write_text("")
    for folder, named in (("a", "loki.yml"), ("b", "grafana")):
        with pytest.raises(Misuse, match=named):
            write_ops_files(tmp_path / folder, OpsSetup(), overwrite=True)
    assert sum(each.is_file() for each in tmp_path.rglob("*")) == 1


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.text(st.characters() | st.sampled_from("\r\n: '-\x85\u2028#"), max_size=12),
    )
)
def test_no_text_becomes_anything_else_in_yaml(tree):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    sound = {k: v for k, v in tree.items() if not re.search("[\ud800-\udfff]", k + v)}
    assert yaml.safe_load(our_yaml.dump({"x": sound})) == {"x": sound or {}}
