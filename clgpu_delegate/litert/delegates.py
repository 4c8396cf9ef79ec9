"""The delegates of LiteRT's compiled models."""

from __future__ import annotations

from clgpu_delegate import _core
from clgpu_delegate.delegate import Delegate
from clgpu_delegate.options import Options


def litert_delegates() -> list[Delegate]:
    """List the delegates of LiteRT's compiled models of this process, the oldest first.

    There is one for each ``CompiledModel`` that was compiled for the GPU and exists. It answers
    `Delegate.explain`, `Delegate.stats`, `Delegate.profile` and so on as a delegate from `load`
    does. A delegate in the list keeps the model's device memory until it is deleted, too.

    Examples
    --------
    >>> for delegate in clgpu_delegate.litert_delegates():
    ...     print(delegate.explain().summary())
    """
    return [
        Delegate._of_native(native, Options.from_delegate_dict(texts))
        for native, texts in _core.litert_delegates()
    ]
