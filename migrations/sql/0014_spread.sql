-- How topics are spread, beside the other figures of an assignment. Rows from before have none.

ALTER TABLE fairlead_raw.balance ADD COLUMN topic_spread double precision;
ALTER TABLE fairlead_raw.candidate ADD COLUMN topic_spread double precision;
ALTER TABLE fairlead_raw.plan_balance ADD COLUMN topic_spread double precision;

CREATE OR REPLACE VIEW fairlead.candidate AS SELECT * FROM fairlead_raw.candidate;

CREATE OR REPLACE VIEW fairlead.balance_history AS
SELECT balance.group_id, balance.measured_at, balance.kind, balance.version, plan.assignor,
       balance.count_min, balance.count_max, balance.balance_score,
       balance.lag_max, balance.lag_mean,
       round((balance.lag_max / nullif(balance.lag_mean, 0))::numeric, 3) AS imbalance,
       balance.lag_lower_bound, balance.gap, balance.kept, balance.moved, balance.placed,
       balance.snapshot_id, balance.late_s, balance.utilisation, balance.topic_spread
FROM fairlead_raw.balance
LEFT JOIN fairlead_raw.plan USING (group_id, version);

DO $$
BEGIN
    EXECUTE 'CREATE OR REPLACE VIEW fairlead.plan_history AS' || replace(
        pg_get_viewdef('fairlead.plan_history'::regclass),
        'adoption.observed_at AS adherence_at',
        'adoption.observed_at AS adherence_at, observed.topic_spread AS topic_spread_before,'
        ' predicted.topic_spread AS topic_spread_predicted,'
        ' achieved.topic_spread AS topic_spread_achieved');
END $$;

-- Tables, the days that they have already, and views.
DO $$
DECLARE
    place text;
BEGIN
    FOR place IN
        SELECT format('%s.%I', attrelid::regclass, attname)
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace::regnamespace::text IN ('fairlead', 'fairlead_raw')
            AND relkind IN ('r', 'p', 'v') AND attname IN ('topic_spread', 'topic_spread_before')
    LOOP
        EXECUTE format('COMMENT ON COLUMN %s IS %L', place,
            'The worst topic''s largest share on one member over its even share; 1 is even.');
    END LOOP;
END $$;
COMMENT ON COLUMN fairlead.plan_history.topic_spread_predicted IS 'The same, under the plan.';
COMMENT ON COLUMN fairlead.plan_history.topic_spread_achieved IS 'The same, as last read.';


CREATE OR REPLACE FUNCTION fairlead_raw.sum_up_balances() RETURNS trigger
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
         lag_max, lag_mean, lag_lower_bound, gap, kept, moved, placed, late_s, utilisation,
         topic_spread)
    SELECT one.group_id, of_plan.version, one.kind, one.measured_at, one.snapshot_id, one.count_min,
           one.count_max, one.balance_score, one.lag_max, one.lag_mean, one.lag_lower_bound, one.gap,
           one.kept, one.moved, one.placed, one.late_s, one.utilisation, one.topic_spread
    FROM stored of_plan JOIN stored one USING (group_id, snapshot_id)
    WHERE of_plan.kind = 'predicted' AND one.kind IN ('observed', 'predicted')
    ON CONFLICT (group_id, version, kind) DO NOTHING;
    INSERT INTO fairlead_raw.plan_balance AS known
        (group_id, version, kind, measured_at, snapshot_id, count_min, count_max, balance_score,
         lag_max, lag_mean, lag_lower_bound, gap, kept, moved, placed, late_s, utilisation,
         topic_spread)
    SELECT DISTINCT ON (group_id, version)
           group_id, version, kind, measured_at, snapshot_id, count_min, count_max, balance_score,
           lag_max, lag_mean, lag_lower_bound, gap, kept, moved, placed, late_s, utilisation,
           topic_spread
    FROM stored WHERE kind = 'achieved' ORDER BY group_id, version, measured_at DESC
    ON CONFLICT (group_id, version, kind) DO UPDATE SET
        measured_at = excluded.measured_at, snapshot_id = excluded.snapshot_id,
        count_min = excluded.count_min, count_max = excluded.count_max,
        balance_score = excluded.balance_score, lag_max = excluded.lag_max,
        lag_mean = excluded.lag_mean, lag_lower_bound = excluded.lag_lower_bound,
        gap = excluded.gap, kept = excluded.kept, moved = excluded.moved, placed = excluded.placed,
        late_s = excluded.late_s, utilisation = excluded.utilisation,
        topic_spread = excluded.topic_spread
    WHERE known.measured_at < excluded.measured_at;
    RETURN NULL;
END $$;
