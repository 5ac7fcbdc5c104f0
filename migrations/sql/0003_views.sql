-- plan_history shows where a version goes back to an older one, and whether it needs four eyes; and
-- every column of every view says what it is.

DROP VIEW fairlead.plan_history;

CREATE VIEW fairlead.plan_history AS
SELECT plan.group_id,
       plan.version,
       plan.state,
       plan.assignor,
       plan.rolled_back_from,
       plan.created_at AS proposed_at,
       plan.four_eyes,
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
COMMENT ON COLUMN fairlead.plan_history.rolled_back_from IS
    'The version whose assignment this is again; null: it is a new one.';
COMMENT ON COLUMN fairlead.plan_history.proposed_at IS 'When the plan was proposed.';
COMMENT ON COLUMN fairlead.plan_history.decided_by IS 'Who approved or rejected it.';
COMMENT ON COLUMN fairlead.plan_history.decided_at IS 'When it was approved or rejected.';
COMMENT ON COLUMN fairlead.plan_history.decision IS 'Why it was approved or rejected.';
COMMENT ON COLUMN fairlead.plan_history.published_at IS 'When it was published.';
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

COMMENT ON COLUMN fairlead.plan_moves.state IS 'Where the plan is in its life.';

COMMENT ON COLUMN fairlead.balance_history.assignor IS
    'Whose plan predicts or achieves it; null where it was observed.';

COMMENT ON COLUMN fairlead.adoption.state IS 'Where the plan is in its life now.';
COMMENT ON COLUMN fairlead.adoption.heaviest_predicted IS
    'Records the heaviest member has to work off under the plan.';
COMMENT ON COLUMN fairlead.adoption.heaviest_achieved IS
    'The same, by the live assignment that was read.';

COMMENT ON TABLE fairlead.alembic_version IS 'Alembic''s: the revision of this schema.';
COMMENT ON COLUMN fairlead.alembic_version.version_num IS 'The revision.';

-- The other columns of a view are columns of the tables it reads, under their own names.
DO $$
DECLARE
    shown record;
BEGIN
    FOR shown IN
        SELECT viewed.view_name, viewed.column_name, min(described.comment) AS comment
        FROM information_schema.view_column_usage viewed
        JOIN pg_attribute ON attrelid = format('fairlead.%I', viewed.view_name)::regclass
            AND attname = viewed.column_name
            AND col_description(attrelid, attnum) IS NULL
        CROSS JOIN LATERAL (
            SELECT col_description(attrelid, attnum) AS comment FROM pg_attribute
            WHERE attrelid = format('fairlead.%I', viewed.table_name)::regclass
                AND attname = viewed.column_name
        ) described
        WHERE viewed.view_schema = 'fairlead'
        GROUP BY 1, 2
    LOOP
        EXECUTE format('COMMENT ON COLUMN fairlead.%I.%I IS %L',
            shown.view_name, shown.column_name, shown.comment);
    END LOOP;
END $$;
