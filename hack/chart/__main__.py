"""Writes both charts as folders and as packages below build/charts/."""

import argparse
from pathlib import Path

from hack.chart.artifact_hub import write_repository
from hack.chart.charts import CHARTS, write_chart
from hack.chart.packing import pack
from hack.components import CHECKOUT
from hack.sbom import version


def main() -> None:
    """Writes the charts."""
    parser = argparse.ArgumentParser(prog="python -m hack.chart", description=__doc__)
    parser.add_argument("--out", type=Path, default=CHECKOUT / "build" / "charts", help="folder of the charts")
    parser.add_argument("--image", default="", help="image that the charts name, as name:tag or name@sha256:digest")
    parser.add_argument("--artifacthub-id", default="", help="ID of the repository; writes artifacthub-repo.yml")
    options = parser.parse_args()
    for stale in options.out.glob("*.tgz"):
        stale.unlink()
    for chart in CHARTS:
        folder = options.out / chart.name
        try:
            write_chart(chart, folder, version(), image=options.image)
        except ValueError as error:
            parser.error(str(error))
        print(pack(folder, options.out / f"{chart.name}-{version()}.tgz"))
    if options.artifacthub_id:
        try:
            write_repository(options.out / "artifacthub-repo.yml", options.artifacthub_id)
        except ValueError as error:
            parser.error(str(error))


if __name__ == "__main__":
    main()
