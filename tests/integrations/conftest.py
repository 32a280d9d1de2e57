"""What these tests stand on: a loop with a gateway whose model is a script."""

import pytest

from tests.integrations.agent_zero.scripted_model import ScriptedModel
from tests.support import Process
from upswing.infra.instance import find_running_instance


@pytest.fixture(scope="session")
def loop_data(tmp_path_factory):
    return tmp_path_factory.mktemp("mcp") / "data"


@pytest.fixture(scope="session")
def running(loop_data):
    """A loop with a gateway, in a process of its own; what it is reached by. Its model is a script."""
    loop_data.mkdir(mode=0o700)
    with ScriptedModel(lambda *_: "Hello.") as model:
        config = f'[serve]\nurl = "{model.url}"\n\n[train]\nbase_model = "scripted"\n'
        (loop_data / "upswing.toml").write_text(config)
        process = Process.start(loop_data, gateway=True)
        try:
            process.until_ready(200)
            yield find_running_instance(loop_data)
        finally:
            process.destroy()
