-- What the judgement knows of groups: how fast members are, what is the matter with each group, and
-- how late it is forecast to be. Planners write by functions; they rewrite and delete nothing else.

CREATE FUNCTION fairlead.record_capacities(known jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM fairlead.member_capacity kept
    WHERE known ? kept.group_id AND NOT known -> kept.group_id ? kept.member;
    INSERT INTO fairlead.member_capacity AS kept
        (group_id, member, records_per_s, measured, measured_at, evidence)
    SELECT of_group.key, of_member.key, found.records_per_s, found.measured, found.measured_at,
           found.evidence
    FROM jsonb_each(known) of_group
    CROSS JOIN LATERAL jsonb_each(of_group.value) of_member
    CROSS JOIN LATERAL jsonb_to_record(of_member.value) AS found
        (records_per_s double precision, measured boolean, measured_at timestamptz, evidence text)
    ON CONFLICT (group_id, member) DO UPDATE SET
        records_per_s = excluded.records_per_s, measured = excluded.measured,
        measured_at = excluded.measured_at, evidence = excluded.evidence
    WHERE (kept.records_per_s, kept.measured, kept.measured_at)
        IS DISTINCT FROM (excluded.records_per_s, excluded.measured, excluded.measured_at);
END $$;
COMMENT ON FUNCTION fairlead.record_capacities IS
    'Replaces what is known of the members of groups: group to member to what is known of it.';


CREATE FUNCTION fairlead.record_diagnoses(seen jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- Looks and planning runs take turns, or both would begin a new diagnosis.
    PERFORM pg_advisory_xact_lock('fairlead.group_diagnosis'::regclass::oid::bigint);
    WITH found AS (
        SELECT * FROM jsonb_to_recordset(seen) AS found
            (group_id text, at timestamptz, diagnosis text, names text[], evidence text,
             late_s double precision, utilisation double precision)
    ), same AS (
        UPDATE fairlead.group_diagnosis kept
        SET last_seen = found.at, evidence = found.evidence, late_s = found.late_s,
            utilisation = found.utilisation
        FROM found
        WHERE kept.group_id = found.group_id AND kept.until IS NULL AND kept.last_seen < found.at
            AND kept.diagnosis = found.diagnosis AND kept.names = found.names
    )
    UPDATE fairlead.group_diagnosis kept SET until = found.at
    FROM found
    WHERE kept.group_id = found.group_id AND kept.until IS NULL AND kept.last_seen < found.at
        AND (kept.diagnosis <> found.diagnosis OR kept.names <> found.names);
    INSERT INTO fairlead.group_diagnosis
        (group_id, since, last_seen, diagnosis, names, evidence, late_s, utilisation)
    SELECT group_id, at, at, diagnosis, names, evidence, late_s, utilisation
    FROM jsonb_to_recordset(seen) AS found
        (group_id text, at timestamptz, diagnosis text, names text[], evidence text,
         late_s double precision, utilisation double precision)
    WHERE NOT EXISTS (
        SELECT FROM fairlead.group_diagnosis kept
        WHERE kept.group_id = found.group_id AND (kept.until IS NULL OR kept.until > found.at)
    );
END $$;
COMMENT ON FUNCTION fairlead.record_diagnoses IS
    'Stores what is the matter with groups: a row where that has changed, else when it was last seen.';


CREATE VIEW fairlead.diagnosis AS
SELECT group_id, diagnosis, names, evidence, late_s, utilisation, since, last_seen
FROM fairlead.group_diagnosis WHERE until IS NULL;
COMMENT ON VIEW fairlead.diagnosis IS 'What is the matter with each group, as last seen.';


CREATE VIEW fairlead.diagnosis_history AS
SELECT group_id, since, until, last_seen, diagnosis, names, evidence, late_s, utilisation
FROM fairlead.group_diagnosis ORDER BY group_id, since;
COMMENT ON VIEW fairlead.diagnosis_history IS
    'What was the matter with each group from when to when; changes alone are rows.';


CREATE OR REPLACE VIEW fairlead.plan_history AS
SELECT plan.group_id,
       plan.version,
       plan.state,
       plan.assignor,
       plan.rolled_back_from,
       plan.created_at AS proposed_at,
       plan.four_eyes,
       coalesce(approved.actor, rejected.actor) AS decided_by,
       coalesce(approved.at, rejected.at) AS decided_at,
       coalesce(approved.reason, rejected.reason) AS decision,
       published.at AS published_at,
       predicted.moved,
       predicted.placed,
       observed.lag_max AS heaviest_before,
       predicted.lag_max AS heaviest_predicted,
       achieved.lag_max AS heaviest_achieved,
       round((observed.lag_max / nullif(observed.lag_mean, 0))::numeric, 3) AS imbalance_before,
       round((predicted.lag_max / nullif(predicted.lag_mean, 0))::numeric, 3)
           AS imbalance_predicted,
       round((achieved.lag_max / nullif(achieved.lag_mean, 0))::numeric, 3) AS imbalance_achieved,
       round(adoption.as_planned::numeric / nullif(adoption.planned, 0), 4) AS adherence,
       plan.reason,
       plan.snapshot_id,
       plan.sha256,
       plan.expires_at,
       observed.late_s AS late_before,
       predicted.late_s AS late_predicted,
       observed.utilisation AS utilisation_before,
       predicted.utilisation AS utilisation_predicted
FROM fairlead.plan
LEFT JOIN fairlead.plan_event approved
    ON approved.group_id = plan.group_id AND approved.version = plan.version
    AND approved.state = 'approved'
LEFT JOIN fairlead.plan_event rejected
    ON rejected.group_id = plan.group_id AND rejected.version = plan.version
    AND rejected.state = 'rejected'
LEFT JOIN fairlead.plan_event published
    ON published.group_id = plan.group_id AND published.version = plan.version
    AND published.state = 'published'
LEFT JOIN fairlead.balance observed
    ON observed.group_id = plan.group_id AND observed.snapshot_id = plan.snapshot_id
    AND observed.kind = 'observed'
LEFT JOIN fairlead.balance predicted
    ON predicted.group_id = plan.group_id AND predicted.version = plan.version
    AND predicted.kind = 'predicted'
LEFT JOIN LATERAL (
    SELECT lag_max, lag_mean FROM fairlead.balance
    WHERE balance.group_id = plan.group_id AND balance.version = plan.version
        AND balance.kind = 'achieved'
    ORDER BY measured_at DESC LIMIT 1
) achieved ON true
LEFT JOIN LATERAL (
    SELECT planned, as_planned FROM fairlead.plan_adoption
    WHERE plan_adoption.group_id = plan.group_id AND plan_adoption.version = plan.version
    ORDER BY observed_at DESC LIMIT 1
) adoption ON true
ORDER BY plan.group_id, plan.version;


COMMENT ON COLUMN fairlead.plan_history.late_before IS
    'Seconds the worst partition was forecast behind without the plan.';
COMMENT ON COLUMN fairlead.plan_history.late_predicted IS 'The same, under the plan.';
COMMENT ON COLUMN fairlead.plan_history.utilisation_before IS
    'Share of what it can do that the fullest member got before the plan.';
COMMENT ON COLUMN fairlead.plan_history.utilisation_predicted IS 'The same, under the plan.';


CREATE OR REPLACE VIEW fairlead.balance_history AS
SELECT balance.group_id, balance.measured_at, balance.kind, balance.version, plan.assignor,
       balance.count_min, balance.count_max, balance.balance_score,
       balance.lag_max, balance.lag_mean,
       round((balance.lag_max / nullif(balance.lag_mean, 0))::numeric, 3) AS imbalance,
       balance.lag_lower_bound, balance.gap, balance.kept, balance.moved, balance.placed,
       balance.snapshot_id, balance.late_s, balance.utilisation
FROM fairlead.balance
LEFT JOIN fairlead.plan USING (group_id, version)
ORDER BY balance.group_id, balance.measured_at, balance.id;


GRANT SELECT ON fairlead.member_capacity, fairlead.group_diagnosis, fairlead.diagnosis,
                fairlead.diagnosis_history
    TO fairlead_planner, fairlead_approver, fairlead_reader;
REVOKE EXECUTE ON FUNCTION fairlead.record_capacities, fairlead.record_diagnoses FROM PUBLIC;
GRANT EXECUTE ON FUNCTION fairlead.record_capacities, fairlead.record_diagnoses TO fairlead_planner;


DO $$
DECLARE
    shown record;
BEGIN
    FOR shown IN
        SELECT viewed.view_name, viewed.column_name, min(described.comment) AS comment
        FROM information_schema.view_column_usage viewed
        JOIN pg_attribute ON attrelid = format('fairlead.%I', viewed.view_name)::regclass
            AND attname = viewed.column_name
            AND col_description(attrelid, attnum) IS NULL
        CROSS JOIN LATERAL (
            SELECT col_description(attrelid, attnum) AS comment FROM pg_attribute
            WHERE attrelid = format('fairlead.%I', viewed.table_name)::regclass
                AND attname = viewed.column_name
        ) described
        WHERE viewed.view_schema = 'fairlead'
        GROUP BY 1, 2
    LOOP
        EXECUTE format('COMMENT ON COLUMN fairlead.%I.%I IS %L',
            shown.view_name, shown.column_name, shown.comment);
    END LOOP;
END $$;
