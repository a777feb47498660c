"""The generic top-level names belong to this checkout and to nobody else."""

import tomllib
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["build-backend"]["module-name"]


def test_every_package_of_the_checkout_is_built() -> None:
    typed = {marker.parent.name for marker in ROOT.glob("*/py.typed")}

    assert typed == set(PACKAGES)


@pytest.mark.parametrize("name", PACKAGES)
def test_package_comes_from_the_checkout(name: str) -> None:
    file = import_module(name).__file__

    assert file is not None
    assert Path(file).is_relative_to(ROOT)


@pytest.mark.parametrize("name", PACKAGES)
def test_no_other_distribution_claims_the_name(name: str) -> None:
    # An editable install of ours is a path entry and is not listed at all.
    owners = set(packages_distributions().get(name, []))

    assert owners <= {"afterword"}
