-- Sale windows, their audit, and what is only read: holds, events, the
-- snapshot, the invariant. Writes no stock; run after stock.sql, into the same
-- schema.

-- Each sale as the API shows it. Due is free here too: the state follows what
-- the item has to offer now.
create view sluice_api.sale_docs as
        select s.sale, s.version,
               jsonb_build_object('sale', s.sale) || s.spec || jsonb_build_object(
                'state', case
                        when s.closed_at is not null or s.closes_at <= now() then 'closed'
                        when s.opens_at > now() then
                                case when s.prequeue_at <= now() then 'prequeue'
                                     else 'scheduled' end
                        when s.paused_at is not null or t.paused is not null then 'paused'
                        when s.item is null or t.available > 0 then 'open'
                        when t.held > 0 then 'all_held'
                        else 'sold_out' end,
                'round', s.round,
                'version', s.version,
                'paused', s.paused_at is not null or t.paused is not null,
                'hard', s.paused_at is not null and s.hard,
                'paused_at', sluice_api.time_text(s.paused_at),
                'closed', s.closed_at is not null or coalesce(s.closes_at <= now(), false)) as doc
        from sluice.sale s
        left join sluice_api.stock_of_items t on t.tenant = s.tenant and t.item = s.item;

create type sluice_api.sale_answer as (code text, body text, version bigint, changed boolean);

create function sluice_api.sale_refuse(p_code text, p_version bigint)
returns sluice_api.sale_answer
language plpgsql as $$
begin
        return (p_code, null, p_version, false)::sluice_api.sale_answer;
end $$;

create function sluice_api.sale_says(p_code text, p_sale text, p_changed boolean)
returns sluice_api.sale_answer
language plpgsql as $$
declare
        v sluice_api.sale_answer;
begin
        select p_code, (doc || case when p_changed is null then '{}'::jsonb
                                    else jsonb_build_object('changed', p_changed) end)::text,
               version, p_changed
        into v
        from sluice_api.sale_docs where sale = p_sale;
        return v;
end $$;

create function sluice_api.sale_get(p_sale text) returns sluice_api.sale_answer
language plpgsql as $$
begin
        return sluice_api.sale_says('ok', p_sale, null);
end $$;

create function sluice_api.sale_list() returns text
language plpgsql as $$
begin
        return (select coalesce(json_agg(doc order by sale), '[]')::text
                from sluice_api.sale_docs);
end $$;

-- The fields as they are kept, for a PATCH to be laid over.
create function sluice_api.sale_spec(p_sale text, out spec text, out version bigint)
language sql stable as $$
        select s.spec::text, s.version from sluice.sale s where s.sale = p_sale
$$;

-- Writes the whole window. p_if_match null: unconditional; 0: must not exist.
-- p_spec is complete and was checked. An equal one makes no revision. A verb's
-- close ends when closes_at is named anew (p_names_end) or changed, and lies
-- ahead or is null.
create function sluice_api.sale_put(p_sale text, p_spec jsonb, p_if_match bigint, p_actor text,
                                    p_names_end boolean, p_verb text)
returns sluice_api.sale_answer
language plpgsql as $$
declare
        v_old    sluice.sale;
        v_new    sluice.sale;
        v_closes timestamptz := (p_spec ->> 'closes_at')::timestamptz;
        v_reopen boolean;
