-- Views for people: stored figures, and sums and maxima of these. Views that are often queried for the newest
-- row of a group have no order, because such a query would sort all rows.

-- Arrival rate times seconds per record: the share of one consumer's time that the records take.
CREATE FUNCTION fairlead_raw.time_share(arrival_rate double precision, seconds double precision)
RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
'SELECT arrival_rate * seconds AS time_share';


-- Views that are copies of tables.
CREATE VIEW fairlead.plan AS SELECT * FROM fairlead_raw.plan;
CREATE VIEW fairlead.plan_event AS SELECT * FROM fairlead_raw.plan_event;
CREATE VIEW fairlead.freeze_event AS SELECT * FROM fairlead_raw.freeze_event;
CREATE VIEW fairlead.page_act AS SELECT * FROM fairlead_raw.page_act;
CREATE VIEW fairlead.plan_record AS SELECT * FROM fairlead_raw.plan_record;
CREATE VIEW fairlead.plan_attempt AS SELECT * FROM fairlead_raw.plan_attempt;
CREATE VIEW fairlead.plan_pruned AS SELECT * FROM fairlead_raw.plan_pruned;
CREATE VIEW fairlead.decision AS SELECT * FROM fairlead_raw.decision;
CREATE VIEW fairlead.candidate AS SELECT * FROM fairlead_raw.candidate;
CREATE VIEW fairlead.member_capacity AS SELECT * FROM fairlead_raw.member_capacity;
CREATE VIEW fairlead.group_sample AS SELECT * FROM fairlead_raw.group_sample;
CREATE VIEW fairlead.group_day AS SELECT * FROM fairlead_raw.group_day;


CREATE VIEW fairlead.plan_history AS
SELECT plan.group_id,
       plan.version,
       plan.state,
       plan.assignor,
       plan.rolled_back_from,
       plan.created_at AS proposed_at,
       plan.four_eyes,
       plan.shadow,
       -- Only a service may name an actor other than its login.
       CASE WHEN approved.actor = 'policy' THEN 'policy'
            ELSE coalesce(approved.database_user, rejected.database_user) END AS decided_by,
       coalesce(approved.at, rejected.at) AS decided_at,
       coalesce(approved.reason, rejected.reason) AS decision,
       published.at AS published_at,
       predicted.moved,
       predicted.placed,
       observed.lag_max AS lag_max_before,
       predicted.lag_max AS lag_max_predicted,
       achieved.lag_max AS lag_max_achieved,
       observed.imbalance AS imbalance_before,
       predicted.imbalance AS imbalance_predicted,
       achieved.imbalance AS imbalance_achieved,
       adoption.adherence,
       plan.reason,
       plan.snapshot_id,
       plan.sha256,
       plan.expires_at,
       observed.forecast_time_lag_s AS forecast_time_lag_before,
       predicted.forecast_time_lag_s AS forecast_time_lag_predicted,
       observed.utilisation AS utilisation_before,
       predicted.utilisation AS utilisation_predicted,
       observed.catch_up_s AS catch_up_before,
       predicted.catch_up_s AS catch_up_predicted,
       adoption.observed_at AS adherence_at,
       observed.topic_spread AS topic_spread_before,
       predicted.topic_spread AS topic_spread_predicted,
       achieved.topic_spread AS topic_spread_achieved,
       observed.rack_gb_per_day AS rack_gb_per_day_before,
       predicted.rack_gb_per_day AS rack_gb_per_day_predicted,
       observed.rack_cost_per_day AS rack_cost_per_day_before,
       predicted.rack_cost_per_day AS rack_cost_per_day_predicted,
       attempt.at AS not_sent_at,
       attempt.reason AS not_sent,
       attempt.again_at AS sent_again_at
FROM fairlead_raw.plan
LEFT JOIN fairlead_raw.plan_attempt attempt
    ON attempt.group_id = plan.group_id AND attempt.version = plan.version
    AND plan.state IN ('approved', 'sending', 'published')
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

COMMENT ON VIEW fairlead.plan_history IS
    'Every version of every plan: who decided, what it moves, what it predicted and achieved.';
