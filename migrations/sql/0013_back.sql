-- What 0013_days.sql does, backwards: one table again of each history. Summaries are forgotten, and with
-- them what plans that are older than the rows have predicted and achieved. Rows of versions that are
-- gone stay away, since tables refer to plans again.

-- Two views lose their last column, and what is said of the others is said again below.
CREATE TEMPORARY TABLE said ON COMMIT DROP AS
SELECT relname, attname, col_description(attrelid, attnum) AS comment
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE attrelid IN ('fairlead.candidate'::regclass, 'fairlead.plan_history'::regclass) AND attnum > 0
    AND attname NOT IN ('snapshot_at', 'adherence_at');

DROP FUNCTION fairlead.prune_rows, fairlead.prune_history, fairlead.history_days;
DROP FUNCTION fairlead_raw.ensure_day;
DROP VIEW fairlead.last_decision, fairlead.group_day, fairlead.plan_pruned, fairlead.candidate;
DROP VIEW fairlead.plan_history;

ALTER TABLE fairlead_raw.decision RENAME TO decision_by_day;
ALTER TABLE fairlead_raw.candidate RENAME TO candidate_by_day;
ALTER TABLE fairlead_raw.balance RENAME TO balance_by_day;
ALTER TABLE fairlead_raw.plan_adoption RENAME TO plan_adoption_by_day;
ALTER TABLE fairlead_raw.decision_by_day RENAME CONSTRAINT decision_pkey TO decision_by_day_pkey;
ALTER TABLE fairlead_raw.candidate_by_day RENAME CONSTRAINT candidate_pkey TO candidate_by_day_pkey;
ALTER TABLE fairlead_raw.balance_by_day RENAME CONSTRAINT balance_pkey TO balance_by_day_pkey;
ALTER TABLE fairlead_raw.plan_adoption_by_day
    RENAME CONSTRAINT plan_adoption_pkey TO plan_adoption_by_day_pkey;

CREATE TABLE fairlead_raw.decision (
    LIKE fairlead_raw.decision_by_day INCLUDING COMMENTS INCLUDING CONSTRAINTS INCLUDING DEFAULTS
);
INSERT INTO fairlead_raw.decision SELECT * FROM fairlead_raw.decision_by_day one
WHERE version IS NULL OR EXISTS (
    SELECT FROM fairlead_raw.plan
    WHERE plan.group_id = one.group_id AND plan.version = one.version
);
ALTER TABLE fairlead_raw.decision
    ADD CONSTRAINT decision_pkey PRIMARY KEY (group_id, snapshot_id),
    ADD CONSTRAINT decision_consumer_group_fkey FOREIGN KEY (group_id)
        REFERENCES fairlead_raw.consumer_group (group_id),
    ADD CONSTRAINT decision_plan_fkey FOREIGN KEY (group_id, version)
        REFERENCES fairlead_raw.plan (group_id, version);
CREATE INDEX decision_group_id_decided_at_idx ON fairlead_raw.decision (group_id, decided_at);
COMMENT ON TABLE fairlead_raw.decision IS
    'What each snapshot of a group came to, even where nothing was changed.';

CREATE TABLE fairlead_raw.candidate (
    LIKE fairlead_raw.candidate_by_day INCLUDING COMMENTS INCLUDING CONSTRAINTS INCLUDING DEFAULTS
);
INSERT INTO fairlead_raw.candidate SELECT one.* FROM fairlead_raw.candidate_by_day one
JOIN fairlead_raw.decision USING (group_id, snapshot_id);
ALTER TABLE fairlead_raw.candidate
    DROP COLUMN snapshot_at,
    ADD CONSTRAINT candidate_pkey PRIMARY KEY (group_id, snapshot_id, assignor),
    ADD CONSTRAINT candidate_decision_fkey FOREIGN KEY (group_id, snapshot_id)
        REFERENCES fairlead_raw.decision (group_id, snapshot_id);
