"""The commands ``clgpu cache ...``."""

# Typer reads the annotations at run time, so they keep to what Python 3.9 can evaluate.
import dataclasses
import time
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from clgpu_delegate import cache
from clgpu_delegate.cli.completion import words
from clgpu_delegate.cli.printing import count, paragraphs, print_json, print_rich, print_text
from clgpu_delegate.cli.settings import Json

app = typer.Typer(
    help="List, clear, export or import the file of compiled programs and tuned choices."
)
_CacheFile = Annotated[
    Optional[Path],
    typer.Option("--cache", help="Cache file to use instead of the user's own.", readable=False),
]


@app.command("list", epilog=paragraphs("For example:", "clgpu cache list --json"))
def list_(as_json: Json = False, path: _CacheFile = None) -> None:
    """List what the cache keeps."""
    file, found = cache.resolve(path), cache.entries(path)
    if as_json:
        print_json({"path": str(file), "entries": [entry.to_dict() for entry in found]})
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("kind")
    table.add_column("what", overflow="fold")
    table.add_column("KiB", justify="right")
    table.add_column("made")
    table.add_column("used")
    for entry in found:
        days = (time.strftime("%Y-%m-%d", time.localtime(t)) for t in (entry.created, entry.used))
        table.add_row(Text(entry.kind), Text(entry.label), f"{entry.bytes / 1024:.1f}", *days)
    if found:
        print_rich(table)
    total = sum(entry.bytes for entry in found)
    print_text(f"{file}: {count(len(found), 'row')}, {total / 2**20:.1f} MiB")


@app.command(epilog=paragraphs("For example:", "clgpu cache clear --kind tuning"))
def clear(
    kind: Annotated[
        Optional[str],
        typer.Option(
            help=f"Only these rows: {', '.join(cache.KINDS)}.",
            autocompletion=words(*cache.KINDS),
        ),
    ] = None,
    as_json: Json = False,
    path: _CacheFile = None,
) -> None:
    """Delete what the cache keeps."""
    file, deleted = cache.resolve(path), cache.clear(path, kind)
    if as_json:
        print_json({"path": str(file), "deleted": deleted})
    else:
        print_text(f"{file}: {count(deleted, 'row')} deleted")


@app.command(epilog=paragraphs("For example:", "clgpu cache export tuned.sqlite"))
def export(
    file: Annotated[Path, typer.Argument(help="The file to write.", readable=False)],
    as_json: Json = False,
    path: _CacheFile = None,
) -> None:
    """Write the cache to a file that another machine of the same kind can import."""
    written = cache.export_file(file, path)
    if as_json:
        print_json({"path": str(file), "written": written})
    else:
        print_text(f"{file}: {count(written, 'row')} written")


@app.command("import", epilog=paragraphs("For example:", "clgpu cache import tuned.sqlite"))
def import_(
    file: Annotated[Path, typer.Argument(help="A file that was exported.", readable=False)],
    programs: Annotated[
        bool,
        typer.Option(
            "--programs",
            help="Also import compiled programs: machine code, so use only files that you trust.",
        ),
    ] = False,
    as_json: Json = False,
    path: _CacheFile = None,
) -> None:
    """Add the rows of an exported cache: measurements, and with --programs also programs."""
    merged = cache.import_file(file, path, programs=programs)
    if as_json:
        print_json(dataclasses.asdict(merged))
        return
    print_text(
        f"{cache.resolve(path)}: {count(merged.added, 'row')} added, {merged.kept} already there, "
        f"{merged.damaged} damaged"
        + (f", {count(merged.programs, 'program')} left out (--programs)" * bool(merged.programs))
    )
