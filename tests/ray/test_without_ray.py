"""What works, and what is said, where Ray is not installed."""

from __future__ import annotations

from tests.python.subprocesses import assert_succeeds, run_python


def test_the_library_does_not_import_ray():
    result = run_python("""
import sys
import clgpu_delegate
assert clgpu_delegate.ray.resources(0) == {"opencl": 1.0}
assert clgpu_delegate.ray.Predictor and clgpu_delegate.ray.deployment
assert not {name for name in sys.modules if name.partition(".")[0] in ("ray", "pandas", "pyarrow")}
""")
    assert_succeeds(result)


def test_functions_that_need_ray_say_what_to_install():
    result = run_python("""
import sys
sys.modules["ray"] = None
import clgpu_delegate
from tests.python import models
for call in (
    lambda: clgpu_delegate.ray.map_batches(None, models.chain()),
    lambda: clgpu_delegate.ray.deployment(models.chain()),
):
    try:
        call()
    except clgpu_delegate.DependencyError as error:
        print(error)
""")
    assert_succeeds(result)
    assert result.stdout.count("install it with: pip install 'clgpu_delegate[ray]'") == 2
