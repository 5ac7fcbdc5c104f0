-- plan_history shows until when a plan can be approved and holds.

CREATE OR REPLACE VIEW fairlead.plan_history AS
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
       plan.sha256,
       plan.expires_at
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

COMMENT ON COLUMN fairlead.plan_history.expires_at IS 'Void from then on; null: never.';
