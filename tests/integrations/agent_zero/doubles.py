"""Doubles of Agent Zero's objects, with the names that the plugin reads; and a loop that keeps what it is sent."""

import itertools
import json
import threading
from types import SimpleNamespace
from typing import ClassVar

from tests.sdk.loop_double import PlainRedactor
from upswing.infra.spool_log import SpoolEntryKind
from upswing.integrations.agent_zero.chats import ChatRecorder
from upswing.integrations.agent_zero.connection import PluginConnection
from upswing.integrations.agent_zero.model_calls import CALL_ID, ModelCalls
from upswing.integrations.agent_zero.moments import dispatch
from upswing.sdk.recorder import Recorder
from upswing.sdk.transport import EntryAccepted

GATEWAY = "http://127.0.0.1:3000"


class Kept:
    """A transport that takes everything; what came is decoded."""

    def __init__(self):
        self.trajectories, self.feedback, self.lock = [], [], threading.Lock()

    def send(self, kind, bodies):
        with self.lock:
            into = self.trajectories if kind is SpoolEntryKind.TRAJECTORY else self.feedback
            into += [json.loads(body) for body in bodies]
        return [EntryAccepted() for _ in bodies]

    def close(self):
        pass


class Context:
    """A chat; `get` finds those that are there, as Agent Zero's does."""

    there: ClassVar = {}
    numbers = itertools.count(1)

    def __init__(self, name=None):
        self.id = name or f"chat{next(self.numbers)}"
        self.data, self.output_data = {}, {}
        Context.there[self.id] = self

    @classmethod
    def get(cls, name):
        return cls.there.get(name)

    @classmethod
    def remove(cls, name):
        cls.there.pop(name, None)


class Model:
    """A model as Agent Zero makes one for each call."""

    def __init__(self, **kwargs):
        self.model_name = "openai/upswing"
        self.kwargs = {"api_base": f"{GATEWAY}/v1", **kwargs}


class Unknown:
    """Stands in for a tool that does not exist."""

    method, message = None, ""


class Agent:
    """An agent of a chat."""

    def __init__(self, context, number=0, profile="", superior=None):
        self.context, self.number, self.agent_name = context, number, f"A{number}"
        self.config = SimpleNamespace(profile=profile)
        self.data = {"_superior": superior} if superior else {}
        self.last_user_message = None
        self.loop_data = None

    def hears(self, text, **more):
        """A message for it, as Agent Zero keeps one."""
        key = "user_intervention" if more.pop("between", False) else "user_message"
        self.last_user_message = SimpleNamespace(content={key: text, **more})
        return self


class Play:
    """Tells the recorder of moments, in Agent Zero's order."""

    def __init__(self, tmp_path, **connection):
        self.kept = Kept()
        self.recorder = Recorder(
            transport=lambda: self.kept, redactor=PlainRedactor, spool=tmp_path / "spool"
        )
        self.calls = ModelCalls()
        self.clock = itertools.count()
        ids = itertools.count(1)
        self.chats = ChatRecorder(
            self.recorder,
            PluginConnection(gateway_url=GATEWAY, **connection),
            self.calls,
            seconds=lambda: next(self.clock) / 1000,
            new_id=lambda: f"call-{next(ids)}",
            version="1.7",
        )

    def tell(self, point, agent=None, **values):
        dispatch(self.chats, point, agent, values)

    def begin(self, agent, text, **more):
        agent.hears(text, **more)
        agent.loop_data = SimpleNamespace(
            system=["You are Agent Zero."],
            history_output=[{"ai": False, "content": agent.last_user_message.content}],
            params_temporary={},
            current_tool=None,
        )
        self.tell("monologue_start", agent, loop_data=agent.loop_data)

    def ask(self, agent, model=None):
        """The model is asked; what was sent with the call."""
        data = {"model": model or Model()}
        self.tell("chat_model_call_before", agent, call_data=data)
        return data["model"].kwargs

    def reply(self, agent, raw, reasoning="", model="agent-zero-rl-v7", sent=None):
        if sent is not None and "metadata" in sent:
            headers = {"X-Model-Id": model, "x-inference-id": f"inf-{sent['metadata'][CALL_ID]}"}
            self.calls.note(
                {"litellm_params": {"metadata": sent["metadata"]}, "response_headers": headers}
            )
        self.tell("chat_model_call_after", agent, call_data={}, response=raw, reasoning=reasoning)

    def use(self, agent, tool, arguments, output, *, kind=None, between=None, shown=None):
        """A tool runs; `between` is what happens while it does."""
        name, _, method = tool.partition(":")
        made = kind or type("Tool", (), {})
        agent.loop_data.current_tool = made()
        agent.loop_data.current_tool.method = method or None
        agent.loop_data.current_tool.message = "raw"
        self.tell("tool_execute_before", agent, tool_args=arguments, tool_name=name)
        if between:
            between()
        if shown:
            agent.loop_data.params_temporary["log_item_response"] = SimpleNamespace(id=shown)
        self.tell(
            "tool_execute_after", agent, response=SimpleNamespace(message=output), tool_name=name
        )
        agent.loop_data.current_tool = None
        self.tell("message_loop_end", agent)

    def turn(self, agent, tool, arguments, output, **more):
        """One whole turn."""
        raw = json.dumps(
            {"thoughts": [f"I use {tool}."], "tool_name": tool, "tool_args": arguments}
        )
        self.reply(agent, raw, sent=self.ask(agent))
        self.use(agent, tool, arguments, output, **more)

    def answer(self, agent, text, **more):
        self.turn(agent, "response", {"text": text}, text, **more)
        self.tell("monologue_end", agent)

    def recorded(self):
        """Everything that was sent, the trajectories in order."""
        assert self.recorder.flush(60)
        return self.kept.trajectories
