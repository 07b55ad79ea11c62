"""Adds the generated pages to mkdocs, and shows diagrams as pictures.

Decision: mkdocs loads this module by its path, so the checkout is put on the path for the imports of hack.site.
"""

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages to those of docs/."""
    sys.path.insert(0, str(Path(config.config_file_path).parent))
    from hack.site.pages import generated

    for path, text in generated().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Shows the diagrams of a page as pictures."""
    from hack.site.diagrams import with_pictures

    return with_pictures(page.file.src_uri, markdown)
