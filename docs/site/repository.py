"""Links out of docs/: what a page links to in the repository becomes a page of the site.

README.md is the home page. Another document becomes a page as it is, a directory a list of what it
holds, and any other file a page with its text. So every link works in the repository and in the
site, and the site needs no host that shows the sources.
"""

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
LANGUAGES = {".py": "python", ".toml": "toml", ".json": "json", ".yaml": "yaml", ".service": "ini"}

_origins: dict[str, PurePosixPath] = {}
"""Of each page that is made here, by its name in the site: the document it is made of."""


def on_files(files: Files, *, config: MkDocsConfig, **_: Any) -> None:
    """Add a page for each file outside of docs/ that a page leads to."""
    root = Path(config.config_file_path).parent
    _origins.clear()
    known = {PurePosixPath("README.md")}
    todo = [PurePosixPath("docs", file.src_uri) for file in files.documentation_pages()]
    todo += known
    while todo:
        origin = todo.pop()
        text = (root / origin).read_text() if origin.suffix == ".md" else ""
        targets = [_target(origin, match[1]) for match in LINK.finditer(text)]
        if origin.parts[0] != "docs":
            if (root / origin).is_dir():
                targets = _inside(root, origin)
            page = _page(origin)
            _origins[page] = origin
            content = text or _shown(root, origin)
            files.append(File.generated(config, page, content=content))
        outside = [target for target in targets if target.parts[0] not in ("docs", "..")]
        for target in outside:
            if target not in known and (root / target).exists():
                known.add(target)
                todo.append(target)


def on_page_markdown(markdown: str, *, page: Any, config: MkDocsConfig, **_: Any) -> str:
    """Let links that leave docs/, or come from outside of it, lead to pages of the site."""
    here = page.file.src_uri
    origin = _origins.get(here, PurePosixPath("docs", here))
    root = Path(config.config_file_path).parent

    def moved(link: re.Match[str]) -> str:
        target = _target(origin, link[1])
        if not (root / target).exists():
            return link[0]  # Told of when the page is checked, in the words of the page.
        return os.path.relpath(_page(target), PurePosixPath(here).parent) + (link[2] or "")

    return LINK.sub(moved, markdown)


def _target(origin: PurePosixPath, link: str) -> PurePosixPath:
    """What a link of a document leads to, from the top of the repository."""
    return PurePosixPath(os.path.normpath(origin.parent / link))


def _page(target: PurePosixPath) -> str:
    """The name of the page that shows a file or directory of the repository."""
    if target.parts[0] == "docs":
        return str(target.relative_to("docs"))
    if target == PurePosixPath("README.md"):
        return "index.md"
    page = "/".join(["files", *(part.lstrip(".") for part in target.parts)])  # Hidden: not built.
    return page if target.suffix == ".md" else f"{page}.md"


def _inside(root: Path, directory: PurePosixPath) -> list[PurePosixPath]:
    """All texts in a directory and in those below it."""
    found = sorted(path for path in (root / directory).rglob("*") if _is_text(path))
    return [PurePosixPath(path.relative_to(root).as_posix()) for path in found]


def _is_text(path: Path) -> bool:
    """Not so are what Python compiled, and journals that examples have left."""
    try:
        return path.is_file() and bool(path.read_text())
    except UnicodeDecodeError:
        return False


def _shown(root: Path, path: PurePosixPath) -> str:
    """The page of a directory, or of a file that is no document. The search leaves it out."""
    head = f"---\nsearch: {{exclude: true}}\n---\n\n# {path}\n\n"
    if (root / path).is_dir():
        files = _inside(root, path)
        return head + "".join(
            f"- [{f.relative_to(path)}]({f.relative_to(path.parent)})\n" for f in files
        )
    text = (root / path).read_text()
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{head}{fence}{LANGUAGES.get(path.suffix, 'text')}\n{text.rstrip()}\n{fence}\n"
