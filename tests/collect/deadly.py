"""A double of the worker that dies of one token before it answers, as of a bug in native code."""

import os
import sys

from upswing.collect.worker import serve

TOKEN = b"deadly nightshade"


class Deadly:
    """What it is asked, read by somebody who does not survive the token."""

    def __init__(self, source):
        self._source = source

    def read(self, size):
        told = self._source.read(size)
        if TOKEN in told:
            os._exit(9)
        return told


if __name__ == "__main__":
    serve(Deadly(sys.stdin.buffer), sys.stdout.buffer)
