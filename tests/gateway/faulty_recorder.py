"""The recorder's process with a fault: while the file $FAULT is there, the task that it names breaks."""

import os
import sys
from pathlib import Path

from upswing.gateway.recorder import child
from upswing.gateway.recorder.child import RecorderServer
from upswing.gateway.recorder.publisher import Publisher


def _check(name):
    try:
        named = Path(os.environ["FAULT"]).read_text()
    except FileNotFoundError:
        return
    if named == name:
        raise KeyError(f"a fault in the {name}")


def _faulty(owner, method, name):
    sound = getattr(owner, method)

    async def faulty(self, *arguments):
        _check(name)
        return await sound(self, *arguments)

    setattr(owner, method, faulty)


async def _writes(self):
    while True:
        answer = await (await self._responses.get())
        _check("writer")
        sys.stdout.buffer.write(len(answer).to_bytes(4, "big") + answer)
        sys.stdout.buffer.flush()
        self._responses.task_done()


if __name__ == "__main__":
    _faulty(Publisher, "_drain", "publisher")  # its task looks into the spool twice a second
    _faulty(Publisher, "publish", "answer")
    RecorderServer._write_responses = _writes
    child.main()