COMMENT ON TABLE fairlead_raw.candidate IS
    'What each assignor of the policy would have done with a snapshot.';

CREATE TABLE fairlead_raw.balance (
    LIKE fairlead_raw.balance_by_day INCLUDING COMMENTS INCLUDING CONSTRAINTS INCLUDING DEFAULTS
);
INSERT INTO fairlead_raw.balance SELECT * FROM fairlead_raw.balance_by_day one
WHERE version IS NULL OR EXISTS (
    SELECT FROM fairlead_raw.plan
    WHERE plan.group_id = one.group_id AND plan.version = one.version
) ORDER BY measured_at, array_position(ARRAY['observed', 'predicted', 'achieved'], kind);
ALTER TABLE fairlead_raw.balance
    ADD COLUMN id bigint GENERATED ALWAYS AS IDENTITY,
    ADD CONSTRAINT balance_pkey PRIMARY KEY (id),
    ADD CONSTRAINT balance_consumer_group_fkey FOREIGN KEY (group_id)
        REFERENCES fairlead_raw.consumer_group (group_id),
    ADD CONSTRAINT balance_plan_fkey FOREIGN KEY (group_id, version)
        REFERENCES fairlead_raw.plan (group_id, version);
COMMENT ON COLUMN fairlead_raw.balance.id IS 'No meaning; the kinds have keys.';
CREATE UNIQUE INDEX balance_achieved_idx ON fairlead_raw.balance (group_id, version, measured_at)
    WHERE kind = 'achieved';
CREATE INDEX balance_group_id_measured_at_idx ON fairlead_raw.balance (group_id, measured_at);
CREATE UNIQUE INDEX balance_observed_idx ON fairlead_raw.balance (group_id, snapshot_id)
    WHERE kind = 'observed';
CREATE UNIQUE INDEX balance_predicted_idx ON fairlead_raw.balance (group_id, version)
    WHERE kind = 'predicted';
COMMENT ON TABLE fairlead_raw.balance IS
    'Balance of a group: observed, predicted by a plan, achieved by it.';

CREATE TABLE fairlead_raw.plan_adoption (
    LIKE fairlead_raw.plan_adoption_by_day
        INCLUDING COMMENTS INCLUDING CONSTRAINTS INCLUDING DEFAULTS
);
INSERT INTO fairlead_raw.plan_adoption SELECT * FROM fairlead_raw.plan_adoption_by_day;
ALTER TABLE fairlead_raw.plan_adoption
    DROP COLUMN lag_max,
    ADD CONSTRAINT plan_adoption_pkey PRIMARY KEY (group_id, version, observed_at),
    ADD CONSTRAINT plan_adoption_plan_fkey FOREIGN KEY (group_id, version)
        REFERENCES fairlead_raw.plan (group_id, version);
COMMENT ON TABLE fairlead_raw.plan_adoption IS
    'How much of a published plan the group''s consumers follow, by time.';

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fairlead_raw.decision
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON fairlead_raw.candidate
    FOR EACH STATEMENT EXECUTE FUNCTION fairlead_raw.refuse_change();
CREATE OR REPLACE FUNCTION fairlead_raw.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%.% is written once: no %', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'FL002';
END $$;


CREATE OR REPLACE VIEW fairlead.decision AS SELECT * FROM fairlead_raw.decision;
CREATE VIEW fairlead.candidate AS SELECT * FROM fairlead_raw.candidate;
COMMENT ON VIEW fairlead.candidate IS
    'What each assignor of the policy would have done with a snapshot.';

CREATE VIEW fairlead.plan_history AS
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
       predicted.utilisation AS utilisation_predicted
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
LEFT JOIN fairlead_raw.balance observed
    ON observed.group_id = plan.group_id AND observed.snapshot_id = plan.snapshot_id
    AND observed.kind = 'observed'
LEFT JOIN fairlead_raw.balance predicted
    ON predicted.group_id = plan.group_id AND predicted.version = plan.version
    AND predicted.kind = 'predicted'
