"""Which models are at hand? A base, the adapters on it, and what was trained of it as a whole.

Adapters share the base's weights; a model that was trained as a whole has weights of its own. Only a
checkpoint that proves itself, and that was made from this base, is loaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from peft import PeftModel, get_peft_model

from upswing.errors import Misuse
from upswing.train.bases.catalog import BaseModel
from upswing.train.bases.loading import load_base, saved_lora
from upswing.train.checkpoints.manifest import InvalidCheckpoint, Manifest
from upswing.train.checkpoints.reading import load_weights, set_weights


class LoadedModels:
    """The models of one base. Not for two threads at once."""

    def __init__(self, base: BaseModel) -> None:
        self._base = base
        self._model, self.tokenizer = load_base(base)
        self._model.eval()
        self._full_models: dict[str, Any] = {}
        self._adapters: dict[str, str] = {}
        """The name that peft knows each by: it does not take every name."""
        self._peft: PeftModel | None = None
        self._active: str | None = None
        self._adapters_made = 0

    @property
    def base(self) -> Any:
        return self.activate(self._base.name)

    def activate(self, name: str) -> Any:
        """The model of this name, ready to run; until another one is used."""
        if name in self._full_models:
            return self._full_models[name]
        if self._active != name and self._peft is not None:
            layers: Any = self._peft.base_model
            if name in self._adapters:
                layers.enable_adapter_layers()
                layers.set_adapter(self._adapters[name], inference_mode=True)
            else:
                layers.disable_adapter_layers()
        self._active = name
        return self._model

    def add(self, name: str, path: Path, manifest: Manifest) -> None:
        """Load a verified checkpoint; `Refused` when it does not fit."""
        if manifest.kind == "full":
            model, _ = load_base(self._base)
            set_weights(model, load_weights(path, manifest), manifest)
            self._full_models[name] = model.eval()
        else:
            self._add_adapter(name, path, manifest)

    def remove(self, name: str) -> None:
        self._full_models.pop(name, None)
        if (peft_name := self._adapters.pop(name, None)) is not None and self._peft is not None:
            self._delete_adapter(peft_name)

    def _add_adapter(self, name: str, path: Path, manifest: Manifest) -> None:
        self._adapters_made += 1
        peft_name, self._active = f"adapter{self._adapters_made}", None
        weights = load_weights(path, manifest)
        try:
            if self._peft is None:
                peft_model: Any = get_peft_model(
                    self._model, saved_lora(path), adapter_name=peft_name
                )
                self._peft = peft_model
            else:
                self._peft.add_adapter(peft_name, saved_lora(path))
                peft_model = self._peft
            peft_model.set_adapter(peft_name)
            set_weights(peft_model, weights, manifest)
        except (ValueError, Misuse, InvalidCheckpoint) as error:
            self._delete_adapter(peft_name)
            raise InvalidCheckpoint(f"The adapter does not fit the base: {error}") from error
        self._model.eval()
        self._adapters[name] = peft_name

    def _delete_adapter(self, peft_name: str) -> None:
        """Peft wants another one in use than the one that goes."""
        self._active = None
        if self._peft is None or peft_name not in self._peft.peft_config:
            return
        others = [each for each in self._peft.peft_config if each != peft_name]
        if others:
            self._peft.set_adapter(others[0])
            self._peft.delete_adapter(peft_name)
        else:
            self._model = self._peft.unload()
            self._peft = None
