-- oldest reader: 4
-- plans: unchanged
-- What became of the alert of a finished run, without a model: the outcome of its incidents. Triggers keep what an outcome
-- is decided from, whatever version of the code writes incidents and runs. Code before this migration writes no uid of
-- the alert: its runs have no outcome.

ALTER TABLE investigation ADD COLUMN incident_outcome text;
COMMENT ON COLUMN investigation.incident_outcome IS
    'Settled, Recurred or ChangedAndSettled, once (tarsy.record.incident_outcome); null: not known, or not yet';
CREATE INDEX investigation_incident_outcome ON investigation (incident_outcome, accepted_at DESC, id DESC)
    WHERE incident_outcome IS NOT NULL;
ALTER TABLE investigation_input ADD COLUMN alert_uid text;
COMMENT ON COLUMN investigation_input.alert_uid IS 'uid of the Alert that the run is about; null: none, or accepted before migration 41';

ALTER TABLE incident ADD COLUMN settled_at timestamptz, ADD COLUMN refired_at timestamptz;
COMMENT ON COLUMN incident.settled_at IS 'when it was first reported as resolved, by the clock of Postgres';
COMMENT ON COLUMN incident.refired_at IS 'when it was first reported as firing later than 5 minutes after settled_at';

-- A firing of the same start that comes shortly after the resolve was sent before it.
CREATE FUNCTION incident_course() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.resolved_at IS NOT NULL THEN
        NEW.settled_at = coalesce(NEW.settled_at, NEW.resolved_at);
    ELSIF TG_OP = 'UPDATE' AND NEW.repeats > OLD.repeats AND OLD.settled_at < pg_catalog.now() - interval '5 minutes' THEN
        NEW.refired_at = coalesce(OLD.refired_at, pg_catalog.now());
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER incident_course BEFORE INSERT OR UPDATE ON incident FOR EACH ROW EXECUTE FUNCTION incident_course();

CREATE TABLE early_resolution (
    group_hash text PRIMARY KEY,
    last_start timestamptz NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 80);
COMMENT ON TABLE early_resolution IS 'resolved notifications that came before the firing that they end';
COMMENT ON COLUMN early_resolution.last_start IS 'latest start of what was resolved, by the clock of its sender';
CREATE INDEX early_resolution_received ON early_resolution (received_at);

CREATE TABLE outcome_look (
    investigation uuid PRIMARY KEY REFERENCES investigation ON DELETE CASCADE,
    alert_uid text NOT NULL,
    look_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 70);
COMMENT ON TABLE outcome_look IS 'finished runs whose outcome is not decided, and when to look next';
CREATE INDEX outcome_look_due ON outcome_look (look_at);
CREATE INDEX outcome_look_alert ON outcome_look (alert_uid);

CREATE TABLE incident_outcome (
    investigation uuid NOT NULL REFERENCES investigation ON DELETE CASCADE,
    incident uuid NOT NULL,
    outcome text NOT NULL,
    settled_at timestamptz,
    fired_again_at timestamptz,
    change text,
    decided_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (investigation, incident)
);
COMMENT ON TABLE incident_outcome IS 'outcome of each incident of a run: the one of its Alert, and those folded into it';
COMMENT ON COLUMN incident_outcome.change IS 'what was changed between finding and resolve, as KIND/NAME';

CREATE FUNCTION outcome_begins() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO tarsy.outcome_look (investigation, alert_uid)
    SELECT n.investigation, n.alert_uid FROM tarsy.investigation_input n
    WHERE n.investigation = NEW.id AND n.alert_uid IS NOT NULL
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER outcome_begins AFTER UPDATE OF finding ON investigation
    FOR EACH ROW WHEN (
        NEW.parent IS NULL AND NOT NEW.replay AND OLD.finished_at IS NULL AND NEW.finished_at IS NOT NULL
        AND NEW.state = 'completed' AND NEW.finding IS NOT NULL
    )
    EXECUTE FUNCTION outcome_begins();

-- Wakes the look at the runs of an incident that was resolved, or fired again as itself or as a later one.
CREATE FUNCTION outcome_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE tarsy.outcome_look SET look_at = pg_catalog.now() WHERE investigation IN (
        SELECT l.investigation FROM tarsy.outcome_look l WHERE l.alert_uid IN (
            SELECT coalesce(p.alert_uid, i.alert_uid) FROM (
                (SELECT * FROM tarsy.incident WHERE group_hash = NEW.group_hash ORDER BY opened_at DESC LIMIT 20)
                UNION ALL
                (SELECT * FROM tarsy.incident WHERE namespace = NEW.namespace AND incident_key = NEW.incident_key
                ORDER BY opened_at DESC LIMIT 20)
            ) i LEFT JOIN tarsy.incident p ON p.id = i.parent
        ) ORDER BY l.investigation FOR UPDATE
    );
    RETURN NULL;
END $$;
CREATE TRIGGER outcome_moves AFTER INSERT ON incident FOR EACH ROW EXECUTE FUNCTION outcome_moves();
CREATE TRIGGER outcome_moves_on AFTER UPDATE ON incident
    FOR EACH ROW WHEN (
        NEW.settled_at IS DISTINCT FROM OLD.settled_at OR NEW.refired_at IS DISTINCT FROM OLD.refired_at
    )
    EXECUTE FUNCTION outcome_moves();

-- Versions are timed by their recorder; an outcome compares only times of Postgres.
ALTER TABLE object_version ADD COLUMN recorded_at timestamptz;
ALTER TABLE object_version ALTER COLUMN recorded_at SET DEFAULT now();
COMMENT ON COLUMN object_version.recorded_at IS 'by the clock of Postgres; null: before migration 41';
CREATE INDEX tool_approval_consumed ON tool_approval (decided_at) WHERE state = 'consumed';
