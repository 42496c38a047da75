"""What the site changes in the pages, which are written to be read on a code host as well.

Links out of docs/ lead to pages that are made of the files they name, and links to notebooks likewise. Examples with a
prompt, which the tests run, become code blocks.
"""  # noqa: INP001 reason: no package

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")
FENCE = re.compile(r"^(`{3,}|~{3,})")
PROMPT = ">" * 3
CODE = re.compile(r"(?<![`\[\w])(E\d{3}|I\d{1,2})(?![\w`\]])")
"""A code of an error or an invariant."""
FILE_NAME = re.compile(r"\[([\w-]+\.md)\]\(")
LEXERS = {".py": "python", ".json": "json", ".toml": "toml", ".svg": "xml", ".md": "markdown", ".txt": "text"}
AS_THEY_ARE = {"README.md", "CONTRIBUTING.md"}
"""Files outside of docs/ that are pages themselves."""
UNINDEXED = "---\nsearch:\n  exclude: true\n---\n\n"
"""The head of a page that the search leaves out: of source text."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each file or folder outside of docs/ that a page names."""
    pages = {"CONTRIBUTING.md"}
    for file in files.documentation_pages():
        pages |= {each for each in outward(file.src_uri, file.content_string) if (ROOT / each).exists()}
    pages |= {each for name in AS_THEY_ARE & pages for each in outward_of_root(name)}
    for each in sorted(pages):
        files.append(File.generated(config, uri_of(each), content=page_of(each)))
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        uri = path.relative_to(ROOT / "docs").with_suffix(".md").as_posix()
        files.append(File.generated(config, uri, content=notebook_page(path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_others: object) -> str:
    uri = page.file.src_uri
    text = fenced_examples(spaced_lists(titled(redirected(markdown, uri))))
    return linked_codes(text) if uri.startswith(("language/", "cookbook/")) else text


# -- links out of docs/ --------------------------------------------------------------------------------------


def outward(uri: str, text: str) -> set[str]:
    """The paths from the project's root that a page names, of those outside of docs/."""
    targets = {posixpath.normpath(f"docs/{posixpath.dirname(uri)}/{link[1]}") for link in links(text)}
    return {each for each in targets if not each.startswith(("docs/", "..")) and each != "docs"}


def outward_of_root(name: str) -> set[str]:
    targets = {posixpath.normpath(link[1]) for link in links((ROOT / name).read_text(encoding="utf-8"))}
    return {each for each in targets if not each.startswith("docs/") and (ROOT / each).exists()}


def links(text: str) -> list[re.Match[str]]:
    return [each for each in LINK.finditer(text) if "://" not in each[1]]


def uri_of(path: str) -> str:
    """The page of a file or folder outside of docs/."""
    return f"source/{path}" if path in AS_THEY_ARE else f"source/{path}.md"


def page_of(path: str) -> str:
    file = ROOT / path
    if path in AS_THEY_ARE:
        return file.read_text(encoding="utf-8")
    if file.is_dir():
        names = sorted(each.name + "/" * each.is_dir() for each in file.iterdir() if each.name[0] not in "._")
        return f"{UNINDEXED}# {path}/\n\n" + "".join(f"* `{name}`\n" for name in names)
    lexer = LEXERS.get(file.suffix, "text")
    return f"{UNINDEXED}# {path}\n\n````{lexer}\n{file.read_text(encoding='utf-8').rstrip()}\n````\n"


def notebook_page(path: Path) -> str:
    """A notebook as a page: its text, its code, and what the code printed when it was stored."""
    parts: list[str] = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(f"```python\n{text}\n```" if cell["cell_type"] == "code" else text)
        for output in cell.get("outputs", ()):
            shown = output.get("text") or output["data"]["text/plain"]
            parts.append(f"```text\n{''.join(shown).rstrip()}\n```")
    return "\n\n".join([*parts, f"[The notebook]({path.name})"]) + "\n"


def redirected(markdown: str, uri: str) -> str:
    """The page with links out of docs/, or to a folder in it, that lead to a page."""
    made = uri.startswith("source/")
    if made and uri.removeprefix("source/") not in AS_THEY_ARE:
        return markdown
    folder = "" if made else posixpath.join("docs", posixpath.dirname(uri))

    def target(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[1]))
        if "://" in link[1] or not (ROOT / path).exists():
            return link[0]
        inside = path.removeprefix("docs/") if path.startswith("docs/") else uri_of(path)
        if inside.endswith(".ipynb") and not uri.startswith("notebooks/"):
            inside = inside.removesuffix(".ipynb") + ".md"
        if path.startswith("docs/") and (ROOT / path).is_dir():
            inside += "/index.md" if (ROOT / path / "index.md").exists() else "/" + first_page(ROOT / path)
        return posixpath.relpath(inside, posixpath.dirname(uri) or ".") + (link[2] or "")

    return outside_code(markdown, lambda text: LINK.sub(target, text))


def titled(markdown: str) -> str:
    """The page with links whose text is a page's file name, `[hopper.md](...)`, under that page's title."""

    def title(link: re.Match[str]) -> str:
        page = ROOT / "docs" / link[1]
        first = page.read_text(encoding="utf-8").partition("\n")[0] if page.exists() else ""
        return f"[{first.removeprefix('# ')}](" if first.startswith("# ") else link[0]

    return outside_code(markdown, lambda line: FILE_NAME.sub(title, line))


def linked_codes(markdown: str) -> str:
    """A page of a folder in docs/ whose codes of errors and invariants lead to their pages."""

    def link(code: re.Match[str]) -> str:
        letter, number = code[1][0], code[1][1:]
        page = f"errors/{code[1]}.md" if letter == "E" else f"invariants/I{number:>02}.md"
        return f"[{code[1]}](../{page})" if (ROOT / "docs" / page).exists() else code[1]

    return outside_code(markdown, lambda line: line if line.startswith((":::", "#")) else CODE.sub(link, line))


def first_page(folder: Path) -> str:
    return min(each.stem for each in folder.iterdir() if each.suffix in {".md", ".ipynb"}) + ".md"


# -- text that code hosts read otherwise ---------------------------------------------------------------------


def outside_code(markdown: str, change) -> str:  # noqa: ANN001 reason: a function of text
    """The page with a change made to all lines that stand in no code block."""
    return "\n".join(line if code else change(line) for line, code in lines_of(markdown))


def lines_of(markdown: str) -> list[tuple[str, bool]]:
    """The lines, and whether each belongs to a code block with fences."""
    found: list[tuple[str, bool]] = []
    fence = ""
    for line in markdown.split("\n"):
        mark = FENCE.match(line)
        found.append((line, bool(fence or mark)))
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip() == fence:
            fence = ""
    return found


def spaced_lists(markdown: str) -> str:
    """The page with an empty line between a paragraph and a list right after it."""
    out: list[str] = []
    for line, code in lines_of(markdown):
        before = out[-1] if out else ""
        starts = re.match(r"(\*|-|\d+\.) ", line) is not None and not code
        if starts and before.strip() and not re.match(r"(\*|-|\d+\.) |\s|\|", before):
            out.append("")
        out.append(line)
    return "\n".join(out)


def fenced_examples(markdown: str) -> str:
    """The page with examples that have a prompt in code blocks; an empty line ends an example, as for doctest."""
    out: list[str] = []
    within = False
    for line, code in lines_of(markdown):
        if not code and not within and line.startswith(PROMPT):
            out.append("```pycon")
            within = True
        elif within and not line.strip():
            out.append("```")
            within = False
        out.append(line)
    return "\n".join([*out, "```"] if within else out)
