COMMENT ON TABLE fairlead.alembic_version IS 'Alembic''s: the revision of this schema.';
COMMENT ON COLUMN fairlead.alembic_version.version_num IS 'The revision.';

-- What people query. Loads are in records; imbalance is the heaviest member over the mean.

-- Tables that people ask as they are.
CREATE VIEW fairlead.plan AS SELECT * FROM fairlead_raw.plan;
CREATE VIEW fairlead.plan_event AS SELECT * FROM fairlead_raw.plan_event;
CREATE VIEW fairlead.plan_record AS SELECT * FROM fairlead_raw.plan_record;
CREATE VIEW fairlead.decision AS SELECT * FROM fairlead_raw.decision;
CREATE VIEW fairlead.candidate AS SELECT * FROM fairlead_raw.candidate;
CREATE VIEW fairlead.member_capacity AS SELECT * FROM fairlead_raw.member_capacity;
CREATE VIEW fairlead.plan_pruned AS SELECT * FROM fairlead_raw.plan_pruned;

-- They say of themselves what their tables do.
DO $$
DECLARE
    name text;
    shown record;
BEGIN
    FOR name IN
        SELECT relname FROM pg_class
        WHERE relnamespace = 'fairlead'::regnamespace AND relkind = 'v'
            AND to_regclass(format('fairlead_raw.%I', relname)) IS NOT NULL
    LOOP
        EXECUTE format('COMMENT ON VIEW fairlead.%I IS %L', name,
            obj_description(format('fairlead_raw.%I', name)::regclass, 'pg_class'));
        FOR shown IN
            SELECT attname, col_description(attrelid, attnum) AS comment FROM pg_attribute
            WHERE attrelid = format('fairlead_raw.%I', name)::regclass
                AND attnum > 0 AND NOT attisdropped
        LOOP
            EXECUTE format('COMMENT ON COLUMN fairlead.%I.%I IS %L',
                name, shown.attname, shown.comment);
        END LOOP;
    END LOOP;
END $$;

CREATE VIEW fairlead.group_day AS
SELECT group_id,
   day,
   plans,
   no_changes,
   failures,
   first_at,
   round(imbalance_first::numeric, 3) AS imbalance_first,
   last_at,
   round(imbalance_last::numeric, 3) AS imbalance_last,
   round(imbalance_worst::numeric, 3) AS imbalance_worst,
   lag_max_worst,
   late_s_worst
  FROM fairlead_raw.group_day;
COMMENT ON VIEW fairlead.group_day IS
    'Each group''s day in a row: decisions by what they came to, balance and forecast as observed.';
COMMENT ON COLUMN fairlead.group_day.group_id IS 'The consumer group.';
COMMENT ON COLUMN fairlead.group_day.day IS 'The day (UTC) of the snapshots.';
COMMENT ON COLUMN fairlead.group_day.plans IS 'Decisions that proposed a plan.';
COMMENT ON COLUMN fairlead.group_day.no_changes IS 'Decisions to change nothing.';
COMMENT ON COLUMN fairlead.group_day.failures IS 'Decisions that failed.';
COMMENT ON COLUMN fairlead.group_day.first_at IS 'When its balance was first observed.';
COMMENT ON COLUMN fairlead.group_day.imbalance_first IS
    'Heaviest member over the mean then; 1 is even; null: nothing to work off.';
COMMENT ON COLUMN fairlead.group_day.last_at IS 'When its balance was last observed.';
COMMENT ON COLUMN fairlead.group_day.imbalance_last IS 'The same then.';
COMMENT ON COLUMN fairlead.group_day.imbalance_worst IS 'The largest of the day.';
COMMENT ON COLUMN fairlead.group_day.lag_max_worst IS
    'Most records that the heaviest member had to work off.';
COMMENT ON COLUMN fairlead.group_day.late_s_worst IS
    'Most seconds that the worst partition was forecast to be behind.';

