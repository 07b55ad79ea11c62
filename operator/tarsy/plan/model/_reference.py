"""Defines the references of a plan: to objects, and to keys of Secrets and ConfigMaps."""

from pydantic import BaseModel, ConfigDict


class FrozenModel(BaseModel):
    """Base of all parts of a plan."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ObjectRef(FrozenModel):
    """A configuration object as it was when the plan was made."""

    kind: str
    namespace: str
    name: str
    uid: str = ""
    generation: int = 0


class SecretKey(FrozenModel):
    """One key of one Secret, read on use."""

    namespace: str
    name: str
    key: str


class ConfigMapKey(FrozenModel):
    """One key of one ConfigMap, read on use."""

    namespace: str
    name: str
    key: str


class Value(FrozenModel):
    """A named value (an environment variable, a header): a literal, or a key of a Secret or a ConfigMap."""

    name: str
    value: str | None = None
    secret: SecretKey | None = None
    config_map: ConfigMapKey | None = None
