-- Every history by the day, as lag is: a partition a day (UTC) of decisions, candidates, balances and
-- adoptions, dropped whole once it is beyond retention. What is asked for longer is kept beside it,
-- small: a row a group and day, and what each plan predicted and came to. As with lag, days have no
-- foreign keys (to drop one would lock the table that it refers to), and no default partition.

-- Rows are carried over; what was their order of arrival nobody asks for.
ALTER TABLE fairlead_raw.decision RENAME TO decision_before;
ALTER TABLE fairlead_raw.candidate RENAME TO candidate_before;
ALTER TABLE fairlead_raw.balance RENAME TO balance_before;
ALTER TABLE fairlead_raw.plan_adoption RENAME TO plan_adoption_before;
ALTER TABLE fairlead_raw.plan_adoption_before
    RENAME CONSTRAINT plan_adoption_pkey TO plan_adoption_before_pkey;
ALTER TABLE fairlead_raw.decision_before RENAME CONSTRAINT decision_pkey TO decision_before_pkey;
ALTER TABLE fairlead_raw.candidate_before RENAME CONSTRAINT candidate_pkey TO candidate_before_pkey;
ALTER TABLE fairlead_raw.balance_before RENAME CONSTRAINT balance_pkey TO balance_before_pkey;

CREATE TABLE fairlead_raw.decision (
    LIKE fairlead_raw.decision_before INCLUDING COMMENTS INCLUDING CONSTRAINTS INCLUDING DEFAULTS,
    CONSTRAINT decision_pkey PRIMARY KEY (group_id, snapshot_at, snapshot_id)
) PARTITION BY RANGE (snapshot_at);
COMMENT ON TABLE fairlead_raw.decision IS
    'What each snapshot of a group came to, even where nothing was changed.';

CREATE TABLE fairlead_raw.candidate (
    LIKE fairlead_raw.candidate_before INCLUDING COMMENTS INCLUDING CONSTRAINTS INCLUDING DEFAULTS,
    snapshot_at timestamptz NOT NULL,
    CONSTRAINT candidate_pkey PRIMARY KEY (group_id, snapshot_at, snapshot_id, assignor)
) PARTITION BY RANGE (snapshot_at);
COMMENT ON TABLE fairlead_raw.candidate IS
    'What each assignor of the policy would have done with a snapshot.';
COMMENT ON COLUMN fairlead_raw.candidate.snapshot_at IS 'When the snapshot was taken.';

CREATE TABLE fairlead_raw.balance (
    LIKE fairlead_raw.balance_before INCLUDING COMMENTS INCLUDING CONSTRAINTS INCLUDING DEFAULTS,
    CONSTRAINT balance_pkey PRIMARY KEY (group_id, measured_at, kind, snapshot_id)
) PARTITION BY RANGE (measured_at);
ALTER TABLE fairlead_raw.balance DROP COLUMN id;  -- it said nothing
COMMENT ON TABLE fairlead_raw.balance IS
    'Balance of a group: observed, predicted by a plan, achieved by it.';

CREATE TABLE fairlead_raw.plan_adoption (
    LIKE fairlead_raw.plan_adoption_before
        INCLUDING COMMENTS INCLUDING CONSTRAINTS INCLUDING DEFAULTS,
    lag_max numeric,
    CONSTRAINT plan_adoption_pkey PRIMARY KEY (group_id, observed_at, version)
) PARTITION BY RANGE (observed_at);
COMMENT ON COLUMN fairlead_raw.plan_adoption.lag_max IS 'Load of the heaviest member, in records.';
COMMENT ON TABLE fairlead_raw.plan_adoption IS
    'How much of a published plan the group''s consumers follow, by time.';