begin
        if p_spec ->> 'item' is not null and not exists (
                select from sluice.item
                where tenant = p_spec ->> 'tenant' and item = p_spec ->> 'item') then
                return sluice_api.sale_refuse('not_found', null);
        end if;
        -- Two creators of one sale: the second finds the row of the first.
        if p_if_match is null or p_if_match = 0 then
                insert into sluice.sale (sale, tenant, item, spec, opens_at, prequeue_at,
                        closes_at, per_account, hold_seconds, extend_seconds)
                values (p_sale, p_spec ->> 'tenant', p_spec ->> 'item', p_spec,
                        (p_spec ->> 'opens_at')::timestamptz,
                        (p_spec ->> 'prequeue_at')::timestamptz, v_closes,
                        (p_spec ->> 'per_account')::bigint, (p_spec ->> 'hold_seconds')::bigint,
                        (p_spec ->> 'extend_seconds')::bigint)
                on conflict do nothing returning * into v_new;
                if found then
                        insert into sluice.audit (sale, actor, verb, version, detail)
                        values (p_sale, p_actor, 'create', 1, p_spec);
                        return sluice_api.sale_says('created', p_sale, null);
                end if;
        end if;
        select * into v_old from sluice.sale where sale = p_sale for update;
        if not found or p_if_match is not null and p_if_match <> v_old.version then
                return sluice_api.sale_refuse('conflict', v_old.version);
        end if;
        if (v_old.tenant, v_old.item) is distinct from (p_spec ->> 'tenant', p_spec ->> 'item')
           and exists (select from sluice.hold where tenant = v_old.tenant and sale = p_sale) then
                return sluice_api.sale_refuse('has_holds', v_old.version);
        end if;
        v_reopen := v_old.closed_at is not null and (v_closes is null or v_closes > now())
                    and (p_names_end or v_closes is distinct from v_old.closes_at);
        if v_old.spec = p_spec and not v_reopen then
                return sluice_api.sale_says('ok', p_sale, null);
        end if;
        update sluice.sale
        set tenant = p_spec ->> 'tenant', item = p_spec ->> 'item', spec = p_spec,
            opens_at = (p_spec ->> 'opens_at')::timestamptz,
            prequeue_at = (p_spec ->> 'prequeue_at')::timestamptz,
            closes_at = v_closes,
            per_account = (p_spec ->> 'per_account')::bigint,
            hold_seconds = (p_spec ->> 'hold_seconds')::bigint,
            extend_seconds = (p_spec ->> 'extend_seconds')::bigint,
            closed_at = case when v_reopen then null else closed_at end,
            version = version + 1
        where sale = p_sale returning * into v_new;
        insert into sluice.audit (sale, actor, verb, version, detail)
        values (p_sale, p_actor, p_verb, v_new.version, sluice_api.spec_change(v_old.spec, p_spec));
        return sluice_api.sale_says('ok', p_sale, null);
end $$;

-- {"field":[before,after]} for each field that differs.
create function sluice_api.spec_change(p_before jsonb, p_after jsonb) returns jsonb
language sql immutable as $$
        select coalesce(jsonb_object_agg(a.key, jsonb_build_array(p_before -> a.key, a.value)),
                        '{}')
        from jsonb_each(p_after) a where p_before -> a.key is distinct from a.value
$$;

-- The operators' verbs; one that finds its state reached changes nothing.
create function sluice_api.sale_verb(p_sale text, p_verb text, p_hard boolean, p_account text,
                                     p_if_match bigint, p_actor text)
returns sluice_api.sale_answer
language plpgsql as $$
declare
        v_old    sluice.sale;
        v_new    sluice.sale;
        v_closed boolean;
        v_lifted boolean := false;
        v_now    text := sluice_api.time_text(now());
begin
        select * into v_old from sluice.sale where sale = p_sale for update;
        if not found then
                return sluice_api.sale_refuse('not_found', null);
        elsif p_if_match is not null and p_if_match <> v_old.version then
                return sluice_api.sale_refuse('conflict', v_old.version);
        end if;
        v_new := v_old;
        v_closed := v_old.closed_at is not null or coalesce(v_old.closes_at <= now(), false);
        if v_closed and p_verb <> 'close' then
                return sluice_api.sale_refuse('is_closed', v_old.version);
        end if;
        case p_verb
        when 'open' then
                if v_old.opens_at > now() then
                        v_new.opens_at := now();
                        v_new.spec := v_new.spec || jsonb_build_object('opens_at', v_now);
                        if v_old.prequeue_at > now() then
                                v_new.prequeue_at := now();
                                v_new.spec := v_new.spec
                                              || jsonb_build_object('prequeue_at', v_now);
                        end if;
                end if;
        when 'pause' then
                v_new.paused_at := coalesce(v_old.paused_at, now());
                v_new.hard := p_hard;
        when 'resume' then
                v_new.paused_at := null;
                v_new.hard := false;
                v_lifted := v_old.item is not null
                            and sluice_api.item_resume(v_old.tenant, v_old.item);
        when 'close' then
                v_new.closed_at := case when v_closed then v_old.closed_at else now() end;
        when 'reset' then
                v_new.round := v_old.round + 1;
        when 'revoke' then
                insert into sluice.revocation (sale, round, account)
                values (p_sale, v_old.round, p_account) on conflict do nothing;
                v_lifted := found;
        end case;
        if v_new is not distinct from v_old and not v_lifted then
                return sluice_api.sale_says('ok', p_sale, false);
        end if;
        update sluice.sale
        set opens_at = v_new.opens_at, prequeue_at = v_new.prequeue_at, spec = v_new.spec,
            paused_at = v_new.paused_at, hard = v_new.hard, closed_at = v_new.closed_at,
            round = v_new.round, version = version + 1
        where sale = p_sale returning * into v_new;
        insert into sluice.audit (sale, actor, verb, version, detail)
        values (p_sale, p_actor, p_verb, v_new.version,
                case p_verb when 'pause' then jsonb_build_object('hard', p_hard)
                            when 'reset' then jsonb_build_object('round', v_new.round)
                            when 'revoke' then jsonb_build_object('account', p_account)
                            else '{}' end);
        return sluice_api.sale_says('ok', p_sale, true);
