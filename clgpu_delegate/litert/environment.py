"""An environment of LiteRT's whose GPU is OpenCL."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clgpu_delegate import _core, native
from clgpu_delegate.litert import package
from clgpu_delegate.options import Options, with_settings

if TYPE_CHECKING:
    from ai_edge_litert.environment import Environment
    from typing_extensions import Unpack

    from clgpu_delegate.options import Settings


@with_settings
def litert_environment(**settings: Unpack[Settings]) -> Environment:
    """Make an environment of LiteRT's in which ``HardwareAccelerator.GPU`` is this delegate.

    Each model that is compiled in it gets a delegate of its own. LiteRT's GPU options of a model
    count, too, and more than those given here: ``precision``, the folder and switch of its
    serialisation (the option ``cache``) and the name of the device. What has no effect on OpenCL is
    logged once.

    Parameters
    ----------
    **settings
        The fields of `Options`.

    Returns
    -------
    ai_edge_litert.environment.Environment
        For the argument ``environment`` of LiteRT's classes; it may be used in a ``with``
        statement. Models that were compiled in it stay usable when it is closed.

    Raises
    ------
    RuntimeNotFoundError
        If LiteRT is not installed, or older than 2.2.
    OptionError, DeviceError
        As `load`.

    Examples
    --------
    >>> from ai_edge_litert.compiled_model import CompiledModel
    >>> from ai_edge_litert.hardware_accelerator import HardwareAccelerator
    >>> with clgpu_delegate.litert_environment(precision="fp16") as environment:
    ...     model = CompiledModel.from_file(
    ...         "model.tflite", HardwareAccelerator.GPU, environment=environment
    ...     )
    >>> model.get_num_signatures() >= 1
    True
    """
    make = package.environment_class().create
    options = Options.from_settings(**settings)
    native.make(options)  # raises errors that LiteRT would only log
    folder = Path(tempfile.mkdtemp(prefix="clgpu_litert_"))
    try:
        (folder / package.LIBRARY).symlink_to(package.accelerator())
        _core.litert_offer(str(folder), native.texts_of(options))
        environment: Any = make(runtime_path=str(folder))
    except BaseException:
        _end(folder, os.getpid())
        raise
    weakref.finalize(environment, _end, folder, os.getpid())
    return environment


def _end(folder: Path, owner: int) -> None:
    if os.getpid() != owner:  # a forked child: the parent still uses it
        return
    _core.litert_withdraw(str(folder))
    shutil.rmtree(folder, ignore_errors=True)