-- What is kept for longer.
CREATE TABLE fairlead_raw.group_day (
    group_id text NOT NULL,
    day date NOT NULL,
    plans integer NOT NULL DEFAULT 0,
    no_changes integer NOT NULL DEFAULT 0,
    failures integer NOT NULL DEFAULT 0,
    first_at timestamptz,
    imbalance_first double precision,
    last_at timestamptz,
    imbalance_last double precision,
    imbalance_worst double precision,
    lag_max_worst numeric,
    late_s_worst double precision,
    CONSTRAINT group_day_pkey PRIMARY KEY (group_id, day)
) WITH (fillfactor = 60);  -- today's rows change with each look, and stay on their page
CREATE INDEX group_day_day_idx ON fairlead_raw.group_day (day);
COMMENT ON TABLE fairlead_raw.group_day IS
    'Each group''s day in a row: decisions by what they came to, balance and forecast as observed.';
COMMENT ON COLUMN fairlead_raw.group_day.group_id IS 'The consumer group.';
COMMENT ON COLUMN fairlead_raw.group_day.day IS 'The day (UTC) of the snapshots.';
COMMENT ON COLUMN fairlead_raw.group_day.plans IS 'Decisions that proposed a plan.';
COMMENT ON COLUMN fairlead_raw.group_day.no_changes IS 'Decisions to change nothing.';
COMMENT ON COLUMN fairlead_raw.group_day.failures IS 'Decisions that failed.';
COMMENT ON COLUMN fairlead_raw.group_day.first_at IS 'When its balance was first observed.';
COMMENT ON COLUMN fairlead_raw.group_day.imbalance_first IS
    'Heaviest member over the mean then; 1 is even; null: nothing to work off.';
COMMENT ON COLUMN fairlead_raw.group_day.last_at IS 'When its balance was last observed.';
COMMENT ON COLUMN fairlead_raw.group_day.imbalance_last IS 'The same then.';
COMMENT ON COLUMN fairlead_raw.group_day.imbalance_worst IS 'The largest of the day.';
COMMENT ON COLUMN fairlead_raw.group_day.lag_max_worst IS
    'Most records that the heaviest member had to work off.';
COMMENT ON COLUMN fairlead_raw.group_day.late_s_worst IS
    'Most seconds that the worst partition was forecast to be behind.';

CREATE TABLE fairlead_raw.plan_balance (
    LIKE fairlead_raw.balance INCLUDING COMMENTS,
    CONSTRAINT plan_balance_pkey PRIMARY KEY (group_id, version, kind),
    CONSTRAINT plan_balance_kind_check CHECK (kind IN ('observed', 'predicted', 'achieved')),
    CONSTRAINT plan_balance_plan_fkey FOREIGN KEY (group_id, version)
        REFERENCES fairlead_raw.plan (group_id, version)
);
COMMENT ON TABLE fairlead_raw.plan_balance IS
    'Balance before each plan, as it predicted, and as last achieved; kept as long as the plan.';
COMMENT ON COLUMN fairlead_raw.plan_balance.version IS 'The plan.';

CREATE TABLE fairlead_raw.last_adoption (
    LIKE fairlead_raw.plan_adoption_before INCLUDING COMMENTS,
    CONSTRAINT last_adoption_pkey PRIMARY KEY (group_id, version),
    CONSTRAINT last_adoption_plan_fkey FOREIGN KEY (group_id, version)
        REFERENCES fairlead_raw.plan (group_id, version)
);
COMMENT ON TABLE fairlead_raw.last_adoption IS
    'How much of each plan was followed when last read; kept as long as the plan.';

CREATE TABLE fairlead_raw.plan_pruned (
    group_id text NOT NULL,
    versions bigint NOT NULL,
    last_at timestamptz NOT NULL,
    CONSTRAINT plan_pruned_pkey PRIMARY KEY (group_id)
);
COMMENT ON TABLE fairlead_raw.plan_pruned IS
    'How many versions of each group are gone: those that nobody followed or rejected.';
COMMENT ON COLUMN fairlead_raw.plan_pruned.group_id IS 'The consumer group.';
COMMENT ON COLUMN fairlead_raw.plan_pruned.versions IS 'Versions that pruning has removed.';
COMMENT ON COLUMN fairlead_raw.plan_pruned.last_at IS 'When it last did.';


