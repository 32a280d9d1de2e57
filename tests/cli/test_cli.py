"""The command line as a person meets it."""

import errno
import json
import socket
import subprocess
import sys

import pytest
from tests.support import cli, raw, trajectory

from upswing.app.loop import now
from upswing.cli import main
from upswing.contracts.steps import format_time, row_from_trajectory

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """One loop for the commands that need one."""
    from tests.support import Process

    process = Process.start(tmp_path_factory.mktemp("cli") / "data")
    process.until_ready()
    yield process
    assert process.stop() == 0, process.log.read_text()
    process.destroy()


def told(done):
    return json.loads(done.stdout)


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from upswing.cli import parser; parser().format_help(); "
        "print([m for m in ('msgspec', 'nats', 'uvicorn', 'hyperscan', 'asyncio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_info_says_how_to_reach_the_loop(running):
    info = told(cli("info", "--json", "--show-secrets", data=running.data, process=True))
    assert set(info) >= {"nats_url", "http_url", "gateway_url", "key", "data"}
    assert info["nats_url"].startswith("nats://operator:")
    assert "http_url" in cli("info", data=running.data).stdout.decode()


def test_no_key_is_printed_where_others_may_read_it(running):
    secrets = json.loads((running.data / "secrets.json").read_text())
    said = running.log.read_text()
    said += cli("info", data=running.data).stdout.decode()
    said += cli("info", "--json", data=running.data).stdout.decode()
    assert "--show-secrets" in said
    assert [name for name, value in secrets.items() if value in said] == []
    assert secrets["key"] in cli("info", "--show-secrets", data=running.data).stdout.decode()


def test_files_with_secrets_are_for_their_owner_only(running):
    for name in ("secrets.json", "running.json", "nats/nats.conf"):
        assert (running.data / name).stat().st_mode & 0o077 == 0
    assert running.data.stat().st_mode & 0o077 == 0


def test_import_and_export_keep_every_trajectory(running, tmp_path):
    documents = [trajectory() for _ in range(3)]
    table = row_from_trajectory(trajectory(), created_at=now())
    file = tmp_path / "in.jsonl"
    file.write_bytes(b"\n".join([*map(raw, documents), raw(table)]) + b"\n\n")
    before = told(cli("status", "--json", data=running.data))["trajectories"]
    assert told(cli("import", "--json", str(file), data=running.data)) == {"stored": 4}
    assert told(cli("import", "--json", str(file), data=running.data)) == {"known": 4}
    assert told(cli("status", "--json", data=running.data))["trajectories"] == before + 4
    exported = cli("export", data=running.data).stdout
    ids = {json.loads(line)["trajectory_id"] for line in exported.splitlines()}
    assert ids >= {document["trajectory_id"] for document in documents} | {table["id"]}
    again = cli("import", "--json", "-", data=running.data, stdin=exported, process=True)
    assert set(told(again)) == {"known"}


def test_the_table_layout_goes_out_and_comes_in_again(running, tmp_path):
    document = trajectory(metadata={"environment": {"pnl": 12.5, "balance": 1000}})
    cli("import", "-", data=running.data, stdin=raw(document))
    rows = [
        json.loads(line)
        for line in cli("export", "--layout", "table", data=running.data).stdout.splitlines()
    ]
    (row,) = [row for row in rows if row["trajectoryId"] == document["trajectory_id"]]
    assert row["finalPnL"] == 12.5
    assert "stepsJson" in row
    assert told(cli("import", "--json", "-", data=running.data, stdin=raw(row))) == {"known": 1}


def test_import_says_which_line_was_wrong_and_goes_on(running, tmp_path):
    file = tmp_path / "in.jsonl"
    file.write_bytes(b"\n".join([raw(trajectory()), b"{bad", raw(trajectory())]))
    done = cli("import", "--json", str(file), data=running.data, check=False)
    assert done.returncode == 1
    assert told(done) == {"stored": 2, "malformed": 1}
    assert b"in.jsonl:2: malformed" in done.stderr


