"""A hook of mkdocs: pages of the site that are files of the repository's top folder."""

from pathlib import Path

PAGES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}


def on_page_markdown(markdown, page, config, files):  # noqa: ARG001  # mkdocs names them
    """The page's text; links into docs/ start from there."""
    source = PAGES.get(page.file.src_uri)
    if source is None:
        return markdown
    top = Path(config["config_file_path"]).parent
    return (top / source).read_text(encoding="utf-8").replace("](docs/", "](")
