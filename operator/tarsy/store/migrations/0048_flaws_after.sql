-- oldest reader: 4
-- plans: unchanged
-- A trigger before an update of a row makes Postgres read and lock the row twice, at every step of every run. The flaws of
-- a run are set after the few updates that can change them. As a function of plpgsql, what they are is planned once a
-- connection, not with each run.

DROP TRIGGER flaws_change ON investigation;

CREATE OR REPLACE FUNCTION flaws_of(run investigation) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN pg_catalog.array_remove(ARRAY[
        CASE WHEN run.evidence_missing <> '{}' OR run.finding @> '{"no_tool_called": true}' THEN 'EvidenceDegraded' END,
        CASE WHEN pg_catalog.jsonb_path_exists(run.finding, '$.claims[*] ? (@.supported == false)')
            THEN 'UnsupportedClaims' END,
        CASE WHEN pg_catalog.jsonb_path_exists(run.finding, '$.claims[*] ? (@.supported == true && exists(@.ungrounded[*]))')
            THEN 'UngroundedClaims' END,
        CASE WHEN pg_catalog.jsonb_path_exists(run.finding, '$.claims[*] ? (exists(@.citations[*] ? (@.supported == true))
            && !(exists(@.citations[*] ? (@.supported == true && !(@.replaced == true)))))') THEN 'ContradictedClaims' END,
        CASE WHEN run.finding @> '{"structured": false}' THEN 'Unstructured' END,
        CASE WHEN run.budget_limit IS NOT NULL THEN 'BudgetReached' END,
        CASE WHEN run.desired_state = 'Concluded' THEN 'ConcludedEarly' END
    ] || CASE WHEN run.finished_at IS NULL THEN '{}' ELSE ARRAY(
        SELECT DISTINCT CASE c.refused WHEN 'UntrustedDestination' THEN 'ArgumentRefused' ELSE 'ToolNotVerified' END
        FROM tarsy.stage s JOIN tarsy.execution e ON e.stage = s.id JOIN tarsy.mcp_interaction c ON c.execution = e.id
        WHERE s.investigation = run.id AND c.refused IN ('UntrustedDestination', 'ToolChanged', 'ToolNotAccepted')
        ORDER BY 1
    ) END, NULL);
END $$;

CREATE OR REPLACE FUNCTION flaws_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tarsy.investigation i SET flaws = found.flaws FROM tarsy.flaws_of(NEW) AS found (flaws)
    WHERE i.id = NEW.id AND i.flaws <> found.flaws;
    RETURN NULL;
END $$;

CREATE TRIGGER flaws_change AFTER UPDATE OF finished_at, evidence_missing, budget_limit, desired_state ON investigation
    FOR EACH ROW WHEN (NEW.parent IS NULL AND (
        NEW.finished_at IS DISTINCT FROM OLD.finished_at OR NEW.evidence_missing IS DISTINCT FROM OLD.evidence_missing
        OR NEW.budget_limit IS DISTINCT FROM OLD.budget_limit OR NEW.desired_state IS DISTINCT FROM OLD.desired_state))
    EXECUTE FUNCTION flaws_change();
