"""How a model comes to be served: verified, loaded, listed; at a double of a model server."""

import asyncio
import contextlib
import json
import shutil

import pytest
import torch
from tests.deploy.controlling import model
from tests.serving import Listening
from tests.train.checkpoint_cases import facts, fresh_model, make_base

from upswing.errors import Rejected, Transient
from upswing.serve.client import TOKEN_FIELDS, ModelServingClient, ServerConnection
from upswing.train.checkpoints.checking import verify
from upswing.train.checkpoints.storage import CheckpointStore
from upswing.train.checkpoints.writing import save_checkpoint

pytestmark = pytest.mark.live
KEY = "key-of-the-test"


class Double:
    """Speaks as vLLM does to operators: lists, loads, unloads; and says what it is told to."""

    def __init__(self):
        self.names, self.asked, self.status, self.body = ["tiny"], [], None, b"{}"

    async def __aenter__(self):
        self._listening = await Listening(self._answer).__aenter__()
        self.url = f"http://127.0.0.1:{self._listening.port}"
        return self

    async def __aexit__(self, *error):
        await self._listening.__aexit__(*error)

    async def _answer(self, reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            status, told = self._told(head[0].split()[1], headers, body)
            writer.write(
                f"HTTP/1.1 {status} X\r\ncontent-length: {len(told)}\r\nconnection: close\r\n\r\n".encode()
                + told
            )
            await writer.drain()
        writer.close()

    def _told(self, path, headers, body):
        if path == "/v1/models":
            listed = [{"id": name, "object": "model"} for name in self.names]
            return 200, json.dumps({"object": "list", "data": listed}).encode()
        wish = json.loads(body)
        self.asked.append((path, wish, headers.get("authorization")))
        if self.status:
            return self.status, self.body
        if path.endswith("unload_lora_adapter"):
            self.names.remove(wish["lora_name"])
        else:
            self.names.append(wish["lora_name"])
        return 200, b"{}"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("made")
    base = make_base(folder / "base")
    return save_checkpoint(
        folder, "final", fresh_model(base, "adapter"), info=facts(), base_folder=base
    )


@pytest.fixture
async def double():
    async with Double() as made:
        yield made


@pytest.fixture
def serving(double, tmp_path):
    server = ServerConnection(lambda: double.url, KEY)
    return ModelServingClient(server, CheckpointStore(str(tmp_path / "kept")), tmp_path / "copies")


async def test_the_base_is_served_under_its_own_name(serving, double):
    served = await serving.ensure("tiny")
    assert (served.model_id, served.backend, served.name) == ("tiny", f"{double.url}/v1", "tiny")
    assert served.extra == TOKEN_FIELDS
    with pytest.raises(Transient, match="does not serve other"):
        await serving.ensure("other")


async def test_a_kept_model_is_verified_and_loaded_once(serving, double, checkpoint, tmp_path):
    kept = await CheckpointStore(str(tmp_path / "kept")).upload(checkpoint, "job-1/final")
    row = model(1, path=kept)
    served = await serving.ensure(row)
    assert served.name == row.model_id
    assert double.asked == [
        ("/v1/load_lora_adapter", {"lora_name": row.model_id, "lora_path": kept}, f"bearer {KEY}")
    ]
    await serving.ensure(row)
    assert len(double.asked) == 1
    assert await serving.alive(served)
    await serving.release(row.model_id)
    assert not await serving.alive(served)
    await serving.release(row.model_id)
    assert double.names == ["tiny"]


async def test_a_folder_of_the_operator_is_verified_too(serving, double, checkpoint, tmp_path):
    own = shutil.copytree(checkpoint, tmp_path / "own")
    await serving.ensure(model(1, path=str(own)))
    assert double.asked[0][1]["lora_path"] == str(own)
    (own / "adapter_model.safetensors").write_bytes(b"spoiled")
    with pytest.raises(Rejected):
        await serving.ensure(model(2, path=str(own)))
    assert len(double.asked) == 1, "what does not verify is never loaded"


async def test_another_checkpoint_in_the_place_of_the_one_that_was_trained_is_not_loaded(
    serving, double, checkpoint, tmp_path, trials
):
    """Other weights, whole and with a manifest of their own that fits them: only the registry knows better."""
    seal = verify(checkpoint).seal
    base = make_base(tmp_path / "base")
    for number in range(5):
        weights = fresh_model(base, "adapter", seed=50 + number)  # all else is equal
        other = save_checkpoint(
            tmp_path / f"{number}", "final", weights, info=facts(), base_folder=base
        )
        verify(other)
        for path in (
            str(other),
            await CheckpointStore(str(tmp_path / "kept")).upload(other, f"job-{number}/final"),
        ):
            with pytest.raises(Rejected, match="not the checkpoint that training made"):
                await serving.ensure(model(1, path=path, seal=seal))
            trials.add()
    assert double.asked == []
    await serving.ensure(model(1, path=str(checkpoint), seal=seal))
    assert len(double.asked) == 1


async def test_what_is_not_there_can_never_be_served(serving, double):
    for path in ("/no/such/folder", "no-such-job/final", "..", "file:///etc"):
        with pytest.raises(Rejected):
            await serving.ensure(model(1, path=path))
    assert double.asked == []


async def test_a_model_at_a_url_is_asked_there(serving, double):
    double.names.append("qwen")
    at = await serving.ensure(model(3, model_id="qwen", path=double.url))
    assert (at.backend, at.name, at.extra) == (f"{double.url}/v1", "qwen", {"stream_options": None})
    named = await serving.ensure(model(4, path=f"{double.url}/v1#qwen"))
    assert (named.model_id, named.name) == ("agent-zero-rl-v4", "qwen")
    with pytest.raises(Rejected, match="does not serve"):
        await serving.ensure(model(5, path=double.url))
    assert double.asked == []


@pytest.mark.parametrize(
    ("status", "body", "error", "said"),
    [
        (422, b'{"error": {"message": "Another base."}}', Rejected, "Another base"),
        (400, b'{"message": "Bad adapter."}', Rejected, "Bad adapter"),
        (404, b"nothing", Rejected, "does not say why"),
        (401, b"{}", Transient, "401"),
        (503, b'{"detail": "Busy."}', Transient, "Busy"),
    ],
)
async def test_what_a_server_refuses_is_said_clearly(
    serving, double, checkpoint, status, body, error, said
):
    double.status, double.body = status, body
    with pytest.raises(error, match=said):
        await serving.ensure(model(1, path=str(checkpoint)))


async def test_a_server_that_is_away_is_waited_for(tmp_path):
    async with Double() as double:
        gone = double.url
    server = ServerConnection(lambda: gone)
    serving = ModelServingClient(
        server, CheckpointStore(str(tmp_path / "kept")), tmp_path / "copies"
    )
    with pytest.raises(Transient):
        await serving.ensure("tiny")
    made = model(1, path=f"{gone}/v1")
    with pytest.raises(Transient):
        await serving.ensure(made)
    with pytest.raises(Rejected):
        await serving.ensure(model(1, path="http://host:99999999/v1"))


async def test_what_somebody_else_loaded_at_the_same_time_is_served(tmp_path, checkpoint):
    row = model(1, path=str(checkpoint))

    class Raced(Double):
        def _told(self, path, headers, body):
            if path.endswith("/load_lora_adapter"):
                self.names.append(row.model_id)
                return 400, b'{"message": "It has been loaded already."}'
            return super()._told(path, headers, body)

    async with Raced() as double:
        server = ServerConnection(lambda: double.url, KEY)
        kept = CheckpointStore(str(tmp_path / "kept"))
        serving = ModelServingClient(server, kept, tmp_path / "copies")
        assert (await serving.ensure(row)).name == row.model_id


async def test_a_full_disk_is_waited_for(double, tmp_path):
    class Full(CheckpointStore):
        async def fetch(self, *_):
            raise OSError(28, "No space left on device")

    server = ServerConnection(lambda: double.url, KEY)
    serving = ModelServingClient(server, Full(str(tmp_path / "kept")), tmp_path / "copies")
    with pytest.raises(Transient, match="No space left"):
        await serving.ensure(model(1, path="job-1/final"))
    assert double.asked == []