LEFT JOIN LATERAL (
    SELECT lag_max, lag_mean FROM fairlead_raw.balance
    WHERE balance.group_id = plan.group_id AND balance.version = plan.version
        AND balance.kind = 'achieved'
    ORDER BY measured_at DESC LIMIT 1
) achieved ON true
LEFT JOIN LATERAL (
    SELECT planned, as_planned FROM fairlead_raw.plan_adoption
    WHERE plan_adoption.group_id = plan.group_id AND plan_adoption.version = plan.version
    ORDER BY observed_at DESC LIMIT 1
) adoption ON true
ORDER BY plan.group_id, plan.version;

COMMENT ON VIEW fairlead.plan_history IS
    'Every version of every plan: who decided, what it moves, what it predicted and achieved.';

CREATE OR REPLACE VIEW fairlead.balance_history AS
SELECT balance.group_id, balance.measured_at, balance.kind, balance.version, plan.assignor,
       balance.count_min, balance.count_max, balance.balance_score,
       balance.lag_max, balance.lag_mean,
       round((balance.lag_max / nullif(balance.lag_mean, 0))::numeric, 3) AS imbalance,
       balance.lag_lower_bound, balance.gap, balance.kept, balance.moved, balance.placed,
       balance.snapshot_id, balance.late_s, balance.utilisation
FROM fairlead_raw.balance
LEFT JOIN fairlead_raw.plan USING (group_id, version)
ORDER BY balance.group_id, balance.measured_at, balance.id;

CREATE OR REPLACE VIEW fairlead.adoption AS
SELECT adoption.group_id, adoption.version, adoption.observed_at, plan.state,
       adoption.planned, adoption.as_planned,
       round(adoption.as_planned::numeric / nullif(adoption.planned, 0), 4) AS adherence,
       predicted.lag_max AS lag_max_predicted, achieved.lag_max AS lag_max_achieved
FROM fairlead_raw.plan_adoption adoption
JOIN fairlead_raw.plan USING (group_id, version)
LEFT JOIN fairlead_raw.balance predicted
    ON predicted.group_id = plan.group_id AND predicted.version = plan.version
    AND predicted.kind = 'predicted'
LEFT JOIN fairlead_raw.balance achieved
    ON achieved.group_id = plan.group_id AND achieved.version = plan.version
    AND achieved.kind = 'achieved' AND achieved.measured_at = adoption.observed_at
ORDER BY adoption.group_id, adoption.observed_at;

DROP TABLE fairlead_raw.decision_by_day, fairlead_raw.candidate_by_day,
           fairlead_raw.balance_by_day, fairlead_raw.plan_adoption_by_day;
DROP TABLE fairlead_raw.group_day, fairlead_raw.plan_pruned, fairlead_raw.plan_balance,
           fairlead_raw.last_adoption;
DROP FUNCTION fairlead_raw.sum_up_decisions, fairlead_raw.sum_up_balances,
              fairlead_raw.sum_up_adoptions;


GRANT SELECT ON fairlead_raw.decision, fairlead_raw.candidate, fairlead_raw.balance,
                fairlead_raw.plan_adoption, fairlead.candidate, fairlead.plan_history
    TO fairlead_planner, fairlead_approver, fairlead_reader;
GRANT INSERT (group_id, snapshot_id, snapshot_at, outcome, reason, version)
    ON fairlead_raw.decision TO fairlead_planner;
GRANT INSERT ON fairlead_raw.candidate, fairlead_raw.balance, fairlead_raw.plan_adoption
    TO fairlead_planner;

DO $$
DECLARE
    shown record;
BEGIN
    FOR shown IN SELECT * FROM pg_temp.said LOOP
        EXECUTE format('COMMENT ON COLUMN fairlead.%I.%I IS %L',
            shown.relname, shown.attname, shown.comment);
    END LOOP;
    DROP TABLE pg_temp.said;
END $$;
