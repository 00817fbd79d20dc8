#!/bin/sh
# A role of its own and no superuser: row-level security holds for it (AUT-6).
set -eu
psql --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --set "password=$HOLDFAST_DB_PASSWORD" <<'SQL'
CREATE ROLE holdfast LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD :'password';
CREATE DATABASE holdfast OWNER holdfast;
SQL
