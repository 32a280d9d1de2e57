"""Runs a real Agent Zero without its page: commands as JSON lines in, answers as JSON lines out.

It is started by Agent Zero's own interpreter, in Agent Zero's folder, and imports nothing of ours: the plugin does that.
Packages that only matter to speech, browsers and sockets are stood in for by empty modules; nothing of Agent Zero is changed.
"""

import importlib
import importlib.abc
import importlib.machinery
import json
import os
import pathlib
import sys
import threading
import traceback
import types

HEAVY = {
    "whisper", "sentence_transformers", "mcp", "socketio", "faiss", "browser_use", "playwright", "fastmcp", "fasta2a",
    "kokoro", "soundfile", "langchain_community", "langchain_unstructured", "unstructured", "newspaper", "paramiko", "docker",
    "duckduckgo_search", "flaredantic", "a2wsgi", "ansio", "markdown", "markdownify", "pymupdf", "fitz", "pytesseract",
    "pdf2image", "pypdf", "imapclient", "html2text", "bs4", "boto3", "exchangelib", "simple_websocket",
}  # fmt: skip


class Anything:
    """Whatever is asked of a package that is not there."""

    def __init__(self, *_, **__):
        pass

    def __call__(self, *args, **__):
        return args[0] if len(args) == 1 and callable(args[0]) else Anything()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __class_getitem__(cls, _):
        return cls

    def __mro_entries__(self, _):
        return (object,)


class EmptyModule(types.ModuleType):
    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Anything,), {}) if name[:1].isupper() else Anything()


class EmptyPackages(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HEAVY:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return EmptyModule(spec.name)

    def exec_module(self, module):
        pass


def say(**answer):
    OUT.write(json.dumps(answer) + "\n")
    OUT.flush()


class Driver:
    """The commands."""

    def __init__(self):
        import initialize
        from agent import AgentContext, UserMessage

        self.initialize, self.AgentContext, self.UserMessage = initialize, AgentContext, UserMessage
        self.web = None

    def new_chat(self, **_):
        return {"chat": self.AgentContext(config=self.initialize.initialize_agent()).id}

    def say(self, chat, text, wait=True, **_):
        context = self.AgentContext.get(chat)
        task = context.communicate(self.UserMessage(text))
        if not wait:
            return {"started": True}
        return {"answer": task.result_sync(timeout=120)}

    def wait(self, chat, **_):
        return {"answer": self.AgentContext.get(chat).task.result_sync(timeout=120)}

    def reset(self, chat, **_):
        self.AgentContext.get(chat).reset()
        return {"reset": True}

    def remove(self, chat, **_):
        self.AgentContext.remove(chat)
        return {"removed": True}

    def messages(self, chat, **_):
        items = [item.output() for item in self.AgentContext.get(chat).log.logs]
        return {
            "messages": [
                {k: each.get(k) for k in ("id", "type", "content", "agentno")} for each in items
            ]
        }

    def providers(self, **_):
        from helpers.providers import get_provider_config, get_providers  # of one with plugins

        names = [each["value"] for each in get_providers("chat")]
        return {"providers": names, "upswing": get_provider_config("chat", "upswing")}

    def profiles(self, **_):
        from helpers import subagents

        found = subagents.get_all_agents_list()
        return {
            "profiles": [
                each.get("key", each) if isinstance(each, dict) else str(each) for each in found
            ]
        }

    def web_call(self, path, body=None, csrf=True, **_):
        """Through Agent Zero's own routes, with its CSRF check."""
        if self.web is None:
            from flask import Flask
            from helpers.api import register_api_route

            app = Flask("a0")
            app.secret_key = "test"
            register_api_route(app, threading.RLock())
            self.web = app.test_client()
        headers = {"Origin": "http://localhost"}
        if csrf:
            token = self.web.get("/api/csrf_token", headers=headers).get_json()
            headers["X-CSRF-Token"] = token["token"]
        reply = self.web.post(path, json=body or {}, headers=headers)
        return {
            "status": reply.status_code,
            "body": reply.get_json(silent=True),
            "text": reply.get_data(as_text=True)[:500],
        }

    def plugin(self, **_):
        return {"status": importlib.import_module(BRIDGE).status()}

    def flush(self, **_):
        return {"flushed": importlib.import_module(BRIDGE).plugin.recorder.flush(60)}


if __name__ == "__main__":
    OUT = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever Agent Zero prints goes to the log
    sys.argv = ["drive.py", "--dockerized=true"]
    sys.path.insert(0, str(pathlib.Path.cwd()))
    sys.meta_path.append(EmptyPackages())
    older = pathlib.Path("python/helpers").is_dir()
    BRIDGE = "usr.upswing.bridge" if older else "usr.plugins.upswing.helpers.bridge"
    importlib.import_module("python.helpers.runtime" if older else "helpers.runtime").initialize()
    driver = Driver()
    say(ready=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            say(**getattr(driver, asked.pop("do"))(**asked))
        except Exception as error:  # noqa: BLE001 - the test reads it
            traceback.print_exc()
            say(error=f"{type(error).__name__}: {error}")
