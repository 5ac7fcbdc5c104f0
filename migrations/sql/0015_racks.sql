-- Traffic between racks, beside the other figures of an assignment. Rows from before have none, nor do groups
-- whose consumers name no rack.

ALTER TABLE fairlead_raw.balance ADD COLUMN rack_gb_per_day double precision,
    ADD COLUMN rack_cost_per_day double precision;
ALTER TABLE fairlead_raw.candidate ADD COLUMN rack_gb_per_day double precision,
    ADD COLUMN rack_cost_per_day double precision;
ALTER TABLE fairlead_raw.plan_balance ADD COLUMN rack_gb_per_day double precision,
    ADD COLUMN rack_cost_per_day double precision;

CREATE OR REPLACE VIEW fairlead.candidate AS SELECT * FROM fairlead_raw.candidate;

DO $$
BEGIN
    EXECUTE 'CREATE OR REPLACE VIEW fairlead.balance_history AS' || replace(
        pg_get_viewdef('fairlead.balance_history'::regclass),
        'balance.topic_spread',
        'balance.topic_spread, balance.rack_gb_per_day, balance.rack_cost_per_day');
    EXECUTE 'CREATE OR REPLACE VIEW fairlead.plan_history AS' || replace(
        pg_get_viewdef('fairlead.plan_history'::regclass),
        'achieved.topic_spread AS topic_spread_achieved',
        'achieved.topic_spread AS topic_spread_achieved,'
        ' observed.rack_gb_per_day AS rack_gb_per_day_before,'
        ' predicted.rack_gb_per_day AS rack_gb_per_day_predicted,'
        ' observed.rack_cost_per_day AS rack_cost_per_day_before,'
        ' predicted.rack_cost_per_day AS rack_cost_per_day_predicted');
END $$;

-- Tables, the days that they have already, and views.
DO $$
DECLARE
    place record;
BEGIN
    FOR place IN
        SELECT format('%s.%I', attrelid::regclass, attname) AS name, said
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        JOIN (VALUES
            ('rack_gb_per_day', 'Gigabytes a day that consumers read from other racks, on average.'),
            ('rack_gb_per_day_before', 'Gigabytes a day read from other racks before the plan.'),
            ('rack_gb_per_day_predicted', 'The same, under the plan.'),
            ('rack_cost_per_day', 'What they cost a day, by the price of the policy.'),
            ('rack_cost_per_day_before', 'What these cost a day, by the price of the policy.'),
            ('rack_cost_per_day_predicted', 'The same, under the plan.')
        ) AS sayings (attname, said) USING (attname)
        WHERE relnamespace::regnamespace::text IN ('fairlead', 'fairlead_raw')
            AND relkind IN ('r', 'p', 'v')
    LOOP
        EXECUTE format('COMMENT ON COLUMN %s IS %L', place.name, place.said);
    END LOOP;
END $$;


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
         topic_spread, rack_gb_per_day, rack_cost_per_day)
    SELECT one.group_id, of_plan.version, one.kind, one.measured_at, one.snapshot_id, one.count_min,
           one.count_max, one.balance_score, one.lag_max, one.lag_mean, one.lag_lower_bound, one.gap,
           one.kept, one.moved, one.placed, one.late_s, one.utilisation, one.topic_spread,
           one.rack_gb_per_day, one.rack_cost_per_day
    FROM stored of_plan JOIN stored one USING (group_id, snapshot_id)
    WHERE of_plan.kind = 'predicted' AND one.kind IN ('observed', 'predicted')
    ON CONFLICT (group_id, version, kind) DO NOTHING;
    INSERT INTO fairlead_raw.plan_balance AS known
        (group_id, version, kind, measured_at, snapshot_id, count_min, count_max, balance_score,
         lag_max, lag_mean, lag_lower_bound, gap, kept, moved, placed, late_s, utilisation,
         topic_spread, rack_gb_per_day, rack_cost_per_day)
    SELECT DISTINCT ON (group_id, version)
           group_id, version, kind, measured_at, snapshot_id, count_min, count_max, balance_score,
           lag_max, lag_mean, lag_lower_bound, gap, kept, moved, placed, late_s, utilisation,
           topic_spread, rack_gb_per_day, rack_cost_per_day
    FROM stored WHERE kind = 'achieved' ORDER BY group_id, version, measured_at DESC
    ON CONFLICT (group_id, version, kind) DO UPDATE SET
        measured_at = excluded.measured_at, snapshot_id = excluded.snapshot_id,
        count_min = excluded.count_min, count_max = excluded.count_max,
        balance_score = excluded.balance_score, lag_max = excluded.lag_max,
        lag_mean = excluded.lag_mean, lag_lower_bound = excluded.lag_lower_bound,
        gap = excluded.gap, kept = excluded.kept, moved = excluded.moved, placed = excluded.placed,
        late_s = excluded.late_s, utilisation = excluded.utilisation,
        topic_spread = excluded.topic_spread, rack_gb_per_day = excluded.rack_gb_per_day,
        rack_cost_per_day = excluded.rack_cost_per_day
    WHERE known.measured_at < excluded.measured_at;
    RETURN NULL;
END $$;
