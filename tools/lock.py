"""Write requirements/dev.txt: every dependency, also of development, pinned with hashes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ["hatchling>=1.27", "editables>=0.5"]  # what an editable install needs without network access to more
OPTIONS = ["--generate-hashes", "--strip-extras", "--allow-unsafe", "--no-header", "--no-annotate", "--upgrade"]
SILENT = ["--quiet", "--no-emit-index-url", "--no-emit-find-links", "--no-emit-trusted-host"]


def main() -> None:
    """Resolve anew and write the lock."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    systems = tomllib.loads((ROOT / "systems" / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [
        *project["project"]["dependencies"],
        *(
            each
            for name, extra in project["project"]["optional-dependencies"].items()
            if name != "all"
            for each in extra
        ),
        *project["dependency-groups"]["dev"],
        *(needed for needed in systems["project"]["dependencies"] if not needed.startswith("perdure")),
        *BUILD,
    ]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "pip-tools"]
    subprocess.run(pip, check=True)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "dev.in"
        source.write_text("\n".join(wanted) + "\n", encoding="utf-8")
        target = str(ROOT / "requirements" / "dev.txt")
        compiler = [sys.executable, "-m", "piptools", "compile", *OPTIONS, *SILENT, "-o", target, str(source)]
        subprocess.run(compiler, check=True)


if __name__ == "__main__":
    main()
