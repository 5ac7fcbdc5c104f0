-- Databases and logins, when the volume is new. Each service has the rights it needs: the owner
-- migrates, the planner writes, the reader shows.

\getenv dagster DAGSTER_PASSWORD
\getenv owner OWNER_PASSWORD
\getenv planner PLANNER_PASSWORD
\getenv reader READER_PASSWORD

CREATE USER dagster PASSWORD :'dagster';
CREATE DATABASE dagster OWNER dagster;

-- The schema grants to these; to create them takes more than its owner may.
CREATE ROLE fairlead_planner NOLOGIN;
CREATE ROLE fairlead_approver NOLOGIN;
CREATE ROLE fairlead_reader NOLOGIN;

CREATE USER owner PASSWORD :'owner';
CREATE USER planner PASSWORD :'planner' IN ROLE fairlead_planner;
CREATE USER reader PASSWORD :'reader' IN ROLE fairlead_reader;
CREATE DATABASE fairlead OWNER owner;