COMMENT ON COLUMN fairlead.plan_history.proposed_at IS 'When the plan was proposed.';
COMMENT ON COLUMN fairlead.plan_history.decided_by IS
    'policy, or the login that approved or rejected the plan; plan_event.actor is the person for whom it acted.';
COMMENT ON COLUMN fairlead.plan_history.decided_at IS 'When the plan was approved or rejected.';
COMMENT ON COLUMN fairlead.plan_history.decision IS 'Why the plan was approved or rejected.';
COMMENT ON COLUMN fairlead.plan_history.published_at IS 'When the plan was published.';
COMMENT ON COLUMN fairlead.plan_history.adherence_at IS 'When the adherence was read.';
COMMENT ON COLUMN fairlead.plan_history.not_sent_at IS
    'When the last attempt to send the plan failed; null if no attempt has failed since the plan was last sent.';
COMMENT ON COLUMN fairlead.plan_history.not_sent IS 'Why the plan was not sent.';
COMMENT ON COLUMN fairlead.plan_history.sent_again_at IS
    'Latest time of the planner''s next attempt.';


CREATE VIEW fairlead.plan_moves AS
SELECT plan.group_id, plan.version, plan.state, move.topic, move.partition,
       move.previous_member, move.member, move.weight, move.reason
FROM fairlead_raw.moved_partition move
JOIN fairlead_raw.plan USING (group_id, version);

COMMENT ON VIEW fairlead.plan_moves IS
    'The partitions that change owner in a plan, with the state of the plan.';


CREATE VIEW fairlead.adoption AS
SELECT adoption.group_id, adoption.version, adoption.observed_at, plan.state,
       adoption.planned, adoption.as_planned,
       adoption.adherence
FROM fairlead_raw.plan_adoption adoption
JOIN fairlead_raw.plan USING (group_id, version);

COMMENT ON VIEW fairlead.adoption IS
    'How much of a published plan the consumers follow.';
COMMENT ON COLUMN fairlead.adoption.state IS 'State of the plan now.';


CREATE VIEW fairlead.balance_history AS
SELECT balance.group_id, balance.measured_at, balance.kind, balance.version, plan.assignor,
       balance.count_min, balance.count_max, balance.balance_score,
       balance.lag_max, balance.lag_mean, balance.imbalance,
       balance.lag_lower_bound, balance.gap, balance.kept, balance.moved, balance.placed,
       balance.snapshot_id, balance.forecast_time_lag_s, balance.utilisation, balance.catch_up_s,
       balance.topic_spread,
       balance.rack_gb_per_day, balance.rack_cost_per_day
FROM fairlead_raw.balance
LEFT JOIN fairlead_raw.plan USING (group_id, version);

COMMENT ON VIEW fairlead.balance_history IS
    'How evenly the work of a group was spread: as observed, and as plans predicted.';
COMMENT ON COLUMN fairlead.balance_history.assignor IS
    'The assignor of the plan that predicts this balance; null if the balance was observed.';


CREATE VIEW fairlead.lag_history AS
SELECT lag.group_id, lag.snapshot_at, snapshot.snapshot_id, lag.topic, lag.partition, lag.member,
       lag.begin_offset, lag.end_offset, lag.committed_offset, lag.lag, lag.lost, lag.lost_at,
       lag.arrival_rate, lag.consumption_rate, lag.time_lag_s, lag.status
FROM fairlead_raw.partition_lag lag
JOIN fairlead_raw.lag_snapshot snapshot USING (group_id, snapshot_at);

COMMENT ON VIEW fairlead.lag_history IS
    'Lag of every partition in every snapshot, and the member that owned it.';


CREATE VIEW fairlead.last_decision AS
SELECT known.group_id, newest.snapshot_id, newest.snapshot_at, newest.decided_at, newest.outcome,
       newest.reason, newest.version, newest.settings
FROM fairlead_raw.consumer_group known
CROSS JOIN LATERAL (
    SELECT * FROM fairlead_raw.decision
    WHERE decision.group_id = known.group_id ORDER BY snapshot_at DESC LIMIT 1
) newest;

