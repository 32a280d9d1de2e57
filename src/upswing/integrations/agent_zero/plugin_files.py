"""Which files make the plugin? Texts of this package, filled in for one Agent Zero.

Nothing of Agent Zero's own is among them: they are named after its extension points and call `plugin`.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from upswing import __version__
from upswing.integrations.agent_zero.connection import FORM, PluginConnection
from upswing.integrations.agent_zero.layout import Layout
from upswing.integrations.agent_zero.moments import MOMENTS, Moment
from upswing.integrations.agent_zero.trainer_prompt import TOOL, role_prompt, tool_prompt

_PROFILE = "agents/rl-trainer"
_BRIDGE = {
    Layout.PLUGINS: "usr.plugins.upswing.helpers.bridge",
    Layout.EXTENSIONS: "usr.upswing.bridge",
}
_HELPERS = {Layout.PLUGINS: "helpers", Layout.EXTENSIONS: "python.helpers"}
_FOLDER = {
    Layout.PLUGINS: "os.path.dirname(os.path.dirname(os.path.abspath(__file__)))",
    Layout.EXTENSIONS: "os.path.dirname(os.path.abspath(__file__))",
}
_STATUS = {
    Layout.PLUGINS: "`POST /api/plugins/upswing/status` says what it did",
    Layout.EXTENSIONS: "`upswing agent-zero doctor` says whether it works",
}
"""Where a person reads what it does."""


def plugin_files(
    layout: Layout, connection: PluginConnection, version: str = ""
) -> dict[Path, str]:
    """Path from Agent Zero's root → text. `version` is Agent Zero's own."""
    values = {
        "VERSION": __version__,
        "FORM": str(FORM),
        "AGENT_ZERO": version,
        "BRIDGE": _BRIDGE[layout],
        "HELPERS": _HELPERS[layout],
        "FOLDER": _FOLDER[layout],
        "STATUS": _STATUS[layout],
        "GATEWAY": connection.gateway_url.rstrip("/"),
    }
    made = _with_plugins(values) if layout is Layout.PLUGINS else _with_extensions(values)
    return {Path(path): text for path, text in sorted(made.items())}


def _with_plugins(values: dict[str, str]) -> dict[str, str]:
    home = "usr/plugins/upswing"
    python = f"{home}/extensions/python"
    return {
        f"{home}/plugin.yaml": _filled("plugin.yaml.in", values),
        f"{home}/README.md": _filled("readme.md.in", values),
        f"{home}/helpers/bridge.py": _filled("bridge.py.in", values),
        f"{home}/conf/model_providers.yaml": _filled("model_providers.yaml.in", values),
        f"{home}/api/feedback.py": _filled("feedback_api.py.in", values),
        f"{home}/api/status.py": _filled("status_api.py.in", values),
        f"{home}/extensions/webui/set_messages_after_loop/upswing-feedback.js": _read("buttons.js"),
        f"{python}/_functions/models/get_api_key/end/_50_upswing_api_key.py": _filled(
            "api_key.py.in", values
        ),
        f"{python}/message_loop_prompts_after/_80_upswing_notices.py": _filled(
            "notices.py.in", values
        ),
        **{
            f"{python}/{moment.point}/{_file_name(moment)}": _extension(moment, values, moment.sync)
            for moment in MOMENTS
            if moment.newer
        },
        **_profile(f"{home}/{_PROFILE}", "agent.system.main.specifics.md", values),
        f"{home}/{_PROFILE}/agent.yaml": _read("agent.yaml"),
    }


def _with_extensions(values: dict[str, str]) -> dict[str, str]:
    python = "python/extensions"
    return {
        "usr/upswing/README.md": _filled("readme.md.in", values),
        "usr/upswing/bridge.py": _filled("bridge.py.in", values),
        f"{python}/message_loop_prompts_after/_80_upswing_notices.py": _filled(
            "notices.py.in", values
        ),
        **{
            f"{python}/{moment.point}/{_file_name(moment)}": _extension(moment, values, sync=False)
            for moment in MOMENTS
            if moment.older
        },
        **_profile(_PROFILE, "agent.system.main.role.md", values),
        f"{_PROFILE}/_context.md": "# RL Trainer\n- agent that watches over the learning of all agents, with Upswing's loop\n",
    }


def _profile(folder: str, role_file: str, values: dict[str, str]) -> dict[str, str]:
    return {
        f"{folder}/prompts/{role_file}": role_prompt(),
        f"{folder}/prompts/agent.system.tool.{TOOL}.md": tool_prompt(),
        f"{folder}/tools/{TOOL}.py": _filled("tool.py.in", values),
    }


def _extension(moment: Moment, values: dict[str, str], sync: bool) -> str:
    more = {
        "POINT": moment.point,
        "CLASS": "Upswing" + "".join(part.title() for part in _words(moment)),
        "ASYNC": "" if sync else "async ",
    }
    return _filled("extension.py.in", {**values, **more})


def _file_name(moment: Moment) -> str:
    """Agent Zero takes one file of each name at a point, whoever's it is: ours has a name of its own.

    >>> [_file_name(moment) for moment in MOMENTS if moment.point.endswith(("start", "before"))][0]
    '_05_upswing_monologue_start.py'
    """
    return f"_{moment.order:02}_upswing_{'_'.join(_words(moment)).lower()}.py"


def _words(moment: Moment) -> list[str]:
    return [word for word in re.split(r"[/_]", moment.point) if word and word != "functions"]


def _filled(name: str, values: dict[str, str]) -> str:
    text = _read(name)
    for key, value in values.items():
        text = text.replace(f"@{key}@", value)
    return text


def _read(name: str) -> str:
    return files(__package__).joinpath("files", name).read_text(encoding="utf-8")