CREATE VIEW fairlead.last_decision AS
SELECT newest.group_id,
   newest.snapshot_id,
   newest.snapshot_at,
   newest.decided_at,
   newest.outcome,
   newest.reason,
   newest.version
  FROM fairlead_raw.consumer_group known
       CROSS JOIN LATERAL ( SELECT decision.group_id,
              decision.snapshot_id,
              decision.snapshot_at,
              decision.decided_at,
              decision.outcome,
              decision.reason,
              decision.version
             FROM fairlead_raw.decision
            WHERE decision.group_id = known.group_id
            ORDER BY decision.snapshot_at DESC
           LIMIT 1) newest;
COMMENT ON VIEW fairlead.last_decision IS 'What the newest snapshot of each group came to.';
COMMENT ON COLUMN fairlead.last_decision.group_id IS 'The consumer group.';
COMMENT ON COLUMN fairlead.last_decision.snapshot_id IS 'The snapshot decided on.';
COMMENT ON COLUMN fairlead.last_decision.snapshot_at IS 'When that snapshot was taken.';
COMMENT ON COLUMN fairlead.last_decision.decided_at IS 'When the decision was stored.';
COMMENT ON COLUMN fairlead.last_decision.outcome IS 'plan, no change, or failed.';
COMMENT ON COLUMN fairlead.last_decision.reason IS 'Why, in words.';
COMMENT ON COLUMN fairlead.last_decision.version IS 'The plan proposed, if any.';

CREATE VIEW fairlead.plan_moves AS
SELECT plan.group_id,
   plan.version,
   plan.state,
   move.topic,
   move.partition,
   move.previous_member,
   move.member,
   move.weight,
   move.reason
  FROM fairlead_raw.moved_partition move
       JOIN fairlead_raw.plan USING (group_id, version);
COMMENT ON VIEW fairlead.plan_moves IS
    'The partitions whose owner a plan changes, with the state of the plan.';
COMMENT ON COLUMN fairlead.plan_moves.group_id IS 'The consumer group.';
COMMENT ON COLUMN fairlead.plan_moves.version IS 'Counts up per group from 1, without gaps.';
COMMENT ON COLUMN fairlead.plan_moves.state IS 'Where the plan is in its life.';
COMMENT ON COLUMN fairlead.plan_moves.topic IS 'The topic.';
COMMENT ON COLUMN fairlead.plan_moves.partition IS 'The partition.';
COMMENT ON COLUMN fairlead.plan_moves.previous_member IS 'The owner in the snapshot; null: none.';
COMMENT ON COLUMN fairlead.plan_moves.member IS 'The owner in the plan; null: none.';
COMMENT ON COLUMN fairlead.plan_moves.weight IS 'The load that moves, in records.';
COMMENT ON COLUMN fairlead.plan_moves.reason IS 'Why the assignor moves it.';

CREATE VIEW fairlead.balance_history AS
SELECT balance.group_id,
   balance.measured_at,
   balance.kind,
   balance.version,
   plan.assignor,
   balance.count_min,
   balance.count_max,
   balance.balance_score,
   balance.lag_max,
   balance.lag_mean,
   round((balance.lag_max::double precision / NULLIF(balance.lag_mean, 0::double precision))::numeric, 3) AS imbalance,
   balance.lag_lower_bound,
   balance.gap,
   balance.kept,
   balance.moved,
   balance.placed,
   balance.snapshot_id,
   balance.late_s,
   balance.utilisation,
   balance.topic_spread,
   balance.rack_gb_per_day,
   balance.rack_cost_per_day
  FROM fairlead_raw.balance
       LEFT JOIN fairlead_raw.plan USING (group_id, version);
COMMENT ON VIEW fairlead.balance_history IS
    'How evenly the work of a group was spread: observed, predicted by a plan, achieved by it.';
