"""Describes errors of a configuration without its content."""

import yaml
from kubernetes.aio import config as kube_config


def text_without_content(error: Exception) -> str:
    """Describes the error in a configuration without quoting it: a kubeconfig holds tokens and keys."""
    if isinstance(error, kube_config.ConfigException | OSError):
        return str(error)
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark:
        return f"it is not valid YAML (line {error.problem_mark.line + 1})"
    return f"it is malformed ({type(error).__name__})"
