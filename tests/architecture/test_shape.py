"""The checkout keeps the shape that the contributing guide describes."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["build-backend"]["module-name"]
LIMIT = 400
NOWHERE = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "base", "misc"}
SHIPPED = [module for package in PACKAGES for module in sorted((ROOT / package).rglob("*.py"))]
MODULES = [*SHIPPED, *sorted((ROOT / "tests").rglob("*.py"))]
ENVIRONMENT = {"environ", "environb", "getenv", "getenvb", "putenv"}


def name(module: Path) -> str:
    return str(module.relative_to(ROOT))


@pytest.mark.parametrize("module", SHIPPED, ids=name)
def test_module_can_be_read_in_one_go(module: Path) -> None:
    assert len(module.read_text().splitlines()) <= LIMIT


@pytest.mark.parametrize("module", MODULES, ids=name)
def test_module_is_named_by_what_it_holds(module: Path) -> None:
    assert not NOWHERE & set(module.relative_to(ROOT).with_suffix("").parts)


@pytest.mark.parametrize("module", SHIPPED, ids=name)
def test_environment_is_read_by_the_settings_alone(module: Path) -> None:
    reads = [
        node.lineno
        for node in ast.walk(ast.parse(module.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr in ENVIRONMENT)
        or (
            isinstance(node, ast.ImportFrom)
            and node.module == "os"
            and ENVIRONMENT & {a.name for a in node.names}
        )
    ]

    assert name(module) == "service/settings.py" or not reads


@pytest.mark.parametrize("module", SHIPPED, ids=name)
def test_annotations_are_left_for_the_frameworks_to_read(module: Path) -> None:
    assert "from __future__ import annotations" not in module.read_text()


def test_imports_point_inwards() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]

    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stdout
