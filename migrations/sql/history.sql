-- Histories of lag, decisions, candidates, balances, adoptions and samples: one partition per day (UTC), which
-- is dropped as a whole when its retention ends. Summaries are kept longer, in small tables: one row per group
-- and day, and predicted and achieved figures of each plan. The daily partitions have no foreign keys, since
-- dropping a partition would lock the table that it refers to. There is no default partition, since rows in it
-- would escape retention. Therefore writers first create the partition of the day.
--
-- A table lock prevents that several sessions create or drop these partitions at the same time. An advisory lock
-- would not do, because any login can hold it. The table lock has a mode for which the right to read or append is
-- not enough, so only the owner of the schema could block these sessions. It does not wait for readers and writers.


-- Creates the partition of a day, such as partition_lag_20260131, in all histories at once.
CREATE FUNCTION fairlead_raw.ensure_day(day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    history text;
    child text;
    missing text[] := ARRAY(
        SELECT relname FROM pg_class
        WHERE relnamespace = 'fairlead_raw'::regnamespace AND relkind = 'p'
            AND to_regclass(
                'fairlead_raw.' || relname || '_' || to_char(ensure_day.day, 'YYYYMMDD')) IS NULL
        ORDER BY relname
    );
BEGIN
    IF missing = '{}' THEN
        RETURN;
    END IF;
    -- Only one session at a time creates days. Attaching, unlike CREATE ... PARTITION OF, does not stop readers and
    -- writers of other days.
    LOCK TABLE fairlead_raw.partition_lag IN SHARE UPDATE EXCLUSIVE MODE;
    FOREACH history IN ARRAY missing LOOP
        child := history || '_' || to_char(day, 'YYYYMMDD');
        -- Another session may have created the partition meanwhile. The cache of to_regclass may not show this.
        CONTINUE WHEN EXISTS (
            SELECT FROM pg_class
            WHERE relname = child AND relnamespace = 'fairlead_raw'::regnamespace
        );
        EXECUTE format(
            'CREATE TABLE fairlead_raw.%I (LIKE fairlead_raw.%I INCLUDING ALL)', child, history);
        EXECUTE format(
            'ALTER TABLE fairlead_raw.%I ATTACH PARTITION fairlead_raw.%I FOR VALUES FROM (%L) TO (%L)',
            history, child,
            to_char(day, 'YYYY-MM-DD') || ' 00:00:00+00',
            to_char(day + 1, 'YYYY-MM-DD') || ' 00:00:00+00'
        );
        IF EXISTS (
            SELECT FROM pg_trigger WHERE tgname = 'append_only'
                AND tgrelid = format('fairlead_raw.%I', history)::regclass
        ) THEN  -- partitions do not inherit statement triggers
            EXECUTE format(
                'CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fairlead_raw.%I'
                ' FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change()', child);
        END IF;
    END LOOP;
END $$;


-- Triggers update the summaries whenever rows are inserted. This one counts the decisions of a group's day.
CREATE FUNCTION fairlead_raw.sum_up_decisions() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO fairlead_raw.group_day AS kept (group_id, day, plans, no_changes, failures)
    SELECT group_id, (snapshot_at AT TIME ZONE 'UTC')::date,
           count(*) FILTER (WHERE outcome = 'plan'), count(*) FILTER (WHERE outcome = 'no change'),
           count(*) FILTER (WHERE outcome = 'failed')
    FROM stored GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (group_id, day) DO UPDATE SET
        plans = kept.plans + excluded.plans,
        no_changes = kept.no_changes + excluded.no_changes,
        failures = kept.failures + excluded.failures;
    RETURN NULL;
END $$;

-- Updates the worst balance of a group's day, and copies balances to their plans.
CREATE FUNCTION fairlead_raw.sum_up_balances() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    achieved fairlead_raw.plan_balance[];
BEGIN
    INSERT INTO fairlead_raw.group_day AS kept
        (group_id, day, imbalance_worst, lag_max_worst, forecast_time_lag_s_worst)
    SELECT group_id, (measured_at AT TIME ZONE 'UTC')::date,
           max(imbalance), max(lag_max), max(forecast_time_lag_s)
    FROM stored WHERE kind = 'observed' GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (group_id, day) DO UPDATE SET
        imbalance_worst = greatest(kept.imbalance_worst, excluded.imbalance_worst),
        lag_max_worst = greatest(kept.lag_max_worst, excluded.lag_max_worst),
        forecast_time_lag_s_worst = greatest(kept.forecast_time_lag_s_worst, excluded.forecast_time_lag_s_worst);
    -- Copy the balance observed in the snapshot of a plan to the plan, too.
    INSERT INTO fairlead_raw.plan_balance
    SELECT (jsonb_populate_record(NULL::fairlead_raw.plan_balance,
        to_jsonb(one) || jsonb_build_object('version', of_plan.version))).*
    FROM stored of_plan JOIN stored one USING (group_id, snapshot_id)
    WHERE of_plan.kind = 'predicted' AND one.kind IN ('observed', 'predicted')
    ON CONFLICT (group_id, version, kind) DO NOTHING;
    -- The last balance observed while a plan is published is what the plan has achieved.
    achieved := ARRAY(
        SELECT DISTINCT ON (one.group_id) jsonb_populate_record(NULL::fairlead_raw.plan_balance,
            to_jsonb(one) || jsonb_build_object('version', plan.version, 'kind', 'achieved'))
        FROM stored one
        JOIN fairlead_raw.plan ON plan.group_id = one.group_id AND plan.state = 'published'
        JOIN fairlead_raw.plan_event published
            ON published.group_id = plan.group_id AND published.version = plan.version
            AND published.state = 'published' AND published.at < one.measured_at
        WHERE one.kind = 'observed' ORDER BY one.group_id, one.measured_at DESC
    );
    DELETE FROM fairlead_raw.plan_balance known USING unnest(achieved) newer
    WHERE known.group_id = newer.group_id AND known.version = newer.version
        AND known.kind = newer.kind AND known.measured_at < newer.measured_at;
    INSERT INTO fairlead_raw.plan_balance SELECT newer.* FROM unnest(achieved) newer
    ON CONFLICT (group_id, version, kind) DO NOTHING;
    RETURN NULL;
END $$;

-- Updates the worst forecast time lag and the number of rebalances of a group's day.
CREATE FUNCTION fairlead_raw.sum_up_samples() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO fairlead_raw.group_day AS kept (group_id, day, forecast_time_lag_s_worst, rebalances)
    SELECT one.group_id, (one.sampled_at AT TIME ZONE 'UTC')::date, max(one.forecast_time_lag_s),
           count(*) FILTER (WHERE before.digest <> one.digest)
    FROM stored one
    LEFT JOIN LATERAL (
        SELECT digest FROM fairlead_raw.group_sample earlier
        WHERE earlier.group_id = one.group_id AND earlier.sampled_at < one.sampled_at
            AND earlier.sampled_at > one.sampled_at - interval '1 day'
        ORDER BY earlier.sampled_at DESC LIMIT 1
    ) before ON true
    WHERE one.forecast_time_lag_s IS NOT NULL OR before.digest <> one.digest
    GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (group_id, day) DO UPDATE SET
        forecast_time_lag_s_worst = greatest(kept.forecast_time_lag_s_worst, excluded.forecast_time_lag_s_worst),
        rebalances = kept.rebalances + excluded.rebalances
    WHERE excluded.rebalances > 0 OR kept.forecast_time_lag_s_worst IS NULL
        OR kept.forecast_time_lag_s_worst < excluded.forecast_time_lag_s_worst;
    RETURN NULL;
END $$;

-- Copies the newest measurement of a plan's adherence to a table with one row per plan.
CREATE FUNCTION fairlead_raw.sum_up_adoptions() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO fairlead_raw.last_adoption AS known
        (group_id, version, observed_at, planned, as_planned, adherence)
    SELECT DISTINCT ON (group_id, version)
           group_id, version, observed_at, planned, as_planned, adherence
    FROM stored ORDER BY group_id, version, observed_at DESC
    ON CONFLICT (group_id, version) DO UPDATE SET
        observed_at = excluded.observed_at, planned = excluded.planned,
        as_planned = excluded.as_planned, adherence = excluded.adherence
    WHERE known.observed_at < excluded.observed_at;
    RETURN NULL;
END $$;

CREATE TRIGGER sum_up AFTER INSERT ON fairlead_raw.decision
    REFERENCING NEW TABLE AS stored
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.sum_up_decisions();
CREATE TRIGGER sum_up AFTER INSERT ON fairlead_raw.balance
    REFERENCING NEW TABLE AS stored
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.sum_up_balances();
CREATE TRIGGER sum_up AFTER INSERT ON fairlead_raw.group_sample
    REFERENCING NEW TABLE AS stored
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.sum_up_samples();
CREATE TRIGGER sum_up AFTER INSERT ON fairlead_raw.plan_adoption
    REFERENCING NEW TABLE AS stored
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.sum_up_adoptions();


-- The stored days, and functions that prune old rows.
CREATE FUNCTION fairlead.history_days()
RETURNS TABLE (history text, day date, relation regclass, bytes bigint) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT parent.relname, to_date(right(child.relname, 8), 'YYYYMMDD'), child.oid::regclass,
           pg_total_relation_size(child.oid)
    FROM pg_inherits
    JOIN pg_class child ON child.oid = inhrelid
    JOIN pg_class parent ON parent.oid = inhparent
    WHERE parent.relnamespace = 'fairlead_raw'::regnamespace AND parent.relkind = 'p'
    ORDER BY 2, 1
$$;
COMMENT ON FUNCTION fairlead.history_days IS
    'The stored days (UTC) of each history, with their size on disk.';

-- Prunes one history per transaction, so that a reader of two histories and this function never wait for each
-- other. Waits at most ten seconds for a lock, so that it does not hold up readers for long.
CREATE FUNCTION fairlead.prune_history(history text, older_than timestamptz)
RETURNS TABLE (day date, bytes bigint) LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '10s' AS $$
DECLARE
    gone record;
BEGIN
    -- Only one session prunes at a time. Sessions that create days do not wait for it.
    LOCK TABLE fairlead_raw.lag_snapshot IN SHARE UPDATE EXCLUSIVE MODE;
    FOR gone IN
        SELECT kept.day, kept.relation, kept.bytes FROM fairlead.history_days() kept
        WHERE kept.history = prune_history.history
            AND kept.day < (older_than AT TIME ZONE 'UTC')::date
    LOOP
        EXECUTE format('DROP TABLE %s', gone.relation);
        IF history = 'partition_lag' THEN
            DELETE FROM fairlead_raw.lag_snapshot
            WHERE snapshot_at >= gone.day::timestamp AT TIME ZONE 'UTC'
                AND snapshot_at < (gone.day + 1)::timestamp AT TIME ZONE 'UTC';
        END IF;
        day := gone.day;
        bytes := gone.bytes;
        RETURN NEXT;
    END LOOP;
END $$;
COMMENT ON FUNCTION fairlead.prune_history IS
    'Drops the whole days (UTC) of a history before a time; returns the days and the bytes freed.';

-- Deletes old rows from tables that have no daily partitions. An old version is deleted if no consumer followed it
-- and no person rejected it. But the newest version of a group is kept, because the next version's number is counted
-- from it. A version to which another version rolls back is kept as well.
CREATE FUNCTION fairlead.prune_rows(
    older_than timestamptz, summaries_older_than timestamptz, at_most integer DEFAULT 50000
) RETURNS TABLE (what text, gone bigint) LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '10s' AS $$
DECLARE
    before timestamptz := date_trunc('day', older_than, 'UTC');
    first_kept date := (summaries_older_than AT TIME ZONE 'UTC')::date;
    groups text[];
    versions integer[];
BEGIN
    IF summaries_older_than > older_than THEN
        RAISE EXCEPTION 'summaries must be kept at least as long as the rows that they sum up';
    END IF;
    LOCK TABLE fairlead_raw.lag_snapshot IN SHARE UPDATE EXCLUSIVE MODE;
    SELECT array_agg(ended.group_id), array_agg(ended.version) INTO groups, versions
    FROM (
        SELECT plan.group_id, plan.version FROM fairlead_raw.plan
        WHERE plan.state IN ('expired', 'stale', 'refused') AND plan.created_at < before
            AND NOT EXISTS (
                SELECT FROM fairlead_raw.plan_event event
                WHERE event.group_id = plan.group_id AND event.version = plan.version
                    AND event.at >= before
            )
            AND EXISTS (
                SELECT FROM fairlead_raw.plan later
                WHERE later.group_id = plan.group_id AND later.version > plan.version
            )
            AND NOT EXISTS (
                SELECT FROM fairlead_raw.plan again
                WHERE again.group_id = plan.group_id AND again.rolled_back_from = plan.version
            )
        ORDER BY plan.group_id, plan.version LIMIT at_most
    ) ended;
    PERFORM set_config('fairlead.pruning', 'on', true);
    DELETE FROM fairlead_raw.moved_partition one USING unnest(groups, versions) AS ended (g, v)
    WHERE one.group_id = g AND one.version = v;
    DELETE FROM fairlead_raw.plan_balance one USING unnest(groups, versions) AS ended (g, v)
    WHERE one.group_id = g AND one.version = v;
    DELETE FROM fairlead_raw.plan_event one USING unnest(groups, versions) AS ended (g, v)
    WHERE one.group_id = g AND one.version = v;
    DELETE FROM fairlead_raw.plan one USING unnest(groups, versions) AS ended (g, v)
    WHERE one.group_id = g AND one.version = v;
    GET DIAGNOSTICS gone = ROW_COUNT;
    PERFORM set_config('fairlead.pruning', 'off', true);
    INSERT INTO fairlead_raw.plan_pruned AS known (group_id, versions)
    SELECT g, count(*) FROM unnest(groups) g GROUP BY g
    ON CONFLICT (group_id) DO UPDATE SET versions = known.versions + excluded.versions;
    what := 'versions never followed';
    RETURN NEXT;
    DELETE FROM fairlead_raw.group_diagnosis WHERE until < before;
    GET DIAGNOSTICS gone = ROW_COUNT;
    what := 'past diagnoses';
    RETURN NEXT;
    DELETE FROM fairlead_raw.group_day WHERE day < first_kept;
    GET DIAGNOSTICS gone = ROW_COUNT;
    what := 'days of groups in summary';
    RETURN NEXT;
    SELECT array_agg(known.group_id) INTO groups FROM fairlead_raw.consumer_group known
    WHERE known.first_seen_at < first_kept::timestamp AT TIME ZONE 'UTC'
        AND NOT EXISTS (SELECT FROM fairlead_raw.plan WHERE plan.group_id = known.group_id)
        -- Freezes and web actions refer to their group, and are kept permanently.
        AND NOT EXISTS (SELECT FROM fairlead_raw.freeze_event WHERE freeze_event.group_id = known.group_id)
        AND NOT EXISTS (SELECT FROM fairlead_raw.page_act WHERE page_act.group_id = known.group_id)
        AND NOT EXISTS (SELECT FROM fairlead_raw.group_day WHERE group_day.group_id = known.group_id)
        AND NOT EXISTS (
            SELECT FROM fairlead_raw.lag_snapshot WHERE lag_snapshot.group_id = known.group_id
        )
        AND NOT EXISTS (
            SELECT FROM fairlead_raw.group_diagnosis
            WHERE group_diagnosis.group_id = known.group_id AND last_seen >= before
        );
    DELETE FROM fairlead_raw.member_capacity WHERE group_id = ANY (groups);
    DELETE FROM fairlead_raw.group_sample_last WHERE group_id = ANY (groups);
    DELETE FROM fairlead_raw.group_diagnosis WHERE group_id = ANY (groups);
    DELETE FROM fairlead_raw.consumer_group WHERE group_id = ANY (groups);
    GET DIAGNOSTICS gone = ROW_COUNT;
    what := 'groups without any rows';
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION fairlead.prune_rows IS
    'Deletes old versions that were never followed, past diagnoses, old summaries, and groups '
    'without any rows; returns the number of deleted rows of each kind.';
