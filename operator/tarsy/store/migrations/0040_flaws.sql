-- oldest reader: 4
-- plans: unchanged
-- What lists show of an investigation at a glance: flaws, severity, and which alerts are alike. A trigger keeps the flaws,
-- whatever version of the code writes the record. Code before this migration writes no severity and no alert key.

ALTER TABLE investigation ADD COLUMN flaws text[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN investigation.flaws IS 'what lowers the worth of the finding (tarsy.record.flaws), set by a trigger';
ALTER TABLE investigation_input ADD COLUMN severity text, ADD COLUMN alert_key bytea;
COMMENT ON COLUMN investigation_input.severity IS 'of the alert; null: not given, or accepted before migration 40';
COMMENT ON COLUMN investigation_input.alert_key IS
    'digest of namespace, alert type and labels or text: equal for alerts that are alike; null: accepted before migration 40';

-- Flaws of a run. Those of calls are read at its end only.
CREATE FUNCTION flaws_of(run investigation) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT pg_catalog.array_remove(ARRAY[
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
    ) END, NULL)
$$;

CREATE FUNCTION flaws_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.flaws = tarsy.flaws_of(NEW);
    RETURN NEW;
END $$;

CREATE TRIGGER flaws_change BEFORE UPDATE ON investigation FOR EACH ROW WHEN (NEW.parent IS NULL AND (
    NEW.finished_at IS DISTINCT FROM OLD.finished_at OR NEW.evidence_missing IS DISTINCT FROM OLD.evidence_missing
    OR NEW.budget_limit IS DISTINCT FROM OLD.budget_limit OR NEW.desired_state IS DISTINCT FROM OLD.desired_state))
    EXECUTE FUNCTION flaws_change();

-- Of the newest records there are, as lists are read from the newest back; older ones are found by all but their flaws.
UPDATE investigation i SET flaws = flaws_of(i)
WHERE i.id IN (SELECT id FROM investigation WHERE parent IS NULL AND finished_at IS NOT NULL ORDER BY accepted_at DESC LIMIT 20000)
    AND flaws_of(i) <> '{}';

CREATE INDEX investigation_flawed ON investigation (accepted_at DESC, id DESC) WHERE parent IS NULL AND flaws <> '{}';