COMMENT ON COLUMN fairlead.balance_history.group_id IS 'The consumer group.';
COMMENT ON COLUMN fairlead.balance_history.measured_at IS 'When the assignment was read.';
COMMENT ON COLUMN fairlead.balance_history.kind IS 'observed, predicted or achieved.';
COMMENT ON COLUMN fairlead.balance_history.version IS 'Counts up per group from 1, without gaps.';
COMMENT ON COLUMN fairlead.balance_history.assignor IS
    'Whose plan predicts or achieves it; null where it was observed.';
COMMENT ON COLUMN fairlead.balance_history.count_min IS 'Fewest partitions of a member.';
COMMENT ON COLUMN fairlead.balance_history.count_max IS 'Most partitions of a member.';
COMMENT ON COLUMN fairlead.balance_history.balance_score IS
    'KIP-54: sum of the pairwise differences of partition counts; 0 is even.';
COMMENT ON COLUMN fairlead.balance_history.lag_max IS 'Load of the heaviest member, in records.';
COMMENT ON COLUMN fairlead.balance_history.lag_mean IS 'Load a member on average, in records.';
COMMENT ON COLUMN fairlead.balance_history.imbalance IS 'Heaviest member over the mean; 1 is even.';
COMMENT ON COLUMN fairlead.balance_history.lag_lower_bound IS
    'No assignment has a heaviest member lighter than this, in records.';
COMMENT ON COLUMN fairlead.balance_history.gap IS 'How far lag_max is above its lower bound.';
COMMENT ON COLUMN fairlead.balance_history.kept IS 'Partitions that stay with their owner.';
COMMENT ON COLUMN fairlead.balance_history.moved IS
    'Partitions taken from an owner that is present.';
COMMENT ON COLUMN fairlead.balance_history.placed IS
    'Partitions without an owner, or whose owner is gone, that get one.';
COMMENT ON COLUMN fairlead.balance_history.snapshot_id IS 'The snapshot whose lag was weighed.';
COMMENT ON COLUMN fairlead.balance_history.late_s IS
    'Seconds the worst partition is forecast to be behind at the policy''s horizon.';
COMMENT ON COLUMN fairlead.balance_history.utilisation IS
    'Share of what it can do that the fullest member gets: above 1 it falls behind.';
COMMENT ON COLUMN fairlead.balance_history.topic_spread IS
    'The worst topic''s largest share on one member over its even share; 1 is even.';
COMMENT ON COLUMN fairlead.balance_history.rack_gb_per_day IS
    'Gigabytes a day that consumers read from other racks, on average.';
COMMENT ON COLUMN fairlead.balance_history.rack_cost_per_day IS
    'What they cost a day, by the price of the policy.';

CREATE VIEW fairlead.lag_history AS
SELECT lag.group_id,
   lag.snapshot_at,
   snapshot.snapshot_id,
   lag.topic,
   lag.partition,
   lag.member,
   lag.begin_offset,
   lag.end_offset,
   lag.committed_offset,
   lag.lag,
   lag.arrival_rate,
   lag.consumption_rate,
   lag.time_lag_s,
   lag.status
  FROM fairlead_raw.partition_lag lag
       JOIN fairlead_raw.lag_snapshot snapshot USING (group_id, snapshot_at);
COMMENT ON VIEW fairlead.lag_history IS
    'Lag of every partition in every snapshot, and the member that owned it.';
COMMENT ON COLUMN fairlead.lag_history.group_id IS 'The consumer group.';
COMMENT ON COLUMN fairlead.lag_history.snapshot_at IS
    'When it was measured; names the lag_snapshot.';
