-- What the judgement knows of groups: how fast members are, and what is the matter with each group.
-- Planners write by functions; they rewrite and delete nothing else.

CREATE FUNCTION fairlead_raw.record_capacities(known jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM fairlead_raw.member_capacity kept USING jsonb_each(known) of_group
    WHERE kept.group_id = of_group.key AND NOT of_group.value ? kept.member;
    INSERT INTO fairlead_raw.member_capacity AS kept
        (group_id, member, records_per_s, measured, measured_at, evidence, note)
    SELECT of_group.key, of_member.key, found.records_per_s, found.measured, found.measured_at,
           found.evidence, found.note
    FROM jsonb_each(known) of_group
    CROSS JOIN LATERAL jsonb_each(of_group.value) of_member
    CROSS JOIN LATERAL jsonb_to_record(of_member.value) AS found
        (records_per_s double precision, measured boolean, measured_at timestamptz, evidence text,
         note text)
    ON CONFLICT (group_id, member) DO UPDATE SET
        records_per_s = excluded.records_per_s, measured = excluded.measured,
        measured_at = excluded.measured_at, evidence = excluded.evidence,
        note = excluded.note
    WHERE (kept.records_per_s, kept.measured, kept.measured_at, kept.note)
        IS DISTINCT FROM
        (excluded.records_per_s, excluded.measured, excluded.measured_at, excluded.note);
END $$;
COMMENT ON FUNCTION fairlead_raw.record_capacities IS
    'Replaces what is known of the members of groups: group to member to what is known of it.';


-- Turns are taken by a lock of the table: history.sql says why.
CREATE FUNCTION fairlead_raw.record_diagnoses(seen jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- Looks and planning runs take turns, or both would begin a new diagnosis.
    LOCK TABLE fairlead_raw.group_diagnosis IN SHARE UPDATE EXCLUSIVE MODE;
    -- A clock that is ahead dates nothing ahead. The same call goes on from one diagnosis to the
    -- next; a planning run calls for nothing, and leaves what was called for as it is.
    seen := (
        SELECT jsonb_agg(to_jsonb(given) || jsonb_build_object('at', least(at, now())) ||
            CASE WHEN given.looked AND given.called_for IS NOT NULL THEN jsonb_build_object(
                'called_at', least(at, now()),
                'called_since', CASE WHEN kept.called_for = given.called_for
                    THEN kept.called_since ELSE least(at, now()) END)
            WHEN given.looked OR kept.called_for IS NULL THEN '{}' ELSE jsonb_build_object(
                'called_for', kept.called_for, 'call_reason', kept.call_reason,
                'called_since', kept.called_since, 'called_at', kept.called_at,
                'called_by', kept.called_by) END)
        FROM jsonb_to_recordset(seen) AS given
            (group_id text, at timestamptz, diagnosis text, names text[], evidence text,
             late_s double precision, utilisation double precision, loss_s double precision,
             caught_up_s double precision, consumers_wanted integer, consumers_why text, costs jsonb,
             looked boolean, called_for text, call_reason text, called_by text)
        LEFT JOIN fairlead_raw.group_diagnosis kept
            ON kept.group_id = given.group_id AND kept.until IS NULL
    );
    WITH found AS (
        SELECT * FROM jsonb_to_recordset(seen) AS found
            (group_id text, at timestamptz, diagnosis text, names text[], evidence text,
             late_s double precision, utilisation double precision, loss_s double precision,
             caught_up_s double precision, consumers_wanted integer, consumers_why text, costs jsonb,
             called_for text, call_reason text, called_since timestamptz, called_at timestamptz, called_by text)
    ), same AS (
        UPDATE fairlead_raw.group_diagnosis kept
        SET last_seen = found.at, evidence = found.evidence, late_s = found.late_s,
            utilisation = found.utilisation, loss_s = found.loss_s,
            caught_up_s = found.caught_up_s, consumers_wanted = found.consumers_wanted,
            consumers_why = found.consumers_why, costs = found.costs, called_for = found.called_for,
            call_reason = found.call_reason, called_since = found.called_since,
            called_at = found.called_at, called_by = found.called_by
        FROM found
        WHERE kept.group_id = found.group_id AND kept.until IS NULL AND kept.last_seen < found.at
            AND kept.diagnosis = found.diagnosis AND kept.names = found.names
    )
    UPDATE fairlead_raw.group_diagnosis kept SET until = found.at
    FROM found
    WHERE kept.group_id = found.group_id AND kept.until IS NULL AND kept.last_seen < found.at
        AND (kept.diagnosis <> found.diagnosis OR kept.names <> found.names);
    INSERT INTO fairlead_raw.group_diagnosis
        (group_id, since, last_seen, diagnosis, names, evidence, late_s, utilisation, loss_s,
         caught_up_s, consumers_wanted, consumers_why, costs, called_for, call_reason, called_since, called_at, called_by)
    SELECT group_id, at, at, diagnosis, names, evidence, late_s, utilisation, loss_s,
        caught_up_s, consumers_wanted, consumers_why, costs, called_for, call_reason, called_since, called_at, called_by
    FROM jsonb_to_recordset(seen) AS found
        (group_id text, at timestamptz, diagnosis text, names text[], evidence text,
         late_s double precision, utilisation double precision, loss_s double precision,
             caught_up_s double precision, consumers_wanted integer, consumers_why text, costs jsonb,
         called_for text, call_reason text, called_since timestamptz, called_at timestamptz, called_by text)
    WHERE NOT EXISTS (
        SELECT FROM fairlead_raw.group_diagnosis kept
        WHERE kept.group_id = found.group_id AND (kept.until IS NULL OR kept.until > found.at)
    );
END $$;
COMMENT ON FUNCTION fairlead_raw.record_diagnoses IS
    'Stores what is the matter with groups: a row where that has changed, else when it was last seen.';
