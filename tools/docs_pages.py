"""A hook of mkdocs: pages of the site that are files of the repository's top folder."""

from pathlib import Path

PAGES = {
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
}


def on_page_markdown(markdown, page, config, files):  # noqa: ARG001  # mkdocs names them
    """The page's text; links into docs/, and to other such files, start from there."""
    source = PAGES.get(page.file.src_uri)
    if source is None:
        return markdown
    top = Path(config["config_file_path"]).parent
    text = (top / source).read_text(encoding="utf-8").replace("](docs/", "](")
    for name, other in PAGES.items():
        text = text.replace(f"]({other}", f"]({name}")
    return text
