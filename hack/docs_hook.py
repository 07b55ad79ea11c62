"""mkdocs asks here for the pages that are made at build.

Decision: mkdocs loads this by its path, so the checkout is put on the path for the imports; nothing else is done.
"""

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages to those of docs/."""
    sys.path.insert(0, str(Path(config.config_file_path).parent))
    from hack.site.pages import generated

    for path, text in generated().items():
        files.append(File.generated(config, path, content=text))
    return files
