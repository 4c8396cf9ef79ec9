"""How Python processes are started: none of them imports code from the current folder."""

from __future__ import annotations

import json
import os
import site
import sys
from pathlib import Path

# `json` comes from Python's own folders: an isolated process has neither the current folder nor
# PYTHONPATH in its path, and the path that replaces it has no current folder either.
_START = """
import json, sys
path, user_site = json.loads(sys.argv.pop(1))
if user_site:
    import site
    site.addsitedir(user_site)
sys.path[:] = path
"""


def command(code: str, *arguments: str) -> list[str]:
    """The command that runs Python code in a process which imports what this one can.

    Every process that the package starts is started with it. The process is isolated (``-I``), so
    a ``json.py`` in the current folder, or a variable such as PYTHONPATH, has no effect on it. Its
    import path is `import_path`.

    Parameters
    ----------
    code
        Python statements.
    arguments
        ``sys.argv[1:]`` of the process.
    """
    utf8 = ["-X", "utf8"] if sys.flags.utf8_mode else []  # PYTHONUTF8 would be ignored
    # Files .pth of the user's own site-packages may add import hooks, as editable installs do.
    user_site = site.getusersitepackages() if site.ENABLE_USER_SITE else ""
    handed = json.dumps([import_path(), user_site])
    return [sys.executable, "-I", *utf8, "-c", _START + code, handed, *arguments]


def import_path() -> list[str]:
    """``sys.path`` as absolute paths and without the current folder.

    Python puts the current folder first if it is started with ``-c`` or ``-m``, but the content of
    that folder is not trusted. It stays where PYTHONPATH has its absolute path, and it
    comes last where this package lies in it.
    """
    try:
        here = Path.cwd().resolve()
    except FileNotFoundError:  # it was deleted, so relative entries are gone, too
        return [entry for entry in sys.path if Path(entry).is_absolute()]
    named = [Path(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    is_named = any(entry.is_absolute() and entry.resolve() == here for entry in named)
    path = [
        # Editable installs of setuptools have entries that are names of import hooks, not paths.
        entry if entry.endswith(".__path_hook__") else str(Path(entry).absolute())
        for entry in sys.path
        if is_named or Path(entry).resolve() != here
    ]
    own = Path(__file__).resolve().parents[2]
    return path if is_named or own != here else [*path, str(own)]
