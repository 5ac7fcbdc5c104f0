"""MkDocs hooks that add the examples to the site, since they are in a folder beside docs/.

Belongs here: making links to examples work in the site. Belongs elsewhere: pages.
"""

from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

EXAMPLES = Path(__file__).parents[1] / "examples"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the examples to the site."""
    for path in sorted([*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.java")]):
        files.append(File.generated(config, f"examples/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Change the paths in links to examples from those in the repository to those in the site."""
    deeper = markdown.replace("](../examples/", "](examples/")
    return deeper.replace("](../../examples/", "](../examples/")