end $$;

-- The last rows of one sale, or of all when p_sale is null.
create function sluice_api.audit_list(p_sale text) returns text
language sql stable as $$
        select case when p_sale is null
                      or exists (select from sluice.sale where sale = p_sale) then
                json_build_object('audit', coalesce((
                        select json_agg(json_build_object(
                                'seq', a.seq, 'sale', a.sale, 'at', sluice_api.time_text(a.at),
                                'actor', a.actor, 'verb', a.verb, 'version', a.version,
                                'detail', a.detail) order by a.seq)
                        from (select * from sluice.audit
                              where p_sale is null or sale = p_sale
                              order by seq desc limit 1000) a), '[]'))::text end
$$;

create function sluice_api.hold_get(p_id uuid) returns text
language sql stable as $$
        select sluice_api.hold_json(h) from sluice.hold h where id = p_id
$$;

create function sluice_api.hold_events(p_id uuid) returns text
language sql stable as $$
        select json_agg(json_build_object(
                'seq', seq, 'from', from_state, 'to', to_state, 'reason', reason,
                'actor', actor, 'at', sluice_api.time_text(at)) order by seq)::text
        from sluice.journal where hold = p_id
$$;

-- Which transactions have ended, and in which life of the server: after a crash it
-- gives out again the numbers of those that it did not find in its log, and begins
-- with a checkpoint.
create function sluice_api.ended_so_far() returns text
language sql stable as $$
        select current_setting('sluice.timeline') || ' ' || checkpoint_lsn || ' '
               || pg_current_snapshot()
        from pg_control_checkpoint()
$$;

-- What a snapshot shows: which transactions have ended, and until when it holds if
-- none ends: the next due hold of an item on sale, or end of a window.
create function sluice_api.state_seen(p_due timestamptz) returns text
language sql stable as $$
        select sluice_api.ended_so_far() || ' until '
               || least(p_due, 'infinity',
                        (select min(t) from sluice.sale, lateral
                                (values (prequeue_at), (opens_at), (closes_at)) v (t)
                         where t > now()))
$$;

create function sluice_api.is_as_seen(p_seen text) returns boolean
language sql stable as $$
        select split_part(p_seen, ' until ', 1) = sluice_api.ended_so_far()
           and clock_timestamp() < split_part(p_seen, ' until ', 2)::timestamptz
           and not pg_is_in_recovery()
$$;

-- Everything a gateway needs, read in one statement, so that numbers and
-- conversions belong together. First row: kind 'state'. Then one row of kind
-- 'hold' for each conversion that p_since's transactions had not committed;
-- p_since null: all that still matter. p_seen is the last answer's: while no
-- transaction has ended since and no moment has come, the one row is of kind
-- 'same'. A standby cannot tell: its snapshots do not name who still runs.
create function sluice_api.snapshot(p_since text, p_limit bigint, p_seen text)
returns table (kind text, a text, b text, c text, now_ms bigint, next_due_ms bigint, cursor text,
               seen text)
