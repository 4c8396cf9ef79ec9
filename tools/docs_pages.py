"""A hook of mkdocs: pages that are files of the top folder, pictures of real runs, and links.

A line ``<!-- picture: NAME -->`` of a page becomes a picture that `tools/docs_pictures.py` makes.
If it cannot, for example without an OpenCL device, the site has no pictures.
"""

import logging
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from mkdocs.structure.files import File

TOP = Path(__file__).resolve().parents[1]
PAGES = {
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
    "conduct.md": "CODE_OF_CONDUCT.md",
}
PICTURES = TOP / "build" / "pictures"
MAKER = TOP / "tools" / "docs_pictures.py"
TITLES = {
    "quickstart": "What the tour prints",
    "profile": "The page of a profile of MobileNetV1",
    "timeline": "The plot of a profile: timeline and nodes",
    "memory": "The memory map of LeNet-5",
    "tuning": "The result of tuning LeNet-5",
    "quantization": "The report about LeNet-5 in int8",
    "detect": "What examples.detect finds in a portrait (Eileen Collins; NASA, public domain)",
    "segment": "The same portrait after examples.segment",
    "classify": "A handwritten digit, and what examples.classify prints with a network for digits",
    "birds": "Whistles of three birds, made by a program, and what examples.birds hears",
    "wake_word": "A synthesised sentence, the model's score, and what examples.wake_word prints",
    "formats": "What examples.digits prints",
    "serve": "What the server tells of LeNet-5, and what examples.serve_load measures",
}
PLACE = re.compile(r"^<!-- picture: (\w+) -->$", re.MULTILINE)
LIMIT_S = 900

log = logging.getLogger("mkdocs.plugins.pictures")


def on_pre_build(config):  # noqa: ARG001  # mkdocs names it
    """Make the pictures, unless they are newer than the package; CLGPU_DOCS_PICTURES=off: never."""
    if os.environ.get("CLGPU_DOCS_PICTURES") == "off" or _is_fresh():
        return
    command = [sys.executable, str(MAKER), str(PICTURES)]
    # A session of its own, so that the server of an example ends with it.
    with subprocess.Popen(
        command, cwd=TOP, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as maker:  # fmt: skip
        try:
            _, said = maker.communicate(timeout=LIMIT_S)
            failure = said.strip().splitlines()[-1:] if maker.returncode else []
        except subprocess.TimeoutExpired as error:
            os.killpg(maker.pid, signal.SIGTERM)
            failure = [str(error)]
    if failure:
        log.info("pages without pictures of runs: %s", failure[0])
    else:
        for line in said.splitlines():
            if line.startswith("no picture"):
                log.info(line)


def on_files(files, config):
    """Add the pictures that are separate files."""
    for name, suffix in (("profile", "page.html"), ("timeline", "svg")):
        picture = PICTURES / f"{name}.{suffix}"
        if picture.exists():
            uri = f"pictures/{picture.name}"
            files.append(File.generated(config, uri, abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown, page, config, files):  # noqa: ARG001  # mkdocs names them
    """The page's text; links into docs/, and to other such files, start from there."""
    source = PAGES.get(page.file.src_uri)
    if source is not None:
        markdown = (TOP / source).read_text(encoding="utf-8").replace("](docs/", "](")
        for name, other in PAGES.items():
            markdown = markdown.replace(f"]({other}", f"]({name}")
    return PLACE.sub(lambda place: _figure(place[1]), markdown)


def on_post_page(output, page, config):  # noqa: ARG001  # mkdocs names them
    """Links of the notebook to other pages; mkdocs only handles those of Markdown."""
    if not page.file.src_uri.endswith(".ipynb"):
        return output
    return re.sub(r'href="(\w+)\.md\b', r'href="\1.html', output)


def _figure(name):
    """HTML of a picture; empty where there is none."""
    title = TITLES[name]
    if (PICTURES / f"{name}.page.html").exists():
        address = f"pictures/{name}.page.html"
        body = f'<iframe src="{address}" title="{title}" loading="lazy"></iframe>'
        title = f'{title}: <a href="{address}">open it</a>'
    elif (PICTURES / f"{name}.svg").exists():
        body = f'<img src="pictures/{name}.svg" alt="{title}">'
    elif (PICTURES / f"{name}.html").exists():
        body = (PICTURES / f"{name}.html").read_text(encoding="utf-8")
    else:
        return ""
    return f'<figure class="run">{body}<figcaption>{title}</figcaption></figure>'


def _is_fresh():
    """Whether no source of the package is newer than the pictures."""
    made = [path.stat().st_mtime for path in PICTURES.glob("*.*")]
    folders = (TOP / "clgpu_delegate", TOP / "examples")
    files = (path for folder in folders for path in folder.rglob("*.*"))
    sources = [MAKER, *(path for path in files if path.suffix != ".pyc")]
    return bool(made) and min(made) > max(path.stat().st_mtime for path in sources)