COMMENT ON VIEW fairlead.last_decision IS 'The decision on the newest snapshot of each group.';
COMMENT ON COLUMN fairlead.last_decision.group_id IS 'The consumer group.';


CREATE VIEW fairlead.diagnosis AS
SELECT group_id, diagnosis, names, evidence, forecast_time_lag_s, utilisation, loss_s, catch_up_s,
       consumers_wanted, consumers_why, since, last_seen
FROM fairlead_raw.group_diagnosis WHERE until IS NULL;

COMMENT ON VIEW fairlead.diagnosis IS 'Latest diagnosis of each group.';


CREATE VIEW fairlead.partition_cost AS
SELECT group_id, topic, partition::integer AS partition,
       (seconds ->> 1)::double precision AS seconds_per_record,
       (seconds ->> 0)::double precision AS seconds_low,
       (seconds ->> 2)::double precision AS seconds_high,
       cost, cost / width AS low, cost * width AS high, last_seen
FROM fairlead_raw.group_diagnosis
CROSS JOIN LATERAL (
    SELECT topic, partition, seconds, cost, width
    FROM (
        SELECT topic.key AS topic, partition.key AS partition, partition.value AS seconds
        FROM jsonb_each(reported -> 'partitions') topic, jsonb_each(topic.value) partition
    ) measured
    FULL JOIN (
        SELECT topic.key AS topic, partition.key AS partition,
               (partition.value ->> 0)::double precision AS cost,
               exp(1.645 * (partition.value ->> 1)::double precision) AS width
        FROM jsonb_each(costs) topic, jsonb_each(topic.value) partition
        WHERE (partition.value ->> 1)::double precision <= 0.135  -- the cost is known: see analysis/costs.py
    ) compared USING (topic, partition)
) known
WHERE until IS NULL;

COMMENT ON VIEW fairlead.partition_cost IS
    'Processing time of a record of each partition, relative to its group and, if consumers report work, in seconds.';
COMMENT ON COLUMN fairlead.partition_cost.topic IS 'The topic.';
COMMENT ON COLUMN fairlead.partition_cost.partition IS 'The partition.';
COMMENT ON COLUMN fairlead.partition_cost.seconds_per_record IS
    'Processing time of a record on its present consumer, as reported over the last hour.';
COMMENT ON COLUMN fairlead.partition_cost.seconds_low IS 'Lower end of the 90 % interval of seconds_per_record.';
COMMENT ON COLUMN fairlead.partition_cost.seconds_high IS 'Upper end of the 90 % interval of seconds_per_record.';
COMMENT ON COLUMN fairlead.partition_cost.cost IS
    'Processing time of a record, as a multiple of the usual time in the group.';
COMMENT ON COLUMN fairlead.partition_cost.low IS 'Lower end of the 90 % interval of cost.';
COMMENT ON COLUMN fairlead.partition_cost.high IS 'Upper end of the 90 % interval of cost.';


CREATE VIEW fairlead.consumer_work AS
SELECT group_id, consumer.key AS member, consumer.value::double precision AS busy, last_seen
FROM fairlead_raw.group_diagnosis, jsonb_each_text(reported -> 'consumers') consumer
WHERE until IS NULL;

COMMENT ON VIEW fairlead.consumer_work IS 'Busy shares of consumers that report their work, over the last hour.';
COMMENT ON COLUMN fairlead.consumer_work.member IS 'The consumer.';
COMMENT ON COLUMN fairlead.consumer_work.busy IS
    'Share of time in which a consumer did not wait for records, as reported over the last hour.';


CREATE VIEW fairlead.partition_work AS
SELECT sample.group_id, cell.topic, cell.partition, sample.members[value.owner + 1] AS member,
       value.arrival_rate::numeric::double precision AS arrival_rate,
       cost.seconds_per_record, cost.seconds_low, cost.seconds_high,
       fairlead_raw.time_share(value.arrival_rate, cost.seconds_per_record) AS time_share,
       nullif(value.capacity_share, 'NaN')::numeric::double precision AS capacity_share, cost.cost,
       sample.sampled_at