language plpgsql as $$
begin
        if sluice_api.is_as_seen(p_seen) then
                return query select 'same', null, null, null,
                        (extract(epoch from clock_timestamp()) * 1000)::bigint,
                        null::bigint, null, p_seen;
                return;
        end if;
        return query
        with stock as (
                select t.tenant, t.item, t.total, t.available, t.held, t.sold, t.shipped, t.n,
                       (select h.expires_at from sluice.hold h
                        where h.tenant = t.tenant and h.item = t.item and h.location = ''
                          and h.state = 'held' and h.expires_at > now()
                        order by h.expires_at limit 1) as due
                from sluice_api.stock_of_items t
                where exists (select from sluice.sale v
                              where v.tenant = t.tenant and v.item = t.item))
        select 'state',
               (select coalesce(json_agg(d.doc order by d.sale), '[]')::text
                from sluice_api.sale_docs d),
               (select coalesce(json_agg(json_build_object(
                        'tenant', t.tenant, 'item', t.item, 'total', t.total,
                        'available', t.available, 'held', t.held, 'sold', t.sold,
                        'shipped', t.shipped, 'version', sluice_api.version_text(t.n),
                        'next_due_ms', (extract(epoch from t.due) * 1000)::bigint)
                        order by t.tenant, t.item), '[]')::text
                from stock t),
               (select coalesce(json_agg(json_build_object(
                        'sale', r.sale, 'account', r.account, 'round', r.round,
                        'at_ms', (extract(epoch from r.revoked_at) * 1000)::bigint)
                        order by r.sale, r.account), '[]')::text
                from sluice.revocation r join sluice.sale v using (sale, round)),
               (extract(epoch from clock_timestamp()) * 1000)::bigint,
               (select (extract(epoch from min(t.due)) * 1000)::bigint from stock t),
               pg_snapshot_xmin(pg_current_snapshot())::text,
               sluice_api.state_seen((select min(t.due) from stock t))
        union all
        (select 'hold', sluice_api.hold_name(h.id),
                json_build_object('sale', h.sale, 'round', h.round, 'jti', h.pass_jti,
                        'account', h.buyer, 'qty', h.qty, 'hold', sluice_api.hold_name(h.id),
                        'state', sluice_api.hold_state(h),
                        'hold_end_ms', (extract(epoch from h.expires_at) * 1000)::bigint,
                        'created_ms', (extract(epoch from h.created_at) * 1000)::bigint)::text,
                null, null, null, null, null
         from sluice.hold h
         where p_since is not null and h.tx >= p_since::xid8
           and h.pass_jti is not null and h.sale is not null
         order by h.tx desc limit p_limit)
        union all
        (select 'hold', sluice_api.hold_name(h.id),
                json_build_object('sale', h.sale, 'round', h.round, 'jti', h.pass_jti,
                        'account', h.buyer, 'qty', h.qty, 'hold', sluice_api.hold_name(h.id),
                        'state', sluice_api.hold_state(h),
                        'hold_end_ms', (extract(epoch from h.expires_at) * 1000)::bigint,
                        'created_ms', (extract(epoch from h.created_at) * 1000)::bigint)::text,
                null, null, null, null, null
         from sluice.hold h
         where p_since is null and h.pass_jti is not null and h.sale is not null
           and (h.state = 'held' and h.expires_at > now()
                or h.created_at > now() - interval '10 minutes')
         order by h.tx desc limit p_limit);
end $$;

