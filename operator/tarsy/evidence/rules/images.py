"""Defines rules about container images that cannot be pulled or do not run on their node."""

import re
from collections.abc import Iterator
from functools import partial

from tarsy.evidence.fields import Object, one_line, string
from tarsy.evidence.rules.facts import Facts
from tarsy.evidence.rules.signal import Certainty, Rule, Signal, rule
from tarsy.evidence.snapshot import ObjectKey
from tarsy.evidence.workloads import ContainerState, containers

_PULL = ("ImagePullBackOff", "ErrImagePull")
_FIELDS = ("image", "imagePullSecrets", "imagePullPolicy")
_ABSENT = re.compile(r"not found|manifest unknown|does not exist|name unknown|no such image", re.IGNORECASE)
_DENIED = re.compile(
    r"unauthorized|authentication required|access denied|denied: |no basic auth|insufficient_scope|\b40[13]\b"
    r"|requires 'docker login'|authorization failed",
    re.IGNORECASE,
)
_UNREACHABLE = re.compile(
    r"no such host|i/o timeout|connection refused|no route to host|network is unreachable|x509|tls: |EOF"
    r"|Client\.Timeout|temporary failure in name resolution|server gave HTTP response|\b5\d\d\b",
    re.IGNORECASE,
)
_RATE = re.compile(r"toomanyrequests|rate limit|429", re.IGNORECASE)
_FORMAT = re.compile(r"exec format error|no match for platform|no matching manifest for", re.IGNORECASE)


def _pulls(facts: Facts) -> Iterator[tuple[ObjectKey, str, str, list[str]]]:
    """Yields pod, container, image and messages of containers whose image was not pulled, the container's own first.

    While the kubelet waits for its next try, only the Events of the pod say why.
    """
    for key, pod, state in facts.failing_containers:
        if state.waiting in _PULL:
            texts = [one_line(state.message), *facts.messages(key, "Failed")]
            yield key, state.name, _image(pod, state), [text for text in texts if text]


def _image(pod: Object, state: ContainerState) -> str:
    return next((string(one, "image") for one in containers(pod) if one.get("name") == state.name), "")


def _not_pulled(
    facts: Facts, found: re.Pattern[str], without: tuple[re.Pattern[str], ...], text: str
) -> Iterator[Signal]:
    """Yields a signal for each image that was not pulled, with words that match `found` and none of `without`."""
    for key, container, image, messages in _pulls(facts):
        fitting = (one for one in messages if found.search(one) and not any(w.search(one) for w in without))
        if message := next(fitting, ""):
            yield Signal((key,), f"Container {container} of {key} waits for image {image}: {text}.", message)


def _pull(name: str, about: str, found: re.Pattern[str], without: tuple[re.Pattern[str], ...], text: str) -> Rule:
    """Makes a rule of the words of the kubelet and the registry.

    Args:
        name: of the rule.
        about: the fault, in words.
        found: pattern of the words.
        without: patterns of the words of other faults, which these words also fit.
        text: why the image was not pulled.
    """
    return Rule(name, about, partial(_not_pulled, found=found, without=without, text=text), _FIELDS)


@rule("image-name-invalid", "The image reference is not valid", *_FIELDS)
def invalid_name(facts: Facts) -> Iterator[Signal]:
    """Finds image references that cannot be parsed."""
    for key, pod, state in facts.failing_containers:
        if state.waiting == "InvalidImageName":
            text = (
                f"Container {state.name} of {key} names the image {_image(pod, state)!r}, which is no valid reference."
            )
            yield Signal((key,), text, state.message or state.waiting)


@rule("image-other-architecture", "The image is built for another processor architecture", *_FIELDS)
def other_architecture(facts: Facts) -> Iterator[Signal]:
    """Finds images of another architecture than their node's."""
    for key, container, image, messages in _pulls(facts):
        if message := next((one for one in messages if _FORMAT.search(one)), ""):
            yield Signal((key,), f"Image {image} of container {container} has no build for its node.", message)
    for key, pod, state in facts.failing_containers:
        message = string(state.ended, "message") or state.message
        if _FORMAT.search(message) and state.waiting not in _PULL:
            text = f"Image {_image(pod, state)} of container {state.name} of {key} is built for another architecture."
            yield Signal((key,), text, one_line(message), Certainty.CERTAIN)


RULES = (
    _pull(
        "image-not-found",
        "The registry has no such image or tag",
        _ABSENT,
        (_DENIED, _RATE, _FORMAT),
        "the registry has no such image or tag",
    ),
    _pull(
        "image-pull-denied",
        "The registry refuses the credentials of the pod, or the image is private",
        _DENIED,
        (_RATE,),
        "the registry refuses the pull (imagePullSecrets are missing or wrong, or it has no such repository)",
    ),
    _pull(
        "image-registry-unreachable",
        "The registry does not answer",
        _UNREACHABLE,
        (_ABSENT, _DENIED, _RATE),
        "the registry is not reached",
    ),
    _pull(
        "image-rate-limited",
        "The registry limits the rate of pulls",
        _RATE,
        (),
        "the registry limits the rate of pulls",
    ),
    invalid_name,
    other_architecture,
)