def test_dead_letters_are_listed_shown_and_replayed(running):
    document = trajectory()
    cli("import", "-", data=running.data, stdin=raw(document))
    cli("import", "-", data=running.data, stdin=raw(document | {"agent_id": "x"}), check=False)
    (letter,) = [
        each
        for each in told(cli("dead", "--json", "--reason", "conflict", data=running.data))
        if document["trajectory_id"] in each["detail"]
    ]
    assert letter["dead_id"] in cli("dead", "list", data=running.data).stdout.decode()
    shown = told(cli("dead", "show", letter["dead_id"], "--json", data=running.data))
    assert json.loads(shown["letter"]["payload"])["agent_id"] == "x"
    refused = cli("dead", "replay", letter["dead_id"], data=running.data, check=False)
    assert refused.returncode == 1
    assert b"known with other content" in refused.stderr


def test_keys_are_made_listed_and_revoked(running):
    made = told(cli("keys", "add", "trader", "--scope", "agent", "--json", data=running.data))
    assert made["key"].startswith("up_")
    listed = told(cli("keys", "--json", data=running.data))
    assert made["key"] not in json.dumps(listed)
    cli("keys", "revoke", made["key_id"], data=running.data)
    (key,) = [
        key
        for key in told(cli("keys", "--json", data=running.data))
        if key["key_id"] == made["key_id"]
    ]
    assert key["revoked"]
    again = cli("keys", "revoke", made["key_id"], data=running.data, check=False)
    assert again.returncode == 1


def test_a_user_opts_out_and_in_and_is_erased(running):
    assert told(cli("optout", "bob@example.org", "--json", data=running.data))["opted_out"]
    document = trajectory(metadata={"user_id": "bob@example.org"})
    assert told(cli("import", "--json", "-", data=running.data, stdin=raw(document))) == {
        "opted_out": 1
    }
    assert not told(cli("optin", "bob@example.org", "--json", data=running.data))["opted_out"]
    assert told(cli("import", "--json", "-", data=running.data, stdin=raw(document))) == {
        "stored": 1
    }
    assert told(cli("erase", "bob@example.org", "--json", data=running.data))["trajectories"] == 1


def test_redact_is_a_filter(data):
    done = cli("redact", "--explain", data=data, stdin=b"mail bob@example.org\nsum 4\n")
    assert done.stdout == b"mail <email-1>\nsum 4\n"
    assert b"email" in done.stderr
    assert b"bob@" not in done.stderr


def test_a_rule_of_ones_own_is_used(data):
    data.mkdir()
    (data / "upswing.toml").write_text(
        '[[redact.rules]]\nname = "badge"\npattern = "ACME-[0-9]{6}"\n'
    )
    assert cli("redact", data=data, stdin=b"ACME-123456").stdout == b"<badge-1>"


def test_nats_config_is_one_that_a_server_accepts(data, tmp_path):
    from upswing.infra.nats.server import find_server_binary

    config = tmp_path / "nats.conf"
    config.write_bytes(cli("nats-config", "--store-dir", str(tmp_path), data=data).stdout)
    done = subprocess.run(
        [find_server_binary(), "-t", "-c", config], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for role in ("collector", "rewarder", "trainer", "deployer", "agent", "reader"):
        assert f'"user": "{role}"' in config.read_text()


def test_doctor_finds_a_sound_set_up_sound(running):
    findings = told(cli("doctor", "--json", data=running.data))
    assert all(finding["ok"] for finding in findings), findings


def test_doctor_says_what_to_do(data):
    done = cli("doctor", data=data, env={"DATABASE_URL": "mysql://x"}, check=False)
    assert done.returncode == 1
    assert b"DATABASE_URL must start with postgresql://" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "env", "config", "sentence"),
    [
        (["info"], {}, None, "No loop is running"),
        (["status"], {}, None, "holds no loop yet"),
        (["keys"], {}, None, "start one with `upswing up"),
        (["up"], {"NATS_URL": "http://x"}, None, "NATS_URL must start with nats://"),
        (["up", "--port", "0"], {"NATS_URL": "nats://127.0.0.1:1"}, None, "cannot be reached"),
        (["up"], {}, "[collect]\nmax_bytes = 5\n", "max_bytes"),
        (["up"], {}, "[collect\n", "upswing.toml"),
        (["up"], {}, '[[redact.rules]]\nname = "x"\npattern = "("\n', "redaction rule"),
        (["up"], {"UPSWING_CONFIG": "/nowhere/x.toml"}, None, "does not exist"),
        (
            ["up", "--host", "0.0.0.0", "--port", "0"],
            {"AGENTGYM_RL_API_KEY": "short"},
            None,
            "too weak",
        ),
        (["dead", "show"], {}, None, "Say which"),
        (["up", "--port", "18123", "--gateway-port", "18123"], {}, None, "are both 18123"),
        (
            ["up", "--port", "0"],
            {"DATABASE_URL": "postgresql://127.0.0.1:1/x"},
            None,
            "store cannot be used",
        ),
        (
            ["up", "--port", "0"],
            {"TRAJECTORY_STORAGE_PATH": "ftp://x/y"},
            None,
            "TRAJECTORY_STORAGE_PATH",
        ),
    ],
)
def test_misuse_gets_one_sentence_and_no_traceback(data, arguments, env, config, sentence):
    if config:
        data.mkdir()
        (data / "upswing.toml").write_text(config)
    done = cli(*arguments, data=data, env=env, check=False)
    text = done.stderr.decode()
    assert done.returncode == 1
    assert sentence in text
    assert "Traceback" not in text


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "cannot be read: No such file or directory."), ("# none\nhello\n", ", line 2: ")],
)
def test_a_file_of_tasks_that_is_none_is_found_at_the_start_and_by_the_doctor(
    data, content, sentence
):
    data.mkdir()
    path = data / "tasks.jsonl"
    if content is not None:
        path.write_text(content)
    (data / "upswing.toml").write_text(f'[validate.files]\nmine = "{path}"\n')
    up = cli("up", "--port", "0", "--gateway-port", "0", data=data, check=False)
    assert up.returncode == 1
    last = up.stderr.decode().splitlines()[-1]
    assert last.startswith("upswing: `mine` in [validate.files]: ")
    assert str(path) in last
    assert sentence in last
    found = json.loads(cli("doctor", "--json", data=data, check=False).stdout)
    (wrong,) = [each for each in found if each["check"] == "validation"]
    assert (wrong["ok"], f"upswing: {wrong['sentence']}") == (False, last)