-- Counters against holds against journal, in one statement: what the journal
-- says happened, done again from nothing, ends in the tables as they are. Reads
-- every hold and every row of the journal once.
create function sluice_api.invariant() returns text
language sql stable as $$
        with held as (
                select tenant, item, location,
                       coalesce(sum(qty) filter (where state = 'held'), 0) as held,
                       coalesce(sum(qty) filter (where state in ('sold', 'shipped')), 0) as sold,
                       coalesce(sum(qty) filter (where state = 'shipped'), 0) as shipped
                from sluice.hold group by 1, 2, 3),
        told as (
                select *, lag(to_state) over story as before,
                       lead(seq) over story is null as is_last
                from sluice.journal window story as (partition by hold order by seq)),
        noted as (
                select tenant, item, location,
                       coalesce(sum(qty) filter (where hold is null), 0) as total,
                       coalesce(sum(qty * ((to_state = 'held')::int
                                - coalesce(from_state = 'held', false)::int))
                                filter (where hold is not null), 0) as held,
                       coalesce(sum(qty * ((to_state in ('sold', 'shipped'))::int
                                - coalesce(from_state in ('sold', 'shipped'), false)::int))
                                filter (where hold is not null), 0) as sold,
                       coalesce(sum(qty) filter (where to_state = 'shipped'), 0) as shipped,
                       min(hold::text) filter (where hold is not null and (
                                from_state is distinct from before or not coalesce(
                                (from_state, to_state) in (('held', 'held'), ('held', 'sold'),
                                 ('held', 'released'), ('held', 'expired'), ('sold', 'shipped'),
                                 ('sold', 'cancelled')),
                                from_state is null and to_state in ('held', 'sold'))))
                                as broken
                from told group by 1, 2, 3),
        wrong as (
                select json_build_object('tenant', coalesce(i.tenant, j.tenant),
                        'item', coalesce(i.item, j.item), 'rule', r.rule,
                        'counter', r.counter, 'found', r.found) as v
                from sluice.item i
                full join noted j using (tenant, item, location)
                left join held h using (tenant, item, location),
                lateral (values
                        ('available + held + sold = total', i.total,
                         i.available + i.held + i.sold),
                        ('held is the sum of holds', i.held, coalesce(h.held, 0)),
                        ('sold is the sum of holds', i.sold, coalesce(h.sold, 0)),
                        ('shipped is the sum of holds', i.shipped, coalesce(h.shipped, 0)),
                        ('held is the sum of the journal', i.held, coalesce(j.held, 0)),
                        ('sold is the sum of the journal', i.sold, coalesce(j.sold, 0)),
                        ('shipped is the sum of the journal', i.shipped, coalesce(j.shipped, 0)),
                        ('total is the sum of the journal', i.total, coalesce(j.total, 0)),
                        ('nothing is below zero', 0,
                         least(i.available, i.held, i.sold, i.shipped, 0)),
                        ('shipped is at most sold', i.sold, greatest(i.sold, i.shipped))
                ) r (rule, counter, found)
                where r.counter is distinct from r.found
                union all
                select json_build_object('tenant', tenant, 'item', item,
                        'rule', 'each event of a hold follows from the one before',
                        'hold', sluice_api.hold_name(broken::uuid))
                from noted where broken is not null
                union all
                select json_build_object('tenant', coalesce(h.tenant, l.tenant),
                        'item', coalesce(h.item, l.item),
                        'rule', 'the journal ends in the state of the hold',
                        'hold', sluice_api.hold_name(coalesce(h.id, l.hold)), 'counter', h.state,
                        'found', l.to_state)
                from sluice.hold h
                full join (select * from told where hold is not null and is_last) l
                        on l.hold = h.id
                where (l.tenant, l.item, l.location, l.qty, l.to_state)
                      is distinct from (h.tenant, h.item, h.location, h.qty, h.state))
        select json_build_object('ok', not exists (select from wrong),
                'items', (select count(*) from sluice.item),
                'violations', coalesce((select json_agg(v) from (select v from wrong limit 100) w),
                                       '[]'))::text
$$;

-- The purpose that a query of the origin begins with; null: somebody else's.
create function sluice_api.tag_of(p_query text) returns text
language sql immutable as $$
        select substring(p_query from '^/\* sluice (\w+) \*/')
$$;

-- Which sessions of this database stand in others' way, the oldest first, and
-- the row they are waited for where that is an item's. Unless p_always, only
-- while a sale is open. Of sessions of other roles the server tells a member of
-- pg_read_all_stats alone.
--
-- The first who waits for a row has a lock on its place in the table meanwhile:
-- from that the item is known.
create function sluice_api.locks(p_always boolean, out is_open boolean, out waiting bigint,
                                 out holding bigint, out held_us bigint, out body text)
