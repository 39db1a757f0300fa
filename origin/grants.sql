-- What the role may do that the origin serves with: what its functions do, and
-- no more. The journal it adds to and reads, and may set the relay's mark; it
-- changes and deletes nothing there, empties no table and makes none.
--
-- Run last by `--init`, when that connects with a role of its own. Settings:
-- sluice.service is the role's name, sluice.secret what to know its password by,
-- should it have to be made.
do $$
declare
        v_role   text := current_setting('sluice.service');
        v_secret text := current_setting('sluice.secret');
        v_what   text;
begin
        if not exists (select from pg_roles where rolname = v_role) then
                begin
                        execute format('create role %I login password %L', v_role,
                                       nullif(v_secret, ''));
                exception when duplicate_object or unique_violation then
                        null; -- an --init of another database was quicker
                end;
        end if;
        foreach v_what in array array[
                'revoke all on all tables in schema sluice, sluice_api from %I',
                'revoke create on schema sluice, sluice_api from %I',
                'grant usage on schema sluice, sluice_api to %I',
                'grant select on all tables in schema sluice, sluice_api to %I',
                'grant insert, update on sluice.item, sluice.sale to %I',
                -- A batch takes out again what it could not grant.
                'grant insert, update, delete on sluice.hold to %I',
                'grant insert on sluice.journal, sluice.audit, sluice.revocation to %I',
                'grant update (relayed_at) on sluice.journal to %I',
                'grant update on sluice.duty to %I'] loop
                execute format(v_what, v_role);
        end loop;
        -- Whose queries hold a row is seen with this; where we may not give it, only ours are.
        begin
                execute format('grant pg_read_all_stats to %I', v_role);
        exception when insufficient_privilege then
                null;
        end;
        if has_table_privilege(v_role, 'sluice.journal', 'UPDATE, DELETE, TRUNCATE')
           or has_schema_privilege(v_role, 'sluice', 'CREATE') then
                raise exception 'role % of database.url still may change the journal: it is a superuser, '
                        'owns the tables, or is a member of a role that does', v_role;
        end if;
end $$;