-- A day is made in all histories at once, by one writer: see 0011_locks.sql for the lock.
DROP FUNCTION fairlead_raw.ensure_lag_day;
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
    -- Writers of a new day take turns; attaching, unlike CREATE ... PARTITION OF, lets readers and
    -- the writers of other days go on.
    LOCK TABLE fairlead_raw.partition_lag IN SHARE UPDATE EXCLUSIVE MODE;
    FOREACH history IN ARRAY missing LOOP
        child := history || '_' || to_char(day, 'YYYYMMDD');
        -- A table's rows, not to_regclass: its cache may be older than the lock.
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
        EXECUTE format('COMMENT ON TABLE fairlead_raw.%I IS %L', child,
            history || ' on ' || to_char(day, 'YYYY-MM-DD') || ' (UTC).');
        IF EXISTS (
            SELECT FROM pg_trigger WHERE tgname = 'append_only'
                AND tgrelid = format('fairlead_raw.%I', history)::regclass
        ) THEN  -- a statement's trigger is its table's alone
            EXECUTE format(
                'CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fairlead_raw.%I'
                ' FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change()', child);
        END IF;
    END LOOP;
END $$;
COMMENT ON FUNCTION fairlead_raw.ensure_day IS 'Makes a day (UTC) of every history.';
REVOKE EXECUTE ON FUNCTION fairlead_raw.ensure_day FROM PUBLIC;
GRANT EXECUTE ON FUNCTION fairlead_raw.ensure_day TO fairlead_planner;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fairlead_raw.decision
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fairlead_raw.candidate
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change();

SELECT fairlead_raw.ensure_day(day) FROM (
    SELECT (snapshot_at AT TIME ZONE 'UTC')::date AS day FROM fairlead_raw.decision_before
    UNION SELECT (measured_at AT TIME ZONE 'UTC')::date FROM fairlead_raw.balance_before
    UNION SELECT (observed_at AT TIME ZONE 'UTC')::date FROM fairlead_raw.plan_adoption_before
    UNION SELECT to_date(right(relname, 8), 'YYYYMMDD') FROM pg_catalog.pg_inherits
          JOIN pg_catalog.pg_class ON pg_class.oid = inhrelid
          WHERE inhparent = 'fairlead_raw.partition_lag'::regclass
) days ORDER BY day;


-- What is kept for longer follows from what is inserted, whoever inserts it.
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
COMMENT ON FUNCTION fairlead_raw.sum_up_decisions IS 'Counts decisions in the day of their group.';

