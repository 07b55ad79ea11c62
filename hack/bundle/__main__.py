"""Writes the bundle, its Dockerfile and what is applied beside, below build/bundle/."""

import argparse
from pathlib import Path

from hack.bundle.files import write_bundle
from hack.components import CHECKOUT
from hack.sbom import version


def main() -> None:
    """Writes the bundle."""
    parser = argparse.ArgumentParser(prog="python -m hack.bundle", description=__doc__)
    parser.add_argument("--out", type=Path, default=CHECKOUT / "build" / "bundle", help="folder of the bundle")
    parser.add_argument("--image", default="", help="image of the operator, as name:tag or name@sha256:digest")
    parser.add_argument("--channel", default="alpha", help="channel of the bundle (default: alpha)")
    parser.add_argument("--replaces", default="", help="version that this one upgrades, such as 0.1.0")
    options = parser.parse_args()
    try:
        write_bundle(
            options.out, version(), image=options.image, channel=options.channel, replaces=options.replaces or None
        )
    except ValueError as error:
        parser.error(str(error))
    print(options.out)


if __name__ == "__main__":
    main()