FROM fairlead_raw.group_sample_last sample
CROSS JOIN LATERAL (
    SELECT name AS topic, number AS partition, row_number() OVER (ORDER BY place, number) AS place
    FROM unnest(topics, counts) WITH ORDINALITY AS read (name, count, place)
    CROSS JOIN generate_series(0, count - 1) number
) cell
JOIN LATERAL unnest(owner, arrival_rate, capacity_share) WITH ORDINALITY
    AS value (owner, arrival_rate, capacity_share, place) USING (place)
LEFT JOIN fairlead.partition_cost cost ON cost.group_id = sample.group_id
    AND cost.topic = cell.topic AND cost.partition = cell.partition
WHERE sample.forecast_time_lag_s IS NOT NULL;  -- else there were too few samples for arrival rates

COMMENT ON VIEW fairlead.partition_work IS
    'How much of its consumer''s time and capacity each partition takes, as of the last sample.';
COMMENT ON COLUMN fairlead.partition_work.topic IS 'The topic.';
COMMENT ON COLUMN fairlead.partition_work.partition IS 'The partition.';
COMMENT ON COLUMN fairlead.partition_work.member IS 'The partition''s consumer; null if there is none.';
COMMENT ON COLUMN fairlead.partition_work.arrival_rate IS 'Records written a second.';
COMMENT ON COLUMN fairlead.partition_work.time_share IS
    'Share of one consumer''s time that the arriving records take: arrival rate times time per record.';
COMMENT ON COLUMN fairlead.partition_work.capacity_share IS
    'Share of the consumer''s capacity that the arriving records of a partition need.';


CREATE VIEW fairlead.diagnosis_history AS
SELECT group_id, since, until, last_seen, diagnosis, names, evidence, forecast_time_lag_s, utilisation, loss_s
FROM fairlead_raw.group_diagnosis ORDER BY group_id, since;

COMMENT ON VIEW fairlead.diagnosis_history IS
    'Diagnoses of each group with their start and end; one row per change.';


COMMENT ON TABLE fairlead.alembic_version IS 'Alembic: the revision of this schema.';
COMMENT ON COLUMN fairlead.alembic_version.version_num IS 'The revision.';

-- Views and their columns that have no comment get the comments of the tables and columns that they show.
DO $$
DECLARE
    target record;
BEGIN
    FOR target IN
        SELECT relname AS name,
               obj_description(format('fairlead_raw.%I', relname)::regclass, 'pg_class') AS comment
        FROM pg_class
        WHERE relnamespace = 'fairlead'::regnamespace AND relkind = 'v'
            AND obj_description(oid, 'pg_class') IS NULL
    LOOP
        EXECUTE format('COMMENT ON VIEW fairlead.%I IS %L', target.name, target.comment);
    END LOOP;
    FOR target IN
        SELECT viewed.view_name, field.attname AS column_name,
               stage.words || min(col_description(read.attrelid, read.attnum) COLLATE "C") AS comment
        FROM information_schema.view_column_usage viewed
        CROSS JOIN (VALUES ('', ''), ('_before', 'Before the plan: '),
            ('_predicted', 'As the plan predicts: '), ('_achieved', 'As last measured under the plan: ')
        ) stage (suffix, words)
        JOIN pg_attribute read
            ON read.attrelid = format('%I.%I', viewed.table_schema, viewed.table_name)::regclass
            AND read.attname = viewed.column_name
        JOIN pg_attribute field
            ON field.attrelid = format('fairlead.%I', viewed.view_name)::regclass
            AND field.attname = CASE WHEN stage.suffix = '' THEN viewed.column_name
                ELSE regexp_replace(viewed.column_name, '_s$', '') || stage.suffix END
        WHERE viewed.view_schema = 'fairlead'
            AND col_description(field.attrelid, field.attnum) IS NULL
        GROUP BY 1, 2, stage.words
    LOOP
        EXECUTE format('COMMENT ON COLUMN fairlead.%I.%I IS %L',
            target.view_name, target.column_name, target.comment);
    END LOOP;
END $$;
