"""What does a safetensors file hold, without loading it?

    8 bytes: length of the header │ header: JSON, name → dtype, shape, offsets │ the tensors

The header is checked against the file before a byte of the tensors is looked at: offsets follow
each other without a gap, sizes are those of dtype and shape, and nothing stands behind the last.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from upswing.errors import Reason
from upswing.train.checkpoints.manifest import InvalidCheckpoint
from upswing.train.checkpoints.safe_reading import open_plain, quote_name, strict_json

HEADER_BYTES = 16 << 20
_CHUNK = 4 << 20
_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,512}")
WIDTHS = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}
FLOATS = frozenset({"F32", "F16", "BF16"})
_EXPONENTS = {
    "F64": ("<u8", 0x7FF0_0000_0000_0000),
    "F32": ("<u4", 0x7F80_0000),
    "F16": ("<u2", 0x7C00),
    "BF16": ("<u2", 0x7F80),
}
"""A number whose exponent bits are all set is NaN or infinite."""


@dataclass(frozen=True, slots=True)
class TensorHeader:
    """One tensor, as the header describes it; offsets are those of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def read_header(path: Path) -> dict[str, TensorHeader]:
    """The tensors of a plain safetensors file, in the order in which they lie in it."""
    with open_plain(path) as file:
        return parse_header(file, path.name)


def parse_header(file: BinaryIO, name: str) -> dict[str, TensorHeader]:
    """The tensors of an open file, which stands behind its header afterwards."""
    size = file.seek(0, 2)
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or length > min(size - 8, HEADER_BYTES):
        raise InvalidCheckpoint(
            f"{name} is no safetensors file, or its end is missing.", Reason.MALFORMED
        )
    tree = strict_json(file.read(length), f"The header of {name}")
    tree.pop("__metadata__", None)
    found = [_parse_tensor(each, entry, 8 + length, name) for each, entry in tree.items()]
    found.sort(key=lambda tensor: (tensor.start, tensor.end))
    at = 8 + length
    for tensor in found:
        if tensor.start != at:
            raise InvalidCheckpoint(f"The tensors of {name} overlap, or leave a gap.")
        at = tensor.end
    if at != size:
        raise InvalidCheckpoint(f"{name} does not end where its last tensor does.")
    return {tensor.name: tensor for tensor in found}


def _parse_tensor(name: str, entry: Any, base: int, what: str) -> TensorHeader:
    if not _NAME.fullmatch(name):
        raise InvalidCheckpoint(f"{what} has a tensor with a strange name, {quote_name(name)}.")
    match entry:
        case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [start, end], **rest} if (
            not rest and dtype in WIDTHS and len(shape) <= 8
        ):
            numbers = (*shape, start, end)
            whole = all(type(each) is int and 0 <= each < 1 << 62 for each in numbers)
            if whole and end - start == math.prod(shape) * WIDTHS[dtype]:
                return TensorHeader(name, dtype, tuple(shape), base + start, base + end)
        case _:
            pass
    raise InvalidCheckpoint(f"{what} describes {quote_name(name)} in a way that cannot be.")


def check_finite(path: Path, tensors: dict[str, TensorHeader]) -> None:
    """Refuse NaN and infinity; reads a few megabytes at a time."""
    with open_plain(path) as file:
        for tensor in tensors.values():
            if tensor.dtype not in _EXPONENTS:
                continue
            file.seek(tensor.start)
            left = tensor.end - tensor.start
            while left > 0:
                chunk = file.read(min(left, _CHUNK))
                if not chunk:
                    raise InvalidCheckpoint(f"{path.name} became shorter while it was read.")
                if not _all_finite(chunk, tensor.dtype):
                    raise InvalidCheckpoint(
                        f"{path.name}: {quote_name(tensor.name)} has values that are no numbers.",
                        Reason.NOT_A_NUMBER,
                    )
                left -= len(chunk)


def _all_finite(chunk: bytes, dtype: str) -> bool:
    import numpy as np  # noqa: PLC0415 - comes with the `train` extra; the rest works without

    kind, mask = _EXPONENTS[dtype]
    bits = np.frombuffer(chunk, dtype=kind)
    return not bool(((bits & np.array(mask, dtype=kind)) == mask).any())
