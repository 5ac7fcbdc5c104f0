-- What a version gives to whom, and what differs between two, from the documents themselves.

CREATE FUNCTION fairlead.plan_owners(group_id text, version integer)
RETURNS TABLE (topic text, partition integer, member text) LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp ROWS 100000 AS $$
DECLARE
    members json;
BEGIN
    SELECT convert_from(plan.document, 'UTF8')::json -> 'members' INTO members
    FROM fairlead.plan
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


-- For people: SELECT * FROM fairlead.plan_diff('orders', 6, 7);
CREATE FUNCTION fairlead.plan_diff(group_id text, v1 integer, v2 integer)
RETURNS TABLE (topic text, partition integer, member_before text, member_after text)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT topic, partition, old.member, new.member
    FROM fairlead.plan_owners(plan_diff.group_id, v1) old
    FULL JOIN fairlead.plan_owners(plan_diff.group_id, v2) new USING (topic, partition)
    WHERE old.member IS DISTINCT FROM new.member
    ORDER BY topic, partition
$$;
COMMENT ON FUNCTION fairlead.plan_diff IS
    'The partitions whose owner differs between two versions; null: no owner in that version.';