CREATE FUNCTION fairlead_raw.sum_up_balances() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO fairlead_raw.group_day AS kept
        (group_id, day, first_at, imbalance_first, last_at, imbalance_last, imbalance_worst,
         lag_max_worst, late_s_worst)
    SELECT group_id, (measured_at AT TIME ZONE 'UTC')::date,
           min(measured_at), (array_agg(lag_max / nullif(lag_mean, 0) ORDER BY measured_at))[1],
           max(measured_at), (array_agg(lag_max / nullif(lag_mean, 0) ORDER BY measured_at DESC))[1],
           max(lag_max / nullif(lag_mean, 0)), max(lag_max), max(late_s)
    FROM stored WHERE kind = 'observed' GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (group_id, day) DO UPDATE SET
        first_at = least(kept.first_at, excluded.first_at),
        imbalance_first = CASE WHEN kept.first_at <= excluded.first_at
            THEN kept.imbalance_first ELSE excluded.imbalance_first END,
        last_at = greatest(kept.last_at, excluded.last_at),
        imbalance_last = CASE WHEN kept.last_at > excluded.last_at
            THEN kept.imbalance_last ELSE excluded.imbalance_last END,
        imbalance_worst = greatest(kept.imbalance_worst, excluded.imbalance_worst),
        lag_max_worst = greatest(kept.lag_max_worst, excluded.lag_max_worst),
        late_s_worst = greatest(kept.late_s_worst, excluded.late_s_worst);
    -- What was observed in the snapshot that a plan was made from belongs to the plan, too.
    INSERT INTO fairlead_raw.plan_balance
        (group_id, version, kind, measured_at, snapshot_id, count_min, count_max, balance_score,
         lag_max, lag_mean, lag_lower_bound, gap, kept, moved, placed, late_s, utilisation)
    SELECT one.group_id, of_plan.version, one.kind, one.measured_at, one.snapshot_id, one.count_min,
           one.count_max, one.balance_score, one.lag_max, one.lag_mean, one.lag_lower_bound, one.gap,
           one.kept, one.moved, one.placed, one.late_s, one.utilisation
    FROM stored of_plan JOIN stored one USING (group_id, snapshot_id)
    WHERE of_plan.kind = 'predicted' AND one.kind IN ('observed', 'predicted')
    ON CONFLICT (group_id, version, kind) DO NOTHING;
    INSERT INTO fairlead_raw.plan_balance AS known
        (group_id, version, kind, measured_at, snapshot_id, count_min, count_max, balance_score,
         lag_max, lag_mean, lag_lower_bound, gap, kept, moved, placed, late_s, utilisation)
    SELECT DISTINCT ON (group_id, version)
           group_id, version, kind, measured_at, snapshot_id, count_min, count_max, balance_score,
           lag_max, lag_mean, lag_lower_bound, gap, kept, moved, placed, late_s, utilisation
    FROM stored WHERE kind = 'achieved' ORDER BY group_id, version, measured_at DESC
    ON CONFLICT (group_id, version, kind) DO UPDATE SET
        measured_at = excluded.measured_at, snapshot_id = excluded.snapshot_id,
        count_min = excluded.count_min, count_max = excluded.count_max,
        balance_score = excluded.balance_score, lag_max = excluded.lag_max,
        lag_mean = excluded.lag_mean, lag_lower_bound = excluded.lag_lower_bound,
        gap = excluded.gap, kept = excluded.kept, moved = excluded.moved, placed = excluded.placed,
        late_s = excluded.late_s, utilisation = excluded.utilisation
    WHERE known.measured_at < excluded.measured_at;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION fairlead_raw.sum_up_balances IS
    'Takes balances over into the day of their group, and to the plan that they are of.';

CREATE FUNCTION fairlead_raw.sum_up_adoptions() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO fairlead_raw.last_adoption AS known
        (group_id, version, observed_at, planned, as_planned)
    SELECT DISTINCT ON (group_id, version) group_id, version, observed_at, planned, as_planned
    FROM stored ORDER BY group_id, version, observed_at DESC
    ON CONFLICT (group_id, version) DO UPDATE SET
        observed_at = excluded.observed_at, planned = excluded.planned,
        as_planned = excluded.as_planned
    WHERE known.observed_at < excluded.observed_at;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION fairlead_raw.sum_up_adoptions IS 'Takes over how far plans were last followed.';
REVOKE EXECUTE ON FUNCTION fairlead_raw.sum_up_decisions, fairlead_raw.sum_up_balances,
                           fairlead_raw.sum_up_adoptions FROM PUBLIC;

CREATE TRIGGER sum_up AFTER INSERT ON fairlead_raw.decision
    REFERENCING NEW TABLE AS stored
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.sum_up_decisions();
CREATE TRIGGER sum_up AFTER INSERT ON fairlead_raw.balance
    REFERENCING NEW TABLE AS stored
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.sum_up_balances();
CREATE TRIGGER sum_up AFTER INSERT ON fairlead_raw.plan_adoption
    REFERENCING NEW TABLE AS stored
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.sum_up_adoptions();

