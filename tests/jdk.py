"""What tests take from the JDK on the PATH."""

from __future__ import annotations

import shutil
from pathlib import Path

# As tools/build_aar.py compiles: classes for Java 8, without javac's remark that this is old.
COMPILE = ("javac", "--release", "8", "-encoding", "UTF-8", "-Xlint:all,-options", "-Werror")


def headers() -> Path | None:
    """The folder of jni.h, whose part for this machine is in linux/; None without javac or jni.h.

    A Java that only runs programs, or a javac that is a script, has no jni.h beside it.
    """
    javac = shutil.which("javac")
    if javac is None:
        return None
    folder = Path(javac).resolve().parents[1] / "include"
    return folder if (folder / "jni.h").is_file() else None
