"""Reads the cache in a separate process, without the rest of the package."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from pathlib import Path

_APPLICATION_ID = 0x434C4750  # as in src_cpp/store/database.cpp
_FORMAT = 1
_SCHEMA = (("table", "rows"), ("index", "sqlite_autoindex_rows_1"))


def examine(file: str) -> dict[str, object]:
    """Count rows and those whose checksums are wrong."""
    rows = damaged = 0
    try:
        uri = Path(file).resolve().as_uri() + "?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=10)) as database:
            database.execute("PRAGMA trusted_schema=OFF")
            for pragma, wanted in (("application_id", _APPLICATION_ID), ("user_version", _FORMAT)):
                (value,) = database.execute(f"PRAGMA {pragma}").fetchone()
                if value != wanted:
                    return {"error": f"{pragma} is {value}, not {wanted}"}
            for kind, name in database.execute("SELECT type, name FROM sqlite_master"):
                if (kind, name) not in _SCHEMA:  # a view may never end
                    return {"error": f"the {kind} {name!r} does not belong to a cache"}
            (answer,) = database.execute("PRAGMA quick_check(1)").fetchone()
            if answer != "ok":
                return {"error": str(answer)}
            for kind, key, checksum, value in database.execute(
                "SELECT kind, key, checksum, value FROM rows"
            ):
                rows += 1
                wanted_sum = hashlib.sha256(f"{kind}\0{key}\0".encode() + bytes(value)).digest()
                damaged += checksum != wanted_sum
    except sqlite3.Error as error:
        return {"error": str(error)}
    return {"error": "", "rows": rows, "damaged": damaged}
