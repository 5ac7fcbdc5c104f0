-- What the analysis remembers about groups: speeds of members, and diagnoses. Planners write both only with
-- these functions.

-- Replaces the stored speeds of members; `known` maps groups to the speeds of their members.
CREATE FUNCTION fairlead_raw.record_capacities(known jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM fairlead_raw.member_capacity kept USING jsonb_each(known) of_group
    WHERE kept.group_id = of_group.key;
    INSERT INTO fairlead_raw.member_capacity (group_id, member, records_per_s, measured, measured_at)
    SELECT of_group.key, found.* FROM jsonb_each(known) of_group
    CROSS JOIN LATERAL jsonb_to_recordset(of_group.value) AS found
        (member text, records_per_s double precision, measured boolean, measured_at timestamptz);
END $$;


-- Stores diagnoses of groups. If a diagnosis has changed, it gets a new row; otherwise its row is updated.
-- Uses a table lock, not an advisory lock; the reason is in history.sql.
CREATE FUNCTION fairlead_raw.record_diagnoses(seen jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    latest fairlead_raw.group_diagnosis[];
BEGIN
    -- Without the lock, a sample and a planning run could both insert a row for a new diagnosis.
    LOCK TABLE fairlead_raw.group_diagnosis IN SHARE UPDATE EXCLUSIVE MODE;
    -- No row gets a time in the future, even if the writer's clock is ahead. A request for a plan continues if
    -- the diagnosis changes. Only samples make and end requests: a planning run leaves the stored requests.
    SELECT array_agg(jsonb_populate_record(NULL::fairlead_raw.group_diagnosis,
        given || jsonb_build_object('since', at, 'last_seen', at) ||
        CASE WHEN looked AND request.called_for IS NOT NULL THEN jsonb_build_object('called_at', at,
            'called_since', CASE WHEN kept.called_for = request.called_for
                THEN kept.called_since ELSE at END)
        WHEN looked OR kept.called_for IS NULL THEN '{}' ELSE jsonb_build_object(
            'called_for', kept.called_for, 'call_reason', kept.call_reason,
            'called_since', kept.called_since, 'called_at', kept.called_at) END))
    INTO latest
    FROM jsonb_array_elements(seen) given
    CROSS JOIN LATERAL (
        SELECT least((given ->> 'at')::timestamptz, now()) AS at,
               (given ->> 'looked')::boolean AS looked, given ->> 'called_for' AS called_for
    ) request
    LEFT JOIN fairlead_raw.group_diagnosis kept
        ON kept.group_id = given ->> 'group_id' AND kept.until IS NULL;
    WITH same AS (
        UPDATE fairlead_raw.group_diagnosis kept
        SET last_seen = new.last_seen, evidence = new.evidence, forecast_time_lag_s = new.forecast_time_lag_s,
            utilisation = new.utilisation, loss_s = new.loss_s, catch_up_s = new.catch_up_s,
            consumers_wanted = new.consumers_wanted, consumers_why = new.consumers_why,
            costs = new.costs, reported = new.reported,
            called_for = new.called_for, call_reason = new.call_reason,
            called_since = new.called_since, called_at = new.called_at
        FROM unnest(latest) new
        WHERE kept.group_id = new.group_id AND kept.until IS NULL AND kept.last_seen < new.last_seen
            AND kept.diagnosis = new.diagnosis AND kept.names = new.names
    )
    UPDATE fairlead_raw.group_diagnosis kept SET until = new.last_seen
    FROM unnest(latest) new
    WHERE kept.group_id = new.group_id AND kept.until IS NULL AND kept.last_seen < new.last_seen
        AND (kept.diagnosis <> new.diagnosis OR kept.names <> new.names);
    INSERT INTO fairlead_raw.group_diagnosis
    SELECT new.* FROM unnest(latest) new
    WHERE NOT EXISTS (
        SELECT FROM fairlead_raw.group_diagnosis kept
        WHERE kept.group_id = new.group_id AND (kept.until IS NULL OR kept.until > new.since)
    );
END $$;
