# Does what the image of Postgres does: initialise a new volume with the mounted init.sql.
set -eu
bin=$(echo /usr/lib/postgresql/*/bin)
data=/var/lib/postgresql/data
chown postgres: "$data" && chmod 700 "$data"
as() { setpriv --reuid=postgres --regid=postgres --init-groups "$@"; }
if [ ! -e "$data/PG_VERSION" ]; then
    as "$bin/initdb" -D "$data" --encoding=UTF8 --locale=C.UTF-8 --auth-local=trust --auth-host=scram-sha-256 >/dev/null
    as "$bin/pg_ctl" -D "$data" -w -o "-c listen_addresses=" start >/dev/null
    as psql --set ON_ERROR_STOP=1 --quiet --file /docker-entrypoint-initdb.d/init.sql
    as "$bin/pg_ctl" -D "$data" -w -m fast stop >/dev/null
fi
exec setpriv --reuid=postgres --regid=postgres --init-groups "$bin/postgres" -D "$data"
