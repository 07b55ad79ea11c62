"""Chooses the objects that a new run is planned from: the current ones, or those of the serving revision.

A replay is not planned here: it measures the current objects.

Decision: the stored revision counts, not the status of the Chain, which may be of before the last push. The revision of
the current objects is computed here as well, so that a change of an Agent waits even if no reconcile has seen it yet.
"""

from dataclasses import dataclass

from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.promotion.decision import short
from tarsy.controllers.runs.inputs import NotYet
from tarsy.plan.catalog import Catalog
from tarsy.plan.errors import FieldPath, PlanError, PlanInvalid
from tarsy.plan.revision.serving import ServingCatalog
from tarsy.plan.revision.snapshot import Snapshot, SnapshotUnreadable
from tarsy.plan.revision.template import revision_of
from tarsy.resources.v1alpha1 import Chain


@dataclass(frozen=True, slots=True)
class PlanSource:
    """The Chain and the objects that a run is planned from."""

    chain: Chain
    catalog: Catalog
    revision: str | None = None
    """Short name of the serving revision; None: the current objects."""

    def withdrawn(self) -> tuple[PlanError, ...]:
        """Returns the rights of the revision that were withdrawn and that no other error names."""
        return tuple(self.catalog.withdrawn) if isinstance(self.catalog, ServingCatalog) else ()

    def refusal(self, errors: tuple[PlanError, ...], alert: FieldPath) -> NotYet:
        """Returns the refusal of a run whose plan has errors.

        Args:
            errors: all errors of the plan.
            alert: the field that holds the alert; its own errors have nothing to do with the revision.
        """
        said = "; ".join(map(str, errors))
        of_alert = (alert.kind, alert.namespace, alert.name)
        if self.revision is None or all((one.kind, one.namespace, one.name) == of_alert for one in errors):
            return NotYet("PlanInvalid", said)
        return NotYet(
            "RightsWithdrawn",
            f"{self.chain} serves revision {self.revision}, and the current objects no longer allow what it needs: "
            f"{said}; restore that, or let the current revision serve (see condition Promoted of the Chain)",
        )


async def plan_source(chain: Chain, context: ReconcileContext) -> PlanSource:
    """Returns the Chain and the objects that a new run is planned from.

    Args:
        chain: the Chain as it is now.
        context: of the reconcile.

    Raises:
        NotYet: the stored revision cannot be read.
        StoreError: the record could not be read.
    """
    promotion, revisions = chain.spec.promotion, context.store.revisions
    now = PlanSource(chain, context.cache)
    if revisions is None or promotion is None or promotion.policy == "Immediate":
        return now
    stored = await revisions.serving(chain.metadata.uid)
    if stored is None:
        return now  # the first revision
    digest, objects = stored
    try:
        if revision_of(chain, context.cache, context.settings.library_namespace or None).digest == digest:
            return now
    except PlanInvalid:
        pass  # a broken push: the serving revision goes on
    try:
        catalog = ServingCatalog(Snapshot.load(objects), context.cache)
    except SnapshotUnreadable as error:
        raise NotYet(
            "RevisionUnreadable",
            f"{chain} serves revision {short(digest)}, which this release cannot read ({error}); let the current "
            "revision serve (spec.promotion.override), or run the release that stored it",
        ) from error
    return PlanSource(catalog.chain(chain), catalog, short(digest))