INSERT INTO fairlead_raw.decision SELECT * FROM fairlead_raw.decision_before;
INSERT INTO fairlead_raw.candidate
SELECT candidate.*, decision.snapshot_at
FROM fairlead_raw.candidate_before candidate
JOIN fairlead_raw.decision_before decision USING (group_id, snapshot_id);
INSERT INTO fairlead_raw.balance
    (group_id, measured_at, kind, version, snapshot_id, count_min, count_max, balance_score, lag_max,
       lag_mean, lag_lower_bound, gap, kept, moved, placed, late_s, utilisation)
SELECT group_id, measured_at, kind, version, snapshot_id, count_min, count_max, balance_score, lag_max,
       lag_mean, lag_lower_bound, gap, kept, moved, placed, late_s, utilisation
FROM fairlead_raw.balance_before ON CONFLICT DO NOTHING;
INSERT INTO fairlead_raw.plan_adoption (group_id, version, observed_at, planned, as_planned, lag_max)
SELECT adoption.group_id, adoption.version, adoption.observed_at, adoption.planned,
       adoption.as_planned, achieved.lag_max
FROM fairlead_raw.plan_adoption_before adoption
LEFT JOIN fairlead_raw.balance_before achieved
    ON achieved.group_id = adoption.group_id AND achieved.version = adoption.version
    AND achieved.kind = 'achieved' AND achieved.measured_at = adoption.observed_at;


-- What people query. None of these views is in an order: to ask for the newest of a group must not
-- mean to sort all that there is of it.
CREATE OR REPLACE VIEW fairlead.decision AS SELECT * FROM fairlead_raw.decision;
CREATE OR REPLACE VIEW fairlead.candidate AS SELECT * FROM fairlead_raw.candidate;
COMMENT ON COLUMN fairlead.candidate.snapshot_at IS 'When the snapshot was taken.';

CREATE OR REPLACE VIEW fairlead.plan_history AS
SELECT plan.group_id,
       plan.version,
       plan.state,
       plan.assignor,
       plan.rolled_back_from,
       plan.created_at AS proposed_at,
       plan.four_eyes,
       coalesce(approved.database_user, rejected.database_user) AS decided_by,
       coalesce(approved.at, rejected.at) AS decided_at,
       coalesce(approved.reason, rejected.reason) AS decision,
       published.at AS published_at,
       predicted.moved,
       predicted.placed,
       observed.lag_max AS lag_max_before,
       predicted.lag_max AS lag_max_predicted,
       achieved.lag_max AS lag_max_achieved,
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
       predicted.utilisation AS utilisation_predicted,
       adoption.observed_at AS adherence_at
FROM fairlead_raw.plan
LEFT JOIN fairlead_raw.plan_event approved
    ON approved.group_id = plan.group_id AND approved.version = plan.version
    AND approved.state = 'approved'
LEFT JOIN fairlead_raw.plan_event rejected
    ON rejected.group_id = plan.group_id AND rejected.version = plan.version
    AND rejected.state = 'rejected'
LEFT JOIN fairlead_raw.plan_event published
    ON published.group_id = plan.group_id AND published.version = plan.version
    AND published.state = 'published'
LEFT JOIN fairlead_raw.plan_balance observed
    ON observed.group_id = plan.group_id AND observed.version = plan.version
    AND observed.kind = 'observed'
LEFT JOIN fairlead_raw.plan_balance predicted
    ON predicted.group_id = plan.group_id AND predicted.version = plan.version
    AND predicted.kind = 'predicted'
LEFT JOIN fairlead_raw.plan_balance achieved
    ON achieved.group_id = plan.group_id AND achieved.version = plan.version
    AND achieved.kind = 'achieved'
LEFT JOIN fairlead_raw.last_adoption adoption
    ON adoption.group_id = plan.group_id AND adoption.version = plan.version;
COMMENT ON COLUMN fairlead.plan_history.adherence_at IS 'When that was read.';

