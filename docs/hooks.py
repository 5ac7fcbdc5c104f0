"""What the site needs beyond mkdocs.yml: pages link to examples, which stand beside docs/.

Belongs here: making such links lead somewhere in the site, too. Does not: pages.
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
    """Lead links to the examples in the repository to those in the site."""
    deeper = markdown.replace("](../examples/", "](examples/")
    return deeper.replace("](../../examples/", "](../examples/")
