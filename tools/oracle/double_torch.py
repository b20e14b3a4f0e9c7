"""Transformers' own model code in true float64: its fixed casts to float32 are lifted."""

from __future__ import annotations

import types

import torch


class Double(types.ModuleType):
    """The torch module, except that what a caller names float32 is float64."""

    float32 = float = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


class DoubleTorch:
    """While it is entered, `modules` (modeling_*.py) see Double as their torch, and Tensor.float() gives float64."""

    def __init__(self, *modules: types.ModuleType):
        self.modules = modules

    def __enter__(self) -> None:
        self.cast = torch.Tensor.float
        torch.Tensor.float = torch.Tensor.double
        for module in self.modules:
            module.torch = Double("torch")

    def __exit__(self, *_: object) -> None:
        torch.Tensor.float = self.cast
        for module in self.modules:
            module.torch = torch