def test_a_status_of_a_table_that_says_nothing_of_success_is_kept_and_is_no_outcome(
    running, tmp_path
):
    row = {
        "trajectoryId": "odd-1",
        "agentId": "a",
        "finalStatus": "liquidated",
        "stepsJson": json.dumps([{"stepNumber": 1}]),
    }
    file = tmp_path / "rows.jsonl"
    file.write_bytes(raw(row))
    assert told(cli("import", "--json", str(file), data=running.data)) == {"stored": 1}
    kept = [json.loads(line) for line in cli("export", data=running.data).stdout.splitlines()]
    (about,) = [each["metadata"] for each in kept if each["metadata"].get("external_id") == "odd-1"]
    assert "outcome" not in about
    assert about["final_status"]["status"] == "liquidated"


def test_debug_shows_the_traceback(data):
    done = cli("info", "--debug", data=data, check=False)
    assert b"Traceback" in done.stderr


def test_a_second_loop_in_the_same_directory_is_refused(running):
    done = cli("up", "--port", "0", data=running.data, check=False)
    assert done.returncode == 1
    assert f"in use by process {running.popen.pid}".encode() in done.stderr


@pytest.mark.parametrize("option", ["--port", "--gateway-port"])
def test_a_port_that_is_taken_is_refused_before_anything_is_made(data, option):
    others = {"--port": "0", "--gateway-port": "0"}
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        others[option] = str(held.getsockname()[1])
        words = [word for pair in others.items() for word in pair]
        done = cli("up", *words, data=data, check=False)
    assert done.returncode == 1
    assert f"give another with {option}" in done.stderr.decode()
    assert not data.exists()


def test_a_port_that_is_taken_is_named(running, data):
    port = running.info["http_url"].rpartition(":")[2]
    done = cli("up", "--port", port, data=data, check=False)
    assert done.returncode == 1
    assert f"Port {port}".encode() in done.stderr


def test_a_full_pipe_is_no_error(running):
    done = subprocess.run(
        f"{sys.executable} -m upswing.cli export --data {running.data} | head -c 10",
        shell=True,
        capture_output=True,
        check=False,
    )
    assert b"Traceback" not in done.stderr


def test_a_pipe_that_breaks_elsewhere_is_told(monkeypatch, tmp_path, capfd):
    def broken(arguments):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("upswing.cli.loop.status", broken)
    assert main(["status", "--data", str(tmp_path)]) == 1
    assert "Broken pipe" in capfd.readouterr().err


def test_stamps_are_utc():
    assert format_time(now()).endswith("Z")