CREATE OR REPLACE VIEW fairlead.balance_history AS
SELECT balance.group_id, balance.measured_at, balance.kind, balance.version, plan.assignor,
       balance.count_min, balance.count_max, balance.balance_score,
       balance.lag_max, balance.lag_mean,
       round((balance.lag_max / nullif(balance.lag_mean, 0))::numeric, 3) AS imbalance,
       balance.lag_lower_bound, balance.gap, balance.kept, balance.moved, balance.placed,
       balance.snapshot_id, balance.late_s, balance.utilisation
FROM fairlead_raw.balance
LEFT JOIN fairlead_raw.plan USING (group_id, version);

CREATE OR REPLACE VIEW fairlead.adoption AS
SELECT adoption.group_id, adoption.version, adoption.observed_at, plan.state,
       adoption.planned, adoption.as_planned,
       round(adoption.as_planned::numeric / nullif(adoption.planned, 0), 4) AS adherence,
       predicted.lag_max AS lag_max_predicted, adoption.lag_max AS lag_max_achieved
FROM fairlead_raw.plan_adoption adoption
JOIN fairlead_raw.plan USING (group_id, version)
LEFT JOIN fairlead_raw.plan_balance predicted
    ON predicted.group_id = plan.group_id AND predicted.version = plan.version
    AND predicted.kind = 'predicted';

CREATE VIEW fairlead.last_decision AS
SELECT newest.*
FROM fairlead_raw.consumer_group known
CROSS JOIN LATERAL (
    SELECT * FROM fairlead_raw.decision
    WHERE decision.group_id = known.group_id ORDER BY snapshot_at DESC LIMIT 1
) newest;
COMMENT ON VIEW fairlead.last_decision IS 'What the newest snapshot of each group came to.';

CREATE VIEW fairlead.group_day AS
SELECT group_id, day, plans, no_changes, failures, first_at,
       round(imbalance_first::numeric, 3) AS imbalance_first, last_at,
       round(imbalance_last::numeric, 3) AS imbalance_last,
       round(imbalance_worst::numeric, 3) AS imbalance_worst, lag_max_worst, late_s_worst
FROM fairlead_raw.group_day;
COMMENT ON VIEW fairlead.group_day IS
    'Each group''s day in a row: decisions by what they came to, balance and forecast as observed.';

CREATE VIEW fairlead.plan_pruned AS SELECT * FROM fairlead_raw.plan_pruned;
COMMENT ON VIEW fairlead.plan_pruned IS
    'How many versions of each group are gone: those that nobody followed or rejected.';

DROP TABLE fairlead_raw.candidate_before, fairlead_raw.decision_before,
           fairlead_raw.balance_before, fairlead_raw.plan_adoption_before;


-- What there is, and what goes.
DROP FUNCTION fairlead.prune_lag, fairlead.lag_days;
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
    'The days (UTC) that are kept of each history, and their size on disk.';

-- One history at a time, each its own transaction: whoever reads two of them never waits for this
-- while this waits for them. Waits for locks for ten seconds at most: who reads meanwhile goes first.
CREATE FUNCTION fairlead.prune_history(history text, older_than timestamptz)
RETURNS TABLE (day date, bytes bigint) LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '10s' AS $$
DECLARE
    gone record;
BEGIN
    -- Prunes take turns; writers of new days do not wait for them.
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
    'Drops all whole days (UTC) of a history before a moment; returns the days and the bytes freed.';