COMMENT ON COLUMN fairlead.lag_history.snapshot_id IS 'The snapshot.';
COMMENT ON COLUMN fairlead.lag_history.topic IS 'The topic.';
COMMENT ON COLUMN fairlead.lag_history.partition IS 'The partition.';
COMMENT ON COLUMN fairlead.lag_history.member IS 'Who owned it; null: nobody, or unknown.';
COMMENT ON COLUMN fairlead.lag_history.begin_offset IS 'Log start offset.';
COMMENT ON COLUMN fairlead.lag_history.end_offset IS 'Log end offset.';
COMMENT ON COLUMN fairlead.lag_history.committed_offset IS 'Null: nothing committed.';
COMMENT ON COLUMN fairlead.lag_history.lag IS 'Records behind, by KAFKA-5337''s rule.';
COMMENT ON COLUMN fairlead.lag_history.arrival_rate IS 'Records a second written.';
COMMENT ON COLUMN fairlead.lag_history.consumption_rate IS 'Records a second consumed.';
COMMENT ON COLUMN fairlead.lag_history.time_lag_s IS 'Seconds behind.';
COMMENT ON COLUMN fairlead.lag_history.status IS 'OK, WARN, STALL, STOP, REWIND or DATA_LOSS.';

CREATE VIEW fairlead.adoption AS
SELECT adoption.group_id,
   adoption.version,
   adoption.observed_at,
   plan.state,
   adoption.planned,
   adoption.as_planned,
   round(adoption.as_planned::numeric / NULLIF(adoption.planned, 0)::numeric, 4) AS adherence,
   predicted.lag_max AS lag_max_predicted,
   adoption.lag_max AS lag_max_achieved
  FROM fairlead_raw.plan_adoption adoption
       JOIN fairlead_raw.plan USING (group_id, version)
       LEFT JOIN fairlead_raw.plan_balance predicted ON predicted.group_id = plan.group_id AND predicted.version = plan.version AND predicted.kind = 'predicted'::text;
COMMENT ON VIEW fairlead.adoption IS
    'How much of a published plan the consumers follow, and the balance that gives.';
COMMENT ON COLUMN fairlead.adoption.group_id IS 'The consumer group.';
COMMENT ON COLUMN fairlead.adoption.version IS 'Counts up per group from 1, without gaps.';
COMMENT ON COLUMN fairlead.adoption.observed_at IS 'When the live assignment was read.';
COMMENT ON COLUMN fairlead.adoption.state IS 'Where the plan is in its life now.';
COMMENT ON COLUMN fairlead.adoption.planned IS 'Partitions that the plan gives an owner.';
COMMENT ON COLUMN fairlead.adoption.as_planned IS 'Those that the planned member owns.';
COMMENT ON COLUMN fairlead.adoption.adherence IS
    'Share of the planned partitions that their planned member owned.';
COMMENT ON COLUMN fairlead.adoption.lag_max_predicted IS
    'Records the heaviest member has to work off under the plan.';
COMMENT ON COLUMN fairlead.adoption.lag_max_achieved IS
    'The same, by the live assignment that was read.';