language plpgsql as $$
#variable_conflict use_column
begin
        is_open := exists (select from sluice.sale
                           where closed_at is null and opens_at <= now()
                             and (closes_at is null or closes_at > now()));
        if not (is_open or p_always) then
                return;
        end if;
        with waits as materialized (
                select a.pid, a.query, pg_blocking_pids(a.pid) as behind,
                       coalesce((select min(l.waitstart) from pg_locks l
                                 where l.pid = a.pid and not l.granted), a.query_start) as since,
                       (select json_build_object('tenant', i.tenant, 'item', i.item)
                        from pg_locks l join sluice.item i
                             on i.ctid = format('(%s,%s)', l.page, l.tuple)::tid
                        where l.pid = a.pid and l.locktype = 'tuple'
                          and l.relation = 'sluice.item'::regclass
                          and l.database = a.datid limit 1) as place
                from pg_stat_activity a
                where a.datname = current_database() and a.wait_event_type = 'Lock'
                order by a.query_start limit 1000),
        held as (
                select b.pid, count(*) as waiting, min(w.since) as first,
                       (array_agg(w.place) filter (where w.place is not null))[1] as place,
                       array_agg(distinct sluice_api.tag_of(w.query)) filter (
                                where sluice_api.tag_of(w.query) is not null) as tags
                from waits w, unnest(w.behind) b (pid) group by b.pid),
        told as (
                select h.*, a.application_name, a.state, a.query,
                       coalesce(a.xact_start, a.query_start) as since,
                       pg_blocking_pids(h.pid) as behind
                from held h left join pg_stat_activity a using (pid)
                order by since limit 100)
        select (select count(*) from waits), count(*),
               coalesce((extract(epoch from clock_timestamp() - min(since)) * 1000000)::bigint, 0),
               json_build_object('at', sluice_api.time_text(clock_timestamp()),
                        'waiting', (select count(*) from waits),
                        'locks', coalesce(json_agg(json_build_object(
                                'pid', pid, 'tag', sluice_api.tag_of(query),
                                'application', application_name, 'state', state,
                                'since', sluice_api.time_text(since),
                                'held_seconds', round(extract(
                                        epoch from clock_timestamp() - since), 3),
                                'row', place, 'waiting', waiting,
                                'waited_seconds', round(extract(
                                        epoch from clock_timestamp() - first), 3),
                                'waiting_tags', coalesce(tags, '{}'), 'behind', behind)
                                order by since), '[]'))::text
        into waiting, holding, held_us, body
        from told;
end $$;

-- Before a question to a standby, in the same transaction: waits until it has got
-- where the primary was when it was asked, and refuses where it will not. A server
-- that has become the primary meanwhile is there by definition. The clock may be
-- later by what the way takes.
create function sluice_api.reach(p_at pg_lsn, p_timeline int, p_now_ms bigint) returns void
language plpgsql as $$
declare
        v_until    timestamptz := clock_timestamp() + interval '100 milliseconds';
        v_late_ms  numeric := extract(epoch from clock_timestamp()) * 1000 - p_now_ms;
        v_timeline int;
begin
        if pg_is_in_recovery() then
                v_timeline := coalesce((select received_tli from pg_stat_wal_receiver),
                                       (select timeline_id from pg_control_checkpoint()));
        else
                v_timeline := ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
                              )::bit(32)::int;
        end if;
        if v_timeline is distinct from p_timeline then
                raise exception using errcode = 'SL001', message = 'timeline';
        elsif v_late_ms not between -100 and 250 then
                raise exception using errcode = 'SL001', message = 'clock';
        end if;
        while pg_is_in_recovery() and pg_last_wal_replay_lsn() < p_at loop
                if clock_timestamp() > v_until then
                        raise exception using errcode = 'SL001', message = 'behind';
                end if;
                perform pg_sleep(0.002);
        end loop;
        perform set_config('sluice.timeline', p_timeline::text, true);
end $$;

-- Up to where all that anybody can have seen is in the log. An end that falls on
-- the head of a page is told behind it here, and before it by a standby.
create function sluice_api.log_end() returns pg_lsn
language sql volatile as $$
        select p.at - case
                when p.within = case when p.in_segment < 8192 then 40 else 24 end
                then p.within else 0 end
        from (select w.at, pg_wal_lsn_diff(w.at, '0/0') % 8192 as within,
                     pg_wal_lsn_diff(w.at, '0/0') % pg_size_bytes(
                        current_setting('wal_segment_size')) as in_segment
              from pg_current_wal_insert_lsn() w (at)) p
$$;
