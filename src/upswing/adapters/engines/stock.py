"""Which models are at hand? A base, the adapters on it, and what was trained of it as a whole.

Adapters share the base's weights; a model that was trained as a whole has weights of its own. Only a
checkpoint that proves itself, and that was made from this base, is loaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from peft import PeftModel, get_peft_model

from upswing.adapters.bases import Base
from upswing.adapters.checkpoints.manifest import Manifest, Refused
from upswing.adapters.checkpoints.reading import load_weights, put_weights
from upswing.adapters.models import as_saved, load
from upswing.errors import Misuse


class Stock:
    """The models of one base. Not for two threads at once."""

    def __init__(self, base: Base) -> None:
        self._base = base
        self._model, self.tokenizer = load(base)
        self._model.eval()
        self._whole: dict[str, Any] = {}
        self._adapters: dict[str, str] = {}
        """The name that peft knows each by: it does not take every name."""
        self._peft: PeftModel | None = None
        self._in_use: str | None = None
        self._made = 0

    @property
    def base(self) -> Any:
        return self.use(self._base.name)

    def use(self, name: str) -> Any:
        """The model of this name, ready to run; until another one is used."""
        if name in self._whole:
            return self._whole[name]
        if self._in_use != name and self._peft is not None:
            layers: Any = self._peft.base_model
            if name in self._adapters:
                layers.enable_adapter_layers()
                layers.set_adapter(self._adapters[name], inference_mode=True)
            else:
                layers.disable_adapter_layers()
        self._in_use = name
        return self._model

    def add(self, name: str, path: Path, manifest: Manifest) -> None:
        """Load a verified checkpoint; `Refused` when it does not fit."""
        if manifest.kind == "full":
            model, _ = load(self._base)
            put_weights(model, load_weights(path, manifest), manifest)
            self._whole[name] = model.eval()
        else:
            self._add_adapter(name, path, manifest)

    def remove(self, name: str) -> None:
        self._whole.pop(name, None)
        if (inner := self._adapters.pop(name, None)) is not None and self._peft is not None:
            self._forget(inner)

    def _add_adapter(self, name: str, path: Path, manifest: Manifest) -> None:
        self._made += 1
        inner, self._in_use = f"adapter{self._made}", None
        weights = load_weights(path, manifest)
        try:
            if self._peft is None:
                made: Any = get_peft_model(self._model, as_saved(path), adapter_name=inner)
                self._peft = made
            else:
                self._peft.add_adapter(inner, as_saved(path))
                made = self._peft
            made.set_adapter(inner)
            put_weights(made, weights, manifest)
        except (ValueError, Misuse, Refused) as error:
            self._forget(inner)
            raise Refused(f"The adapter does not fit the base: {error}") from error
        self._model.eval()
        self._adapters[name] = inner

    def _forget(self, inner: str) -> None:
        """Peft wants another one in use than the one that goes."""
        self._in_use = None
        if self._peft is None or inner not in self._peft.peft_config:
            return
        others = [each for each in self._peft.peft_config if each != inner]
        if others:
            self._peft.set_adapter(others[0])
            self._peft.delete_adapter(inner)
        else:
            self._model = self._peft.unload()
            self._peft = None