CREATE VIEW fairlead.plan_history AS
SELECT plan.group_id,
   plan.version,
   plan.state,
   plan.assignor,
   plan.rolled_back_from,
   plan.created_at AS proposed_at,
   plan.four_eyes,
   COALESCE(approved.database_user, rejected.database_user) AS decided_by,
   COALESCE(approved.at, rejected.at) AS decided_at,
   COALESCE(approved.reason, rejected.reason) AS decision,
   published.at AS published_at,
   predicted.moved,
   predicted.placed,
   observed.lag_max AS lag_max_before,
   predicted.lag_max AS lag_max_predicted,
   achieved.lag_max AS lag_max_achieved,
   round((observed.lag_max::double precision / NULLIF(observed.lag_mean, 0::double precision))::numeric, 3) AS imbalance_before,
   round((predicted.lag_max::double precision / NULLIF(predicted.lag_mean, 0::double precision))::numeric, 3) AS imbalance_predicted,
   round((achieved.lag_max::double precision / NULLIF(achieved.lag_mean, 0::double precision))::numeric, 3) AS imbalance_achieved,
   round(adoption.as_planned::numeric / NULLIF(adoption.planned, 0)::numeric, 4) AS adherence,
   plan.reason,
   plan.snapshot_id,
   plan.sha256,
   plan.expires_at,
   observed.late_s AS late_before,
   predicted.late_s AS late_predicted,
   observed.utilisation AS utilisation_before,
   predicted.utilisation AS utilisation_predicted,
   adoption.observed_at AS adherence_at,
   observed.topic_spread AS topic_spread_before,
   predicted.topic_spread AS topic_spread_predicted,
   achieved.topic_spread AS topic_spread_achieved,
   observed.rack_gb_per_day AS rack_gb_per_day_before,
   predicted.rack_gb_per_day AS rack_gb_per_day_predicted,
   observed.rack_cost_per_day AS rack_cost_per_day_before,
   predicted.rack_cost_per_day AS rack_cost_per_day_predicted
  FROM fairlead_raw.plan
       LEFT JOIN fairlead_raw.plan_event approved ON approved.group_id = plan.group_id AND approved.version = plan.version AND approved.state = 'approved'::text
       LEFT JOIN fairlead_raw.plan_event rejected ON rejected.group_id = plan.group_id AND rejected.version = plan.version AND rejected.state = 'rejected'::text
       LEFT JOIN fairlead_raw.plan_event published ON published.group_id = plan.group_id AND published.version = plan.version AND published.state = 'published'::text
       LEFT JOIN fairlead_raw.plan_balance observed ON observed.group_id = plan.group_id AND observed.version = plan.version AND observed.kind = 'observed'::text
       LEFT JOIN fairlead_raw.plan_balance predicted ON predicted.group_id = plan.group_id AND predicted.version = plan.version AND predicted.kind = 'predicted'::text
       LEFT JOIN fairlead_raw.plan_balance achieved ON achieved.group_id = plan.group_id AND achieved.version = plan.version AND achieved.kind = 'achieved'::text
       LEFT JOIN fairlead_raw.last_adoption adoption ON adoption.group_id = plan.group_id AND adoption.version = plan.version;
COMMENT ON VIEW fairlead.plan_history IS
    'Every version of every plan: who decided, what it moves, what it predicted and achieved.';
COMMENT ON COLUMN fairlead.plan_history.group_id IS 'The consumer group.';
COMMENT ON COLUMN fairlead.plan_history.version IS 'Counts up per group from 1, without gaps.';
COMMENT ON COLUMN fairlead.plan_history.state IS
    'The state the plan entered. Its life has no way back to one.';
COMMENT ON COLUMN fairlead.plan_history.assignor IS 'The assignor whose candidate was chosen.';
COMMENT ON COLUMN fairlead.plan_history.rolled_back_from IS
    'The version whose assignment this is again; null: it is a new one.';
COMMENT ON COLUMN fairlead.plan_history.proposed_at IS 'When the plan was proposed.';
COMMENT ON COLUMN fairlead.plan_history.four_eyes IS
    'Whether the approver must not be the proposer, nor a planner.';
COMMENT ON COLUMN fairlead.plan_history.decided_by IS
    'Who approved or rejected it, as the database knows; plan_event.actor is in whose name.';
COMMENT ON COLUMN fairlead.plan_history.decided_at IS 'When it was approved or rejected.';
COMMENT ON COLUMN fairlead.plan_history.decision IS 'Why it was approved or rejected.';
COMMENT ON COLUMN fairlead.plan_history.published_at IS 'When it was published.';
COMMENT ON COLUMN fairlead.plan_history.moved IS 'Partitions taken from an owner that is present.';
COMMENT ON COLUMN fairlead.plan_history.placed IS 'Partitions that had no owner and get one.';
COMMENT ON COLUMN fairlead.plan_history.lag_max_before IS
    'Records the heaviest member had to work off in the snapshot.';
COMMENT ON COLUMN fairlead.plan_history.lag_max_predicted IS 'The same, under the plan.';
COMMENT ON COLUMN fairlead.plan_history.lag_max_achieved IS
    'The same, by the assignment last read while the plan was published.';
COMMENT ON COLUMN fairlead.plan_history.imbalance_before IS
    'Heaviest member over the mean in the snapshot; 1 is even.';
