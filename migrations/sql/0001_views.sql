-- What people query. Loads are in records; imbalance is the heaviest member over the mean.

CREATE VIEW fairlead.plan_history AS
SELECT plan.group_id,
       plan.version,
       plan.state,
       plan.assignor,
       plan.created_at AS proposed_at,
       coalesce(approved.actor, rejected.actor) AS decided_by,
       coalesce(approved.at, rejected.at) AS decided_at,
       coalesce(approved.reason, rejected.reason) AS decision,
       published.at AS published_at,
       predicted.moved,
       predicted.placed,
       observed.lag_max AS heaviest_before,
       predicted.lag_max AS heaviest_predicted,
       achieved.lag_max AS heaviest_achieved,
       round((observed.lag_max / nullif(observed.lag_mean, 0))::numeric, 3) AS imbalance_before,
       round((predicted.lag_max / nullif(predicted.lag_mean, 0))::numeric, 3)
           AS imbalance_predicted,
       round((achieved.lag_max / nullif(achieved.lag_mean, 0))::numeric, 3) AS imbalance_achieved,
       round(adoption.as_planned::numeric / nullif(adoption.planned, 0), 4) AS adherence,
       plan.reason,
       plan.snapshot_id,
       plan.sha256
FROM fairlead.plan
LEFT JOIN fairlead.plan_event approved
    ON approved.group_id = plan.group_id AND approved.version = plan.version
    AND approved.state = 'approved'
LEFT JOIN fairlead.plan_event rejected
    ON rejected.group_id = plan.group_id AND rejected.version = plan.version
    AND rejected.state = 'rejected'
LEFT JOIN fairlead.plan_event published
    ON published.group_id = plan.group_id AND published.version = plan.version
    AND published.state = 'published'
LEFT JOIN fairlead.balance observed
    ON observed.group_id = plan.group_id AND observed.snapshot_id = plan.snapshot_id
    AND observed.kind = 'observed'
LEFT JOIN fairlead.balance predicted
    ON predicted.group_id = plan.group_id AND predicted.version = plan.version
    AND predicted.kind = 'predicted'
LEFT JOIN LATERAL (
    SELECT lag_max, lag_mean FROM fairlead.balance
    WHERE balance.group_id = plan.group_id AND balance.version = plan.version
        AND balance.kind = 'achieved'
    ORDER BY measured_at DESC LIMIT 1
) achieved ON true
LEFT JOIN LATERAL (
    SELECT planned, as_planned FROM fairlead.plan_adoption
    WHERE plan_adoption.group_id = plan.group_id AND plan_adoption.version = plan.version
    ORDER BY observed_at DESC LIMIT 1
) adoption ON true
ORDER BY plan.group_id, plan.version;

COMMENT ON VIEW fairlead.plan_history IS
    'Every version of every plan: who decided, what it moves, what it predicted and achieved.';
COMMENT ON COLUMN fairlead.plan_history.decided_by IS 'Who approved or rejected it.';
COMMENT ON COLUMN fairlead.plan_history.decided_at IS 'When.';
COMMENT ON COLUMN fairlead.plan_history.decision IS 'Why it was approved or rejected.';
COMMENT ON COLUMN fairlead.plan_history.moved IS 'Partitions taken from an owner that is present.';
COMMENT ON COLUMN fairlead.plan_history.placed IS 'Partitions that had no owner and get one.';
COMMENT ON COLUMN fairlead.plan_history.heaviest_before IS
    'Records the heaviest member had to work off in the snapshot.';
COMMENT ON COLUMN fairlead.plan_history.heaviest_predicted IS 'The same, under the plan.';
COMMENT ON COLUMN fairlead.plan_history.heaviest_achieved IS
    'The same, by the assignment last read while the plan was published.';
COMMENT ON COLUMN fairlead.plan_history.imbalance_before IS
    'Heaviest member over the mean in the snapshot; 1 is even.';
COMMENT ON COLUMN fairlead.plan_history.imbalance_predicted IS 'The same, under the plan.';
COMMENT ON COLUMN fairlead.plan_history.imbalance_achieved IS 'The same, as last read.';
COMMENT ON COLUMN fairlead.plan_history.adherence IS
    'Share of the planned partitions that their planned member owned when last read.';


CREATE VIEW fairlead.plan_moves AS
SELECT plan.group_id, plan.version, plan.state, move.topic, move.partition,
       move.previous_member, move.member, move.weight, move.reason
FROM fairlead.plan_move move
JOIN fairlead.plan USING (group_id, version);

COMMENT ON VIEW fairlead.plan_moves IS
    'The partitions whose owner a plan changes, with the state of the plan.';


CREATE VIEW fairlead.balance_history AS
SELECT balance.group_id, balance.measured_at, balance.kind, balance.version, plan.assignor,
       balance.count_min, balance.count_max, balance.balance_score,
       balance.lag_max, balance.lag_mean,
       round((balance.lag_max / nullif(balance.lag_mean, 0))::numeric, 3) AS imbalance,
       balance.lag_lower_bound, balance.gap, balance.kept, balance.moved, balance.placed,
       balance.snapshot_id
FROM fairlead.balance
LEFT JOIN fairlead.plan USING (group_id, version)
ORDER BY balance.group_id, balance.measured_at, balance.id;

COMMENT ON VIEW fairlead.balance_history IS
    'How evenly the work of a group was spread: observed, predicted by a plan, achieved by it.';
COMMENT ON COLUMN fairlead.balance_history.imbalance IS 'Heaviest member over the mean; 1 is even.';


CREATE VIEW fairlead.lag_history AS
SELECT lag.group_id, lag.snapshot_at, snapshot.snapshot_id, lag.topic, lag.partition,
       lag.begin_offset, lag.end_offset, lag.committed_offset, lag.lag, lag.arrival_rate,
       lag.consumption_rate, lag.time_lag_s, lag.status
FROM fairlead.partition_lag lag
JOIN fairlead.lag_snapshot snapshot USING (group_id, snapshot_at);

COMMENT ON VIEW fairlead.lag_history IS 'Lag of every partition in every snapshot.';


CREATE VIEW fairlead.adoption AS
SELECT adoption.group_id, adoption.version, adoption.observed_at, plan.state,
       adoption.planned, adoption.as_planned,
       round(adoption.as_planned::numeric / nullif(adoption.planned, 0), 4) AS adherence,
       predicted.lag_max AS heaviest_predicted, achieved.lag_max AS heaviest_achieved
FROM fairlead.plan_adoption adoption
JOIN fairlead.plan USING (group_id, version)
LEFT JOIN fairlead.balance predicted
    ON predicted.group_id = plan.group_id AND predicted.version = plan.version
    AND predicted.kind = 'predicted'
LEFT JOIN fairlead.balance achieved
    ON achieved.group_id = plan.group_id AND achieved.version = plan.version
    AND achieved.kind = 'achieved' AND achieved.measured_at = adoption.observed_at
ORDER BY adoption.group_id, adoption.observed_at;

COMMENT ON VIEW fairlead.adoption IS
    'How much of a published plan the consumers follow, and the balance that gives.';
COMMENT ON COLUMN fairlead.adoption.adherence IS
    'Share of the planned partitions that their planned member owned.';
