"""Packs a folder as Helm does, with nothing of the machine or the day in it."""

import gzip
import io
import tarfile
from pathlib import Path


def pack(folder: Path, out: Path) -> Path:
    """Writes the package of a chart; equal folders give equal bytes.

    Args:
        folder: of the chart.
        out: the package.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(str(Path(folder.name) / path.relative_to(folder)))
            entry.size, entry.mode = path.stat().st_size, 0o644
            with path.open("rb") as file:
                archive.addfile(entry, file)
    out.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return out