COMMENT ON COLUMN fairlead.plan_history.imbalance_predicted IS 'The same, under the plan.';
COMMENT ON COLUMN fairlead.plan_history.imbalance_achieved IS 'The same, as last read.';
COMMENT ON COLUMN fairlead.plan_history.adherence IS
    'Share of the planned partitions that their planned member owned when last read.';
COMMENT ON COLUMN fairlead.plan_history.reason IS 'Why a plan, and why this candidate.';
COMMENT ON COLUMN fairlead.plan_history.snapshot_id IS 'The snapshot the plan was made from.';
COMMENT ON COLUMN fairlead.plan_history.sha256 IS 'SHA-256 of the document, in hexadecimal.';
COMMENT ON COLUMN fairlead.plan_history.expires_at IS 'Void from then on; null: never.';
COMMENT ON COLUMN fairlead.plan_history.late_before IS
    'Seconds the worst partition was forecast behind without the plan.';
COMMENT ON COLUMN fairlead.plan_history.late_predicted IS 'The same, under the plan.';
COMMENT ON COLUMN fairlead.plan_history.utilisation_before IS
    'Share of what it can do that the fullest member got before the plan.';
COMMENT ON COLUMN fairlead.plan_history.utilisation_predicted IS 'The same, under the plan.';
COMMENT ON COLUMN fairlead.plan_history.adherence_at IS 'When that was read.';
COMMENT ON COLUMN fairlead.plan_history.topic_spread_before IS
    'The worst topic''s largest share on one member over its even share; 1 is even.';
COMMENT ON COLUMN fairlead.plan_history.topic_spread_predicted IS 'The same, under the plan.';
COMMENT ON COLUMN fairlead.plan_history.topic_spread_achieved IS 'The same, as last read.';
COMMENT ON COLUMN fairlead.plan_history.rack_gb_per_day_before IS
    'Gigabytes a day read from other racks before the plan.';
COMMENT ON COLUMN fairlead.plan_history.rack_gb_per_day_predicted IS 'The same, under the plan.';
COMMENT ON COLUMN fairlead.plan_history.rack_cost_per_day_before IS
    'What these cost a day, by the price of the policy.';
COMMENT ON COLUMN fairlead.plan_history.rack_cost_per_day_predicted IS 'The same, under the plan.';

CREATE FUNCTION fairlead.plan_owners(
    group_id text, version integer
) RETURNS TABLE (
    topic text, partition integer, member text
)
LANGUAGE plpgsql STABLE ROWS 100000 SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    members json;
BEGIN
    SELECT convert_from(plan.document, 'UTF8')::json -> 'members' INTO members
    FROM fairlead_raw.plan
    WHERE plan.group_id = plan_owners.group_id AND plan.version = plan_owners.version;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'group % has no version %', group_id, version USING ERRCODE = 'FL001';
    END IF;
    RETURN QUERY  -- a set of partitions is a string of ranges: 0-3,7
        SELECT owned.name, number, share.name
        FROM json_each(members) AS share (name, content),
             json_each_text(share.content -> 'partitions') AS owned (name, ranges),
             string_to_table(owned.ranges, ',') AS piece,
             generate_series(
                 split_part(piece, '-', 1)::integer, split_part(piece, '-', -1)::integer
             ) AS number;
END $$;
COMMENT ON FUNCTION fairlead.plan_owners IS
    'The owner of each partition in a version of a group''s plan; partitions without one are absent.';

CREATE FUNCTION fairlead.plan_diff(
    group_id text, v1 integer, v2 integer
) RETURNS TABLE (
    topic text, partition integer, member_before text, member_after text
)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT topic, partition, old.member, new.member
    FROM fairlead.plan_owners(plan_diff.group_id, v1) old
    FULL JOIN fairlead.plan_owners(plan_diff.group_id, v2) new USING (topic, partition)
    WHERE old.member IS DISTINCT FROM new.member
    ORDER BY topic, partition
$$;
COMMENT ON FUNCTION fairlead.plan_diff IS
    'The partitions whose owner differs between two versions; null: no owner in that version.';
