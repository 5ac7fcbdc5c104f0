-- Anybody who may log in can hold any advisory lock. Those who make and drop days take turns by a
-- lock of the tables instead, in a mode that takes more rights than to read and to append: nobody but
-- the owner of the schema can hold them up. Readers and writers are not in its way.

CREATE OR REPLACE FUNCTION fairlead_raw.ensure_lag_day(day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    child text := 'partition_lag_' || to_char(day, 'YYYYMMDD');
BEGIN
    IF to_regclass('fairlead_raw.' || child) IS NOT NULL THEN
        RETURN;
    END IF;
    -- Writers of a new day take turns; attaching, unlike CREATE ... PARTITION OF, lets readers and
    -- the writers of other days go on.
    LOCK TABLE fairlead_raw.partition_lag IN SHARE UPDATE EXCLUSIVE MODE;
    -- A table's rows, not to_regclass: its cache may be older than the lock.
    IF EXISTS (SELECT FROM pg_class
               WHERE relname = child AND relnamespace = 'fairlead_raw'::regnamespace) THEN
        RETURN;
    END IF;
    EXECUTE format(
        'CREATE TABLE fairlead_raw.%I (LIKE fairlead_raw.partition_lag INCLUDING ALL)', child);
    EXECUTE format(
        'ALTER TABLE fairlead_raw.partition_lag ATTACH PARTITION fairlead_raw.%I FOR VALUES FROM (%L) TO (%L)',
        child,
        to_char(day, 'YYYY-MM-DD') || ' 00:00:00+00',
        to_char(day + 1, 'YYYY-MM-DD') || ' 00:00:00+00'
    );
    EXECUTE format('COMMENT ON TABLE fairlead_raw.%I IS %L', child,
        'partition_lag on ' || to_char(day, 'YYYY-MM-DD') || ' (UTC).');
END $$;


CREATE OR REPLACE FUNCTION fairlead.prune_lag(older_than timestamptz)
RETURNS TABLE (day date, bytes bigint) LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '10s' AS $$
DECLARE
    gone record;
BEGIN
    -- Prunes take turns; writers of new days do not wait for them.
    LOCK TABLE fairlead_raw.lag_snapshot IN SHARE UPDATE EXCLUSIVE MODE;
    FOR gone IN
        SELECT kept.day, kept.relation, kept.bytes FROM fairlead.lag_days() kept
        WHERE kept.day < (older_than AT TIME ZONE 'UTC')::date
    LOOP
        EXECUTE format('DROP TABLE %s', gone.relation);
        DELETE FROM fairlead_raw.lag_snapshot
        WHERE snapshot_at >= gone.day::timestamp AT TIME ZONE 'UTC'
            AND snapshot_at < (gone.day + 1)::timestamp AT TIME ZONE 'UTC';
        day := gone.day;
        bytes := gone.bytes;
        RETURN NEXT;
    END LOOP;
END $$;


-- Locks the groups of a batch. Those that somebody else is at are waited for together, for so long,
-- and then left out: a transaction that somebody leaves open holds up its own groups alone.
CREATE FUNCTION fairlead_raw.lock_groups(wanted text[], patience interval) RETURNS SETOF text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    deadline timestamptz := clock_timestamp() + patience;
    before text := current_setting('lock_timeout');
    held text[] := '{}';
    missing text;
BEGIN
    FOR missing IN
        SELECT group_id FROM fairlead_raw.consumer_group WHERE group_id = ANY (wanted)
        ORDER BY group_id FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        held := held || missing;
    END LOOP;
    FOR missing IN
        SELECT group_id FROM fairlead_raw.consumer_group
        WHERE group_id = ANY (wanted) AND group_id <> ALL (held) ORDER BY group_id
    LOOP
        BEGIN
            PERFORM set_config('lock_timeout', greatest(1, ceil(
                1000 * extract(epoch FROM deadline - clock_timestamp())))::text, true);
            PERFORM fairlead_raw.lock_group(missing);
            held := held || missing;
        EXCEPTION
            WHEN lock_not_available OR deadlock_detected THEN
                NULL;
        END;
    END LOOP;
    PERFORM set_config('lock_timeout', before, true);
    RETURN QUERY SELECT unnest(held);
END $$;
COMMENT ON FUNCTION fairlead_raw.lock_groups IS
    'Locks groups until the transaction ends, and returns those that could be locked in time.';
REVOKE EXECUTE ON FUNCTION fairlead_raw.lock_groups FROM PUBLIC;
GRANT EXECUTE ON FUNCTION fairlead_raw.lock_groups TO fairlead_planner;


-- Who decides by hand waits for others for half a minute, not for ever.
ALTER FUNCTION fairlead.approve_plan SET lock_timeout = '30s';
ALTER FUNCTION fairlead.reject_plan SET lock_timeout = '30s';


-- Looks and planning runs take turns at diagnoses, or both would begin a new one: by a lock of the
-- table, as above.
DO $$
BEGIN
    EXECUTE replace(
        pg_get_functiondef('fairlead_raw.record_diagnoses'::regproc),
        $old$PERFORM pg_advisory_xact_lock('fairlead_raw.group_diagnosis'::regclass::oid::bigint)$old$,
        'LOCK TABLE fairlead_raw.group_diagnosis IN SHARE UPDATE EXCLUSIVE MODE'
    );
END $$;


-- Whoever may log in at all had CONNECT by being anybody. Now it takes one of the roles, or a grant.
DO $$
DECLARE
    owned boolean := (
        SELECT pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = current_database()
    );
BEGIN
    IF NOT owned THEN
        RAISE NOTICE '% does not own the database %: let its owner revoke CONNECT from PUBLIC',
            current_user, current_database();
        RETURN;
    END IF;
    EXECUTE format('REVOKE CONNECT, TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format(
        'GRANT CONNECT ON DATABASE %I TO fairlead_planner, fairlead_approver, fairlead_reader',
        current_database()
    );
END $$;
