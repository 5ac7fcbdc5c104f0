-- Lag by the day. A day's rows are one partition, named partition_lag_20260131 (UTC), so that
-- retention drops files instead of deleting rows. There is no default partition: a row that no
-- day's partition takes would escape retention, so the writer makes the day first.

CREATE FUNCTION fairlead.ensure_lag_day(day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    child text := 'partition_lag_' || to_char(day, 'YYYYMMDD');
BEGIN
    IF to_regclass('fairlead.' || child) IS NOT NULL THEN
        RETURN;
    END IF;
    -- Writers of a new day take turns; attaching, unlike CREATE ... PARTITION OF, lets readers and
    -- the writers of other days go on.
    PERFORM pg_advisory_xact_lock('fairlead.partition_lag'::regclass::oid::bigint);
    -- A table's rows, not to_regclass: waiting for an advisory lock leaves its cache as it was.
    IF EXISTS (SELECT FROM pg_class
               WHERE relname = child AND relnamespace = 'fairlead'::regnamespace) THEN
        RETURN;
    END IF;
    EXECUTE format(
        'CREATE TABLE fairlead.%I (LIKE fairlead.partition_lag INCLUDING ALL)', child);
    EXECUTE format(
        'ALTER TABLE fairlead.partition_lag ATTACH PARTITION fairlead.%I FOR VALUES FROM (%L) TO (%L)',
        child,
        to_char(day, 'YYYY-MM-DD') || ' 00:00:00+00',
        to_char(day + 1, 'YYYY-MM-DD') || ' 00:00:00+00'
    );
    EXECUTE format('COMMENT ON TABLE fairlead.%I IS %L', child,
        'partition_lag on ' || to_char(day, 'YYYY-MM-DD') || ' (UTC).');
END $$;
COMMENT ON FUNCTION fairlead.ensure_lag_day IS 'Makes the partition of partition_lag for a day (UTC).';


CREATE FUNCTION fairlead.lag_days()
RETURNS TABLE (day date, relation regclass, bytes bigint) LANGUAGE sql STABLE AS $$
    SELECT to_date(right(child.relname, 8), 'YYYYMMDD'), child.oid::regclass,
           pg_total_relation_size(child.oid)
    FROM pg_inherits
    JOIN pg_class child ON child.oid = inhrelid
    WHERE inhparent = 'fairlead.partition_lag'::regclass
    ORDER BY 1
$$;
COMMENT ON FUNCTION fairlead.lag_days IS 'The days (UTC) of which lag is kept, and their size on disk.';


-- Drops what waits for locks for ten seconds at most: whoever reads lag meanwhile goes first.
CREATE FUNCTION fairlead.prune_lag(older_than timestamptz)
RETURNS TABLE (day date, bytes bigint) LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '10s' AS $$
DECLARE
    gone record;
BEGIN
    -- Prunes take turns; writers of new days do not wait for them.
    PERFORM pg_advisory_xact_lock('fairlead.lag_snapshot'::regclass::oid::bigint);
    FOR gone IN
        SELECT kept.day, kept.relation, kept.bytes FROM fairlead.lag_days() kept
        WHERE kept.day < (older_than AT TIME ZONE 'UTC')::date
    LOOP
        EXECUTE format('DROP TABLE %s', gone.relation);
        DELETE FROM fairlead.lag_snapshot
        WHERE snapshot_at >= gone.day::timestamp AT TIME ZONE 'UTC'
            AND snapshot_at < (gone.day + 1)::timestamp AT TIME ZONE 'UTC';
        day := gone.day;
        bytes := gone.bytes;
        RETURN NEXT;
    END LOOP;
END $$;
COMMENT ON FUNCTION fairlead.prune_lag IS
    'Drops the lag of all whole days (UTC) before a moment; returns the days and the bytes freed.';


CREATE VIEW fairlead.lag_history AS
SELECT lag.group_id, lag.snapshot_at, snapshot.snapshot_id, lag.topic, lag.partition, lag.member,
       lag.begin_offset, lag.end_offset, lag.committed_offset, lag.lag, lag.arrival_rate,
       lag.consumption_rate, lag.time_lag_s, lag.status
FROM fairlead.partition_lag lag
JOIN fairlead.lag_snapshot snapshot USING (group_id, snapshot_at);

COMMENT ON VIEW fairlead.lag_history IS
    'Lag of every partition in every snapshot, and the member that owned it.';
