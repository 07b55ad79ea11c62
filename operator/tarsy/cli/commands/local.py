"""`tarsy dev` and `tarsy demo`: everything on this machine."""

from tarsy.cli.commands.options import Api, BaseUrl, Keep, Model
from tarsy.cli.running import go


def dev(keep: Keep = None, model: Model = None, model_base_url: BaseUrl = None, api: Api = "auto") -> None:
    """Run everything on this machine until Ctrl-C; nothing stays but what --keep says."""
    from tarsy.cli.dev import develop

    go(develop(keep, model, model_base_url, api))


def demo(keep: Keep = None, model: Model = None, model_base_url: BaseUrl = None, api: Api = "auto") -> None:
    """Investigate a crash-looping Deployment on this machine; ends 0 when the investigation succeeded."""
    from tarsy.cli.demo import demonstrate

    go(demonstrate(keep, model, model_base_url, api))