-- Rows that are in no day. A version that nobody followed and no person rejected goes, unless it is
-- its group's newest (versions count on from it) or another one goes back to it.
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
        RAISE EXCEPTION 'summaries are kept for as long as what they sum up';
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
    INSERT INTO fairlead_raw.plan_pruned AS known (group_id, versions, last_at)
    SELECT g, count(*), now() FROM unnest(groups) g GROUP BY g
    ON CONFLICT (group_id) DO UPDATE SET
        versions = known.versions + excluded.versions, last_at = excluded.last_at;
    what := 'versions that nobody followed';
    RETURN NEXT;
    DELETE FROM fairlead_raw.group_diagnosis WHERE until < before;
    GET DIAGNOSTICS gone = ROW_COUNT;
    what := 'diagnoses that hold no more';
    RETURN NEXT;
    DELETE FROM fairlead_raw.group_day WHERE day < first_kept;
    GET DIAGNOSTICS gone = ROW_COUNT;
    what := 'days of groups in summary';
    RETURN NEXT;
    SELECT array_agg(known.group_id) INTO groups FROM fairlead_raw.consumer_group known
    WHERE known.first_seen_at < first_kept::timestamp AT TIME ZONE 'UTC'
        AND NOT EXISTS (SELECT FROM fairlead_raw.plan WHERE plan.group_id = known.group_id)
        AND NOT EXISTS (SELECT FROM fairlead_raw.group_day WHERE group_day.group_id = known.group_id)
        AND NOT EXISTS (
            SELECT FROM fairlead_raw.lag_snapshot WHERE lag_snapshot.group_id = known.group_id
        )
        AND NOT EXISTS (
            SELECT FROM fairlead_raw.group_diagnosis
            WHERE group_diagnosis.group_id = known.group_id AND last_seen >= before
        );
    DELETE FROM fairlead_raw.member_capacity WHERE group_id = ANY (groups);
    DELETE FROM fairlead_raw.group_diagnosis WHERE group_id = ANY (groups);
    DELETE FROM fairlead_raw.consumer_group WHERE group_id = ANY (groups);
    GET DIAGNOSTICS gone = ROW_COUNT;
    what := 'groups of which nothing is left';
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION fairlead.prune_rows IS
    'Deletes versions that nobody followed, diagnoses and summaries before a moment; returns how many.';
REVOKE EXECUTE ON FUNCTION fairlead.prune_history, fairlead.prune_rows, fairlead.history_days
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION fairlead.history_days
    TO fairlead_planner, fairlead_approver, fairlead_reader;

-- Nobody deletes what is written once, but for prune_rows: nobody else has the right to, and whoever
-- has it, as the owner of the schema, does not do it by mistake.
CREATE OR REPLACE FUNCTION fairlead_raw.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('fairlead.pruning', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION '%.% is written once: no %', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'FL002';
END $$;


GRANT SELECT ON fairlead_raw.decision, fairlead_raw.candidate, fairlead_raw.balance,
                fairlead_raw.plan_adoption, fairlead_raw.group_day, fairlead_raw.plan_balance,
                fairlead_raw.last_adoption, fairlead_raw.plan_pruned, fairlead.last_decision,
                fairlead.group_day, fairlead.plan_pruned
    TO fairlead_planner, fairlead_approver, fairlead_reader;
GRANT INSERT (group_id, snapshot_id, snapshot_at, outcome, reason, version)
    ON fairlead_raw.decision TO fairlead_planner;
GRANT INSERT ON fairlead_raw.candidate, fairlead_raw.balance, fairlead_raw.plan_adoption
    TO fairlead_planner;

-- Views say of themselves what their tables do.
DO $$
DECLARE
    shown record;
BEGIN
    FOR shown IN
        SELECT viewed.name AS view_name, column_of.attname AS column_name,
               col_description(of_table.attrelid, of_table.attnum) AS comment
        FROM (VALUES ('last_decision', 'decision'), ('group_day', 'group_day'),
                     ('plan_pruned', 'plan_pruned')) viewed (name, table_name)
        JOIN pg_attribute column_of
            ON column_of.attrelid = format('fairlead.%I', viewed.name)::regclass
        JOIN pg_attribute of_table
            ON of_table.attrelid = format('fairlead_raw.%I', viewed.table_name)::regclass
            AND of_table.attname = column_of.attname
        WHERE column_of.attnum > 0
    LOOP
        EXECUTE format('COMMENT ON COLUMN fairlead.%I.%I IS %L',
            shown.view_name, shown.column_name, shown.comment);
    END LOOP;
END $$;
