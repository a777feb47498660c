"""References of code and pages lead to something that is there."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from tests.architecture.test_shape import MODULES

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
DATA: Final = [path for kind in ("toml", "sql", "md") for path in ROOT.glob(f"[a-z]*/**/*.{kind}")]
SOURCES: Final = [one for one in dict.fromkeys([*MODULES, *PAGES, *DATA]) if one != Path(__file__)]
TESTS: Final = sorted((ROOT / "tests").rglob("test_*.py"))

# A page of ours, and the section that may be named behind it, in quotation marks.
_REFERENCE: Final = re.compile(
    r"(?P<page>docs/[\w./-]+\.md)"
    r"(?:[)`]*,\s+(?:#\s+)?(?:\"(?P<section>[^\"\n]{1,80})\"|(?P<number>section \d)))?"
)
_LINK: Final = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)(?:,\s+\"(?P<section>[^\"\n]{1,80})\")?")
_FENCE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_HEADING: Final = re.compile(r"^#{1,4} +(?P<title>.+?) *$", re.MULTILINE)
_NOT_IN_ANCHOR: Final = re.compile(r"[^\w\- ]")
_TEST_FILE: Final = re.compile(r"`(?P<file>(?:tests/[\w/]+/)?test_\w+\.py)`")
_TEST: Final = re.compile(r"`(?P<name>test_\w+)`")


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def titles(page: Path) -> list[str]:
    return [found["title"] for found in _HEADING.finditer(_FENCE.sub("", text_of(page)))]


def anchors(page: Path) -> set[str]:
    return {_NOT_IN_ANCHOR.sub("", title).lower().replace(" ", "-") for title in titles(page)}


def dangling_references(source: Path) -> Iterator[str]:
    for found in _REFERENCE.finditer(text_of(source)):
        page, section = ROOT / found["page"], found["section"]
        is_lost = not page.is_file() or bool(section and section not in titles(page))
        # Numbers of sections move, titles do not.
        if is_lost or found["number"]:
            yield f"{source.name}: {found[0]}"


def dead_links(page: Path) -> Iterator[str]:
    for found in _LINK.finditer(_FENCE.sub("", text_of(page))):
        target, _, anchor = found["target"].partition("#")
        if "://" in target:
            continue
        path = (page.parent / unquote(target)).resolve() if target else page
        is_there = path.exists() and (path == page or path.is_relative_to(ROOT))
        if not is_there or (anchor and anchor not in anchors(path)):
            yield f"{page.name}: {found['target']}"
        elif found["section"] and found["section"] not in titles(path):
            yield f"{page.name}: {found[0]}"


def missing_tests(page: Path) -> Iterator[str]:
    files = [f"/{one.relative_to(ROOT)}" for one in TESTS]
    code = "".join(map(text_of, TESTS))
    for found in _TEST_FILE.finditer(text_of(page)):
        if not any(file.endswith(f"/{found['file']}") for file in files):
            yield f"{page.name}: {found['file']}"
    for found in _TEST.finditer(text_of(page)):
        if f"def {found['name']}(" not in code:
            yield f"{page.name}: {found['name']}"


def test_a_reference_names_a_page_and_a_section_that_are_there() -> None:
    assert not [lost for source in SOURCES for lost in dangling_references(source)]


def test_a_link_between_pages_leads_to_something() -> None:
    assert not [lost for page in PAGES for lost in dead_links(page)]


def test_a_test_that_a_page_names_is_there() -> None:
    # The contributing guide shows how a test may be called.
    telling = [page for page in PAGES if page.name != "CONTRIBUTING.md"]

    assert not [lost for page in telling for lost in missing_tests(page)]


def test_every_page_of_the_architecture_is_linked_from_its_overview() -> None:
    folder = ROOT / "docs" / "architecture"
    overview = folder / "overview.md"

    linked = {found["target"] for found in _LINK.finditer(text_of(overview))}
    assert {page.name for page in folder.glob("*.md")} - {overview.name} <= linked


def test_what_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        'docs/architecture/nowhere.md, docs/architecture/overview.md, "No such section"\n'
        'docs/architecture/overview.md, section 4, docs/architecture/overview.md, "Packages"\n'
        "[gone](gone.md) [anchor](#nowhere) [web](https://example.org) [here](#title) `test_no_such_thing`\n"
        "# Title\n"
    )

    assert len(list(dangling_references(page))) == 3
    assert len(list(dead_links(page))) == 2
    assert len(list(missing_tests(page))) == 1
