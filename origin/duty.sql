-- What one origin does for all: relaying the journal, looking at the invariant.
-- Writes no stock; run after sales.sql, into the same schema.
--
-- A duty is a row that says who has it and until when. No transaction stays
-- open for it, so it works through any pooler. Its epoch rises with each
-- taking; whoever was silent for too long and comes back still believing is
-- found out by the epoch, here and in Redis.

-- The journal's events that are still to be relayed, in order of their numbers,
-- which is the order of events for each hold: who writes the next one has the
-- hold's lock. First of all p_done, which Redis has, gets its mark.
--
-- First row: the epoch under which the duty is p_owner's, null while it is
-- another's, -1 when --init has not made the index. Then a row an event.
--
-- Nothing waits for the disk: a mark that a crash takes back means that an
-- event comes once more, and a duty that it takes back is taken anew.
create function sluice_api.relay_turn(p_owner text, p_epoch bigint, p_lease_ms bigint,
                                      p_done bigint[], p_batch bigint)
returns table (epoch bigint, seq bigint, tenant text, item text, hold text, order_ref text,
               from_state text, to_state text, qty bigint, reason text, actor text, at text)
language plpgsql as $$
#variable_conflict use_column
declare
        v       sluice.duty;
        v_lease interval := p_lease_ms * interval '1 ms';
begin
        perform set_config('synchronous_commit', 'off', true);
        if not exists (select from pg_index
                       where indexrelid = to_regclass('sluice.journal_unrelayed') and indisvalid) then
                epoch := -1;
                return next;
                return;
        end if;
        if p_done is not null then
                update sluice.journal set relayed_at = now()
                where seq = any (p_done) and relayed_at is null;
        end if;
        select * into v from sluice.duty where name = 'relay';
        if v.owner is distinct from p_owner or v.epoch <> p_epoch then
                update sluice.duty d
                set owner = p_owner, until = now() + v_lease,
                    epoch = greatest(d.epoch + 1, (extract(epoch from now()) * 1000)::bigint)
                where d.name = 'relay' and v.until <= now() and d.until <= now()
                returning * into v;
        elsif v.until < now() + v_lease / 2 then
                update sluice.duty d set until = now() + v_lease
                where d.name = 'relay' and d.owner = p_owner and d.epoch = p_epoch
                returning * into v;
        end if;
        epoch := case when v.owner = p_owner then v.epoch end;
        return next;
        if epoch is null then
                return;
        end if;
        return query
        select v.epoch, j.seq, j.tenant, j.item, sluice_api.hold_name(j.hold), h.order_ref,
               j.from_state, j.to_state, j.qty, j.reason, j.actor, sluice_api.time_text(j.at)
        from (select * from sluice.journal
              where relayed_at is null order by seq limit p_batch) j
        left join sluice.hold h on h.tenant = j.tenant and h.id = j.hold
        order by j.seq;
end $$;

-- How many events are still to be relayed, counted up to p_limit, and how old
-- the oldest is.
create function sluice_api.relay_watch(p_limit bigint, out backlog bigint, out oldest_ms bigint)
language plpgsql as $$
begin
        select count(*) into backlog
        from (select from sluice.journal where relayed_at is null limit p_limit) j;
        select (extract(epoch from clock_timestamp() - j.at) * 1000)::bigint into oldest_ms
        from sluice.journal j where relayed_at is null order by seq limit 1;
end $$;

-- Whether it is time to look at the invariant, and ours to do so: for p_patience_ms
-- nobody else does. What the last look found, on whichever origin; age_ms null:
-- nobody has looked. unprotected: our role could change the journal.
create function sluice_api.look_turn(p_patience_ms bigint, p_may boolean, out mine boolean,
                                     out wrong bigint, out age_ms bigint, out took_ms bigint, out paused bigint,
                                     out unprotected boolean)
language plpgsql as $$
#variable_conflict use_column
declare
        v sluice.duty;
begin
        update sluice.duty set until = now() + p_patience_ms * interval '1 ms'
        where name = 'invariant' and until <= now() and p_may;
        mine := found;
        select * into v from sluice.duty where name = 'invariant';
        wrong := v.wrong;
        took_ms := v.took_ms;
        age_ms := (extract(epoch from clock_timestamp() - v.done_at) * 1000)::bigint;
        paused := (select count(*) from sluice.item i where i.paused is not null);
        unprotected := has_table_privilege('sluice.journal', 'UPDATE, DELETE, TRUNCATE');
end $$;

-- A look has ended. p_wrong null: it failed, and the last one still stands.
create function sluice_api.look_done(p_wrong bigint, p_took_ms bigint, p_wait_ms bigint)
returns void
language plpgsql as $$
begin
        update sluice.duty
        set until = now() + p_wait_ms * interval '1 ms',
            done_at = case when p_wrong is null then done_at else now() end,
            wrong = coalesce(p_wrong, wrong), took_ms = coalesce(p_took_ms, took_ms)
        where name = 'invariant';
end $$;
