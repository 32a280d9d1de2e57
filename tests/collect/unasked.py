"""A worker that says more than it was asked, as a library that prints would have it."""

import sys
import time

if __name__ == "__main__":
    sys.stdin.buffer.read(5)
    sys.stdout.buffer.write(2 * ((4).to_bytes(4, "big") + b"well"))
    sys.stdout.buffer.flush()
    time.sleep(30)
