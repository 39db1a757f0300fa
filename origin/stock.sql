-- Everything that writes stock: items, holds and the journal. No other file
-- may. Each function is one call, one transaction, one round trip.
--
-- How a transaction is laid out, always in this order, so that no two of them
-- wait for each other in a ring: holds by id (a key's row first of all), then
-- the buyer, then item rows by key. The item row comes last because everybody
-- wants it: it is locked only from its update to the commit.
--
-- The functions are volatile under READ COMMITTED: every statement inside sees
-- what was committed when it began. Time is now(), the start of the
-- transaction, and a hold is over *at* expires_at.
--
-- What is refused before anything was written is returned as an answer; what
-- is refused later is raised with SQLSTATE SL001, so that nothing remains. SL002
-- lets go of everything to be tried again by the origin.

drop schema if exists sluice_api cascade;
create schema sluice_api;

-- code: created, ok, replayed, or the problem's word. body: the hold as JSON.
-- before_us: from the statement's start until the item row was asked for;
-- wait_us: until it was ours; null when the step does not touch it. expired: due
-- holds that were taken back on the way. batch: whether the item's holds are to
-- be decided together; null when nobody looked.
create type sluice_api.answer as (
        code      text,
        body      text,
        available bigint,
        version   text,
        state     text,
        hold      text,
        before_us bigint,
        wait_us   bigint,
        expired   bigint,
        batch     boolean
);

create function sluice_api.say(p_code text, p_body text default null,
                               p_available bigint default null, p_version text default null,
                               p_state text default null, p_hold text default null,
                               p_before_us bigint default null, p_wait_us bigint default null)
returns sluice_api.answer
language plpgsql immutable as $$
begin
        return (p_code, p_body, p_available, p_version, p_state, p_hold, p_before_us,
                p_wait_us, sluice_api.expired_here(), null)::sluice_api.answer;
end $$;

-- Holds taken back in this transaction so far.
create function sluice_api.expired_here() returns bigint
language sql stable as $$
        select nullif(current_setting('sluice.expired', true), '')::bigint
$$;

-- Microseconds from one reading of the clock to another.
create function sluice_api.us(p_from timestamptz, p_to timestamptz) returns bigint
language sql immutable as $$
        select (extract(epoch from p_to - p_from) * 1000000)::bigint
$$;

-- What an item has to offer now. A hold past its end is free, whether or not
-- anybody has taken it back yet.
create type sluice_api.stock as (
        total     bigint,
        available bigint,
        held      bigint,
        sold      bigint,
        shipped   bigint,
        n         bigint,
        paused    text,
        due       bigint, -- of available: held in the row, and past their end
        batch     boolean
);

-- What asks a table is PL/pgSQL, even where SQL would do: its plans are made once
-- a session, those of SQL functions in every transaction. Views, and SQL functions
-- of one expression, melt into the statements that name them.
create view sluice_api.stock_of_items as
        select i.tenant, i.item, i.total, i.available + d.due as available,
               i.held - d.due as held, i.sold, i.shipped, i.n, i.paused, d.due, i.batch
        from sluice.item i cross join lateral (
                select coalesce(sum(h.qty), 0)::bigint as due
                from sluice.hold h
                where h.tenant = i.tenant and h.item = i.item and h.location = i.location
                  and h.state = 'held' and h.expires_at <= now()) d
        where i.location = '';

create function sluice_api.stock_now(p_tenant text, p_item text) returns sluice_api.stock
language plpgsql as $$
declare
        v sluice_api.stock;
begin
        select total, available, held, sold, shipped, n, paused, due, batch into v
        from sluice_api.stock_of_items where tenant = p_tenant and item = p_item;
        return v;
end $$;

-- What an item whose row is ours has to offer: with it the due holds that stay,
-- which the row itself still counts as held.
create function sluice_api.offer(p_item sluice.item) returns bigint
language plpgsql as $$
begin
        return p_item.available + case when p_item.held = 0 then 0 else (
                select coalesce(sum(qty), 0)
                from sluice.hold
                where tenant = p_item.tenant and item = p_item.item
                  and location = p_item.location and state = 'held' and expires_at <= now()) end;
end $$;

-- The buyer's turn in this sale: a lock on this number, held until the end of
-- the transaction, makes two keys of one buyer count one after the other. Two
-- buyers who share a number wait for each other, and no more.
create function sluice_api.buyer_number(p_tenant text, p_sale text, p_buyer text) returns bigint
language sql immutable as $$
        select hashtextextended(p_tenant || chr(1) || p_sale || chr(1) || p_buyer, 0)
$$;

-- Holds that take of their buyers' allowance now. To be asked by turn, which has
-- an index, and by sale and buyer, since a number may be shared.
create view sluice_api.counted as
        select id, sale, buyer, qty, created_at, tx,
               sluice_api.buyer_number(tenant, sale, buyer) as turn
        from sluice.hold
        where sale is not null
          and (state in ('sold', 'shipped') or state = 'held' and expires_at > now());

-- Why a sale lets nobody hold anything new now; null: it does. p_item null: of
-- whatever item; p_round null: of whatever round.
create function sluice_api.window_refuses(p_sale sluice.sale, p_tenant text, p_item text,
                                          p_round bigint, p_revoked boolean)
returns text
language sql stable as $$
        select case
                when p_sale.sale is null then 'not_found'
                when p_sale.tenant <> p_tenant
                     or p_item is not null and p_sale.item is distinct from p_item
                        then 'sale_differs'
                when p_sale.closed_at is not null or p_sale.closes_at <= now() then 'closed'
                when p_sale.opens_at > now() then 'not_open'
                when p_sale.paused_at is not null and p_sale.hard then 'paused'
                when p_round <> p_sale.round or p_revoked then 'pass_revoked' end
$$;

-- What a sale's window says to one buyer now.
create type sluice_api.sale_window as (
        refuses      text,   -- why nothing new may be held; null: it may
        item         text,
        per_account  bigint,
        hold_seconds bigint,
        round        bigint,
        used         bigint  -- units of the buyer already
);

create function sluice_api.window_now(p_sale text, p_tenant text, p_item text, p_buyer text,
                                      p_round bigint)
returns sluice_api.sale_window
language plpgsql as $$
declare
        v sluice_api.sale_window;
begin
        select sluice_api.window_refuses(s, p_tenant, p_item, p_round, exists (
                        select from sluice.revocation r
                        where r.sale = s.sale and r.round = s.round and r.account = p_buyer)),
               s.item, s.per_account, s.hold_seconds, s.round,
               sluice_api.units_of(p_tenant, p_sale, p_buyer, null)
        into v
        from sluice.sale s where s.sale = p_sale;
        if not found then
                v.refuses := 'not_found';
        end if;
        return v;
end $$;

create function sluice_api.version_text(p_n bigint) returns text
language sql stable as $$
        select current_setting('sluice.timeline') || '.' || p_n
$$;

create function sluice_api.time_text(p_at timestamptz) returns text
language sql stable as $$
        select to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

create function sluice_api.hold_name(p_id uuid) returns text
language sql stable as $$
        select current_setting('sluice.prefix') || replace(p_id::text, '-', '')
$$;

-- A hold that is over but not yet taken back is told as expired.
create function sluice_api.hold_state(p_hold sluice.hold) returns text
language sql stable as $$
        select case when p_hold.state = 'held' and p_hold.expires_at <= now()
                    then 'expired' else p_hold.state end
$$;

create function sluice_api.hold_json(p_hold sluice.hold) returns text
language sql stable as $$
        select json_build_object(
                'hold', sluice_api.hold_name(p_hold.id),
                'sale', p_hold.sale,
                'qty', p_hold.qty,
                'state', sluice_api.hold_state(p_hold),
                'expires_at', sluice_api.time_text(p_hold.expires_at),
                'extended', p_hold.extended,
                'created_at', sluice_api.time_text(p_hold.created_at),
                'replaces', sluice_api.hold_name(p_hold.replaces),
                'tenant', p_hold.tenant,
                'item', p_hold.item,
                'buyer', p_hold.buyer)::text
$$;

-- Units of the sale that the buyer has or had bought; `p_but` is not counted.
create function sluice_api.units_of(p_tenant text, p_sale text, p_buyer text, p_but uuid)
returns bigint
language plpgsql as $$
begin
        return (
        select coalesce(sum(qty), 0)::bigint
        from sluice_api.counted
        where turn = sluice_api.buyer_number(p_tenant, p_sale, p_buyer)
          and sale = p_sale and buyer = p_buyer and id is distinct from p_but);
end $$;

-- The word for "no" when p_qty units are asked of this stock; null if there
-- are enough.
create function sluice_api.shortage(p_stock sluice_api.stock, p_qty bigint) returns text
language sql immutable as $$
        select case when p_stock.paused is not null then 'paused'
                    when p_stock.available >= p_qty then null
                    when p_stock.available > 0 then 'not_enough'
                    when p_stock.held > 0 then 'all_held'
                    else 'sold_out' end
$$;

-- Ends the transaction with an answer that leaves nothing behind.
create function sluice_api.refuse(p_code text, p_stock sluice_api.stock, p_state text,
                                  p_hold text)
returns void
language plpgsql as $$
begin
        raise exception using errcode = 'SL001', message = p_code,
                detail = json_build_object('available', p_stock.available,
                                           'version', sluice_api.version_text(p_stock.n),
                                           'state', p_state, 'hold', p_hold)::text;
end $$;

create function sluice_api.note(p_hold sluice.hold, p_from text, p_to text, p_reason text,
                                p_actor text)
returns void
language plpgsql as $$
begin
        insert into sluice.journal (tenant, item, location, hold, from_state, to_state, qty,
                                    reason, actor)
        values (p_hold.tenant, p_hold.item, p_hold.location, p_hold.id, p_from, p_to,
                p_hold.qty, p_reason, p_actor);
end $$;

-- Takes back at least p_want units of due holds of one item if there are that
-- many, and returns how many came back; the caller adds them to the item in
-- its own update. Without p_wait it steps over holds that somebody else is
-- deciding about right now.
create function sluice_api.take_due(p_tenant text, p_item text, p_want bigint, p_wait boolean)
returns bigint
language plpgsql as $$
declare
        v_ids  uuid[];
        v_back bigint;
begin
        if p_wait then
                select array_agg(id) into v_ids from (
                        select id from sluice.hold
                        where tenant = p_tenant and item = p_item and location = ''
                          and state = 'held' and expires_at <= now()
                        order by id limit p_want for update) due;
        else
                select array_agg(id) into v_ids from (
                        select id from sluice.hold
                        where tenant = p_tenant and item = p_item and location = ''
                          and state = 'held' and expires_at <= now()
                        order by id limit p_want for update skip locked) due;
        end if;
        if v_ids is null then
                return 0;
        end if;
        perform set_config('sluice.expired', (coalesce(sluice_api.expired_here(), 0)
                                              + cardinality(v_ids))::text, true);
        with gone as (
                update sluice.hold set state = 'expired'
                where tenant = p_tenant and id = any (v_ids)
                returning *),
        noted as (
                insert into sluice.journal (tenant, item, location, hold, from_state, to_state,
                                            qty, reason, actor)
                select tenant, item, location, id, 'held', 'expired', qty, 'due', 'origin'
                from gone)
        select sum(qty) into v_back from gone;
        return v_back;
end $$;

-- Moves p_qty units from available to held (or straight to sold), taking due
-- holds back when that is what it needs. The hot row: nothing comes after it.
-- p_state goes into the refusal. p_first: no item's row is locked yet.
--
-- Due holds that somebody else decides about are waited for only while we have
-- no item row: they may be waiting for ours. An update that waited for the row
-- and then found too little keeps it locked, and xmax shows that; then, and
-- when nothing came back, everything is let go and tried again.
create function sluice_api.take_units(p_tenant text, p_item text, p_qty bigint, p_sell boolean,
                                      p_back bigint, p_state text, p_first boolean)
returns sluice.item
language plpgsql as $$
declare
        v_item  sluice.item;
        v_stock sluice_api.stock;
        v_back  bigint := p_back;
        v_more  bigint;
        v_wait  boolean;
        v_short text;
begin
        for v_try in 1 .. 4 loop
                update sluice.item
                set available = available + v_back - p_qty,
                    held = held - v_back + case when p_sell then 0 else p_qty end,
                    sold = sold + case when p_sell then p_qty else 0 end,
                    n = n + 1
                where tenant = p_tenant and item = p_item and location = ''
                  and available + v_back >= p_qty and paused is null
                returning * into v_item;
                if found then
                        return v_item;
                end if;
                v_stock := sluice_api.stock_now(p_tenant, p_item);
                v_stock.available := v_stock.available + v_back;
                v_stock.held := v_stock.held - v_back;
                v_short := sluice_api.shortage(v_stock, p_qty);
                if v_short is not null then
                        perform sluice_api.refuse(v_short, v_stock, p_state, null);
                end if;
                select p_first and xmax <> pg_current_xact_id()::xid into v_wait from sluice.item
                where tenant = p_tenant and item = p_item and location = '';
                v_more := sluice_api.take_due(p_tenant, p_item, p_qty, v_wait and v_try > 1);
                exit when v_more = 0 and not v_wait;
                v_back := v_back + v_more;
        end loop;
        raise exception 'too many at once for %/%', p_tenant, p_item using errcode = 'SL002';
end $$;

create function sluice_api.reserve(
        p_tenant text, p_item text, p_id uuid, p_buyer text, p_qty bigint, p_sale text,
        p_key text, p_request text, p_pass_jti text, p_round bigint, p_channel text,
        p_order_ref text, p_replay_only boolean, p_max_hold bigint)
returns sluice_api.answer
language plpgsql as $$
declare
        v_request bytea := sha256(convert_to(p_request, 'UTF8'));
        v_stock   sluice_api.stock := sluice_api.stock_now(p_tenant, p_item);
        v_window  sluice_api.sale_window;
        v_hold    sluice.hold;
        v_item    sluice.item;
        v_open    text;
        v_body    text;
        v_turn    text;
        v_asked   timestamptz;
        v_why     text;
begin
        -- What stands is read plainly. The key is looked up *after* the stock: if
        -- the numbers already show what our own twin took, the look-up finds it.
        if p_sale is not null then
                v_window := sluice_api.window_now(p_sale, p_tenant, p_item, p_buyer, p_round);
        end if;
        select * into v_hold from sluice.hold
        where tenant = p_tenant and buyer = p_buyer and idem_key = p_key and line = 0;
        if found then
                return sluice_api.replay(v_hold, v_request, v_stock);
        end if;

        v_why := case when p_replay_only then 'pass_expired'
                      when v_stock.n is null then 'not_found'
                      when v_window.refuses is not null then v_window.refuses
                      when v_window.used + p_qty > v_window.per_account then 'buyer_limit'
                      else sluice_api.shortage(v_stock, p_qty) end;
        if v_why is not null then
                if v_why = 'buyer_limit' then
                        v_open := sluice_api.open_hold(p_tenant, p_sale, p_buyer, null);
                end if;
                return (v_why, null, v_stock.available, sluice_api.version_text(v_stock.n),
                        null, v_open, null, null, null, v_stock.batch)::sluice_api.answer;
        end if;

        with born as (
                insert into sluice.hold (tenant, id, item, sale, buyer, qty, state, expires_at,
                                         created_at, idem_key, request, round, pass_jti,
                                         channel, order_ref)
                values (p_tenant, p_id, p_item, p_sale, p_buyer, p_qty, 'held',
                        date_trunc('milliseconds', now()) + make_interval(
                                secs => least(coalesce(v_window.hold_seconds, 600), p_max_hold)),
                        date_trunc('milliseconds', now()), p_key, v_request, v_window.round,
                        p_pass_jti, p_channel, p_order_ref)
                on conflict on constraint hold_key_is_used_once do nothing
                returning *),
        noted as (
                insert into sluice.journal (tenant, item, location, hold, to_state, qty, reason,
                                            actor)
                select tenant, item, location, id, 'held', qty, 'reserved', 'buyer' from born)
        select * into v_hold from born;
        if not found then
                select * into v_hold from sluice.hold
                where tenant = p_tenant and buyer = p_buyer and idem_key = p_key and line = 0;
                return sluice_api.replay(v_hold, v_request,
                                         sluice_api.stock_now(p_tenant, p_item));
        end if;

        if p_sale is not null then
                v_turn := pg_advisory_xact_lock(
                        sluice_api.buyer_number(p_tenant, p_sale, p_buyer))::text;
                if sluice_api.units_of(p_tenant, p_sale, p_buyer, p_id) + p_qty
                   > v_window.per_account then
                        perform sluice_api.refuse('buyer_limit', v_stock, null,
                                sluice_api.open_hold(p_tenant, p_sale, p_buyer, p_id));
                end if;
        end if;
        v_body := sluice_api.hold_json(v_hold); -- now, since the row below is locked
        v_asked := clock_timestamp();
        v_item := sluice_api.take_units(p_tenant, p_item, p_qty, false, 0, null, true);
        return ('created', v_body, sluice_api.offer(v_item),
                sluice_api.version_text(v_item.n), 'held', null,
                sluice_api.us(statement_timestamp(), v_asked),
                sluice_api.us(v_asked, clock_timestamp()),
                sluice_api.expired_here(), v_item.batch)::sluice_api.answer;
end $$;

-- One of several who ask for the same item, and what came of it.
create type sluice_api.asker as (
        no          bigint, -- in order of arrival, from 1
        id          uuid,
        buyer       text,
        qty         bigint,
        sale        text,
        key         text,
        request     bytea,
        pass_jti    text,
        channel     text,
        order_ref   text,
        seconds     bigint, -- that the hold lasts
        round       bigint, -- of the sale
        per_account bigint,
        turn        bigint, -- the buyer's number; null without a sale
        mark        bigint, -- of buyer and key: equal for twins
        used        bigint, -- units of the buyer already
        known       uuid,   -- the hold that stands under the key
        why         text    -- null: granted, or known. short: of units. twin: another
                            -- has the key. again: not to be decided here
);

-- Gives p_left units out in order of arrival. Each is decided as if those before
-- it had been decided alone: what is too much for the allowance or for what is
-- left is refused, and does not stand in the way of a smaller one behind it. So
-- where all ask for the same number, the granted ones are a prefix. Fills `why`
-- in where it is null.
create function sluice_api.share_out(p_askers sluice_api.asker[], p_left bigint)
returns sluice_api.asker[]
language plpgsql immutable as $$
declare
        v_askers sluice_api.asker[] := p_askers;
        v_turns  bigint[] := array(select turn from unnest(p_askers));
        v_marks  bigint[] := array(select mark from unnest(p_askers));
        v_given  bigint[] := array_fill(0::bigint, array[cardinality(p_askers)]);
        v_taken  boolean[] := array_fill(false, array[cardinality(p_askers)]);
        v_left   bigint := p_left;
        v_turn   int; -- where the buyer, and the key, are seen first
        v_mark   int;
        a        sluice_api.asker;
begin
        for i in 1 .. cardinality(p_askers) loop
                a := p_askers[i];
                continue when a.known is not null;
                v_turn := coalesce(array_position(v_turns, a.turn), i);
                v_mark := array_position(v_marks, a.mark);
                a.why := case when v_taken[v_mark] then 'twin'
                              when a.why is not null then a.why
                              when a.used + v_given[v_turn] + a.qty > a.per_account
                                      then 'buyer_limit'
                              when a.qty > v_left then 'short' end;
                if a.why is null then
                        v_given[v_turn] := v_given[v_turn] + a.qty;
                        v_taken[v_mark] := true;
                        v_left := v_left - a.qty;
                else
                        v_askers[i] := a;
                end if;
        end loop;
        return v_askers;
end $$;

-- Several asks for one item, decided in one transaction in order of arrival;
-- the arguments are those of reserve, an array of each. One row an ask, in the
-- same order, with what reserve would have said; or `again` where only reserve
-- can: it may wait for another transaction of the same buyer, and for due holds
-- that somebody else is deciding about. Here nobody waits but for keys, and at
-- last for the item row, so that no buyer stands in the way of the others.
--
-- All rows tell the numbers of the item as the batch leaves it: one version is
-- one number.
create function sluice_api.reserve_batch(
        p_tenant text, p_item text, p_ids uuid[], p_buyers text[], p_qtys bigint[],
        p_sales text[], p_keys text[], p_requests text[], p_pass_jtis text[],
        p_rounds bigint[], p_channels text[], p_order_refs text[], p_replay_only boolean[],
        p_max_hold bigint)
returns setof sluice_api.answer
language plpgsql as $$
declare
        v_stock  sluice_api.stock := sluice_api.stock_now(p_tenant, p_item);
        v_now    timestamptz(3) := date_trunc('milliseconds', now());
        v_askers sluice_api.asker[];
        v_tried  sluice_api.asker[]; -- those of them for whom something is written
        v_sum    bigint;             -- their units
        v_plain  boolean;            -- none of them can be in another's way
        v_born   uuid[];
        v_used   bigint[];
        v_missed bigint[];           -- turns that somebody else has
        v_back   bigint := 0;
        v_item   sluice.item;
        v_asked  timestamptz;
        v_had    timestamptz;
        v_version text;
        v_expired bigint;
begin
        if not v_stock.batch then
                return query select 'again', null, null::bigint, null, null, null, null::bigint,
                                    null::bigint, null::bigint, false
                             from generate_subscripts(p_ids, 1);
                return;
        end if;
        -- Plain reads. The keys are looked up after the stock, as in reserve.
        select array_agg((a.no, a.id, a.buyer, a.qty, a.sale, a.key, a.request, a.pass_jti,
                          a.channel, a.order_ref, a.seconds, a.round, a.per_account, a.turn,
                          a.mark, a.used, a.known,
                          case when a.known is not null then null
                               when a.replay_only then 'pass_expired'
                               when v_stock.n is null then 'not_found'
                               else a.refuses end)::sluice_api.asker order by a.no)
        into v_askers
        from (
                select i.no, i.id, i.buyer, i.qty, i.sale, i.key,
                       sha256(convert_to(i.request, 'UTF8')) as request, i.pass_jti, i.channel,
                       i.order_ref, i.replay_only, h.id as known,
                       least(coalesce(s.hold_seconds, 600), p_max_hold) as seconds, s.round,
                       s.per_account,
                       case when i.sale is not null then
                            sluice_api.buyer_number(p_tenant, i.sale, i.buyer) end as turn,
                       hashtextextended(i.buyer || chr(1) || i.key, 0) as mark,
                       case when i.sale is not null then
                            sluice_api.window_refuses(s, p_tenant, p_item, i.round, exists (
                                select from sluice.revocation r
                                where r.sale = s.sale and r.round = s.round
                                  and r.account = i.buyer)) end as refuses,
                       (select coalesce(sum(c.qty), 0)::bigint from sluice_api.counted c
                        where c.turn = sluice_api.buyer_number(p_tenant, i.sale, i.buyer)
                          and c.sale = i.sale and c.buyer = i.buyer) as used
                from unnest(p_ids, p_buyers, p_qtys, p_sales, p_keys, p_requests, p_pass_jtis,
                            p_rounds, p_channels, p_order_refs, p_replay_only)
                     with ordinality as i (id, buyer, qty, sale, key, request, pass_jti, round,
                                           channel, order_ref, replay_only, no)
                left join sluice.sale s on s.sale = i.sale
                left join lateral (
                        select id from sluice.hold
                        where tenant = p_tenant and buyer = i.buyer and idem_key = i.key
                          and line = 0 limit 1) h on true
                offset 0) a; -- lest each of its columns be worked out wherever it is named

        select array_agg(a order by a.no) filter (where a.why is null),
               sum(a.qty) filter (where a.why is null),
               count(distinct a.turn) = count(a.turn) and count(distinct a.mark) = count(*)
               and bool_and(a.sale is null or a.used + a.qty <= a.per_account)
        into v_tried, v_sum, v_plain
        from unnest(v_askers) a where a.known is null;
        if v_tried is not null and (not v_plain or v_sum > v_stock.available
                                    or v_stock.paused is not null) then
                v_askers := sluice_api.share_out(v_askers, case when v_stock.paused is null
                        then v_stock.available else 0 end);
                select array_agg(a order by a.no), sum(a.qty) into v_tried, v_sum
                from unnest(v_askers) a where a.known is null and a.why is null;
        end if;

        if v_tried is not null then
                with born as (
                        insert into sluice.hold (tenant, id, item, sale, buyer, qty, state,
                                                 expires_at, created_at, idem_key, request, round,
                                                 pass_jti, channel, order_ref)
                        select p_tenant, a.id, p_item, a.sale, a.buyer, a.qty, 'held',
                               v_now + make_interval(secs => a.seconds), v_now, a.key, a.request,
                               a.round, a.pass_jti, a.channel, a.order_ref
                        from unnest(v_tried) a order by a.buyer collate "C", a.key collate "C"
                        on conflict on constraint hold_key_is_used_once do nothing
                        returning id)
                select array_agg(id) into v_born from born;
                if v_sum > v_stock.available - v_stock.due then
                        v_back := sluice_api.take_due(p_tenant, p_item, v_sum, false);
                end if;
                select array_agg(turn) into v_missed from (
                        select turn, pg_try_advisory_xact_lock(turn) as got from (
                                select distinct turn from unnest(v_tried)
                                where turn is not null order by turn) sorted) turns
                where not got;
                -- Under the locks: what the buyers have besides. This transaction
                -- has made no other hold.
                select array_agg((
                        select coalesce(sum(c.qty), 0)::bigint from sluice_api.counted c
                        where c.turn = a.turn and c.sale = a.sale and c.buyer = a.buyer
                          and c.tx <> pg_current_xact_id()) order by a.no)
                into v_used from unnest(v_tried) a;
                v_plain := v_missed is null and cardinality(v_born) = cardinality(v_tried)
                           and v_used = array(select used from unnest(v_tried));
                v_asked := clock_timestamp();
                if v_plain then
                        update sluice.item
                        set available = available + v_back - v_sum, held = held - v_back + v_sum,
                            n = n + 1
                        where tenant = p_tenant and item = p_item and location = ''
                          and available + v_back >= v_sum and paused is null
                        returning * into v_item;
                        v_had := clock_timestamp();
                end if;
                if v_item.n is null then
                        -- Something has come between. With the row in hand all is
                        -- counted again, and who gets nothing is taken out.
                        select * into v_item from sluice.item
                        where tenant = p_tenant and item = p_item and location = '' for update;
                        v_had := clock_timestamp();
                        select array_agg((a.no, a.id, a.buyer, a.qty, a.sale, a.key, a.request,
                                          a.pass_jti, a.channel, a.order_ref, a.seconds, a.round,
                                          a.per_account, a.turn, a.mark, u.used, a.known,
                                          case when a.turn = any (v_missed) then 'again'
                                               when a.id = any (v_born) then null
                                               else 'twin' end)::sluice_api.asker order by a.no)
                        into v_tried
                        from unnest(v_tried) with ordinality a join unnest(v_used)
                             with ordinality u (used, ordinality) using (ordinality);
                        v_tried := sluice_api.share_out(v_tried, case when v_item.paused is null
                                then v_item.available + v_back else 0 end);
                        delete from sluice.hold
                        where tenant = p_tenant and id in (select id from unnest(v_tried)
                                                           where why is not null)
                          and tx = pg_current_xact_id();
                        select coalesce(sum(qty), 0) into v_sum
                        from unnest(v_tried) where why is null;
                        update sluice.item
                        set available = available + v_back - v_sum, held = held - v_back + v_sum,
                            n = n + (v_sum > 0 or v_back > 0)::int
                        where tenant = p_tenant and item = p_item and location = ''
                        returning * into v_item;
                        select array_agg(case when t.no is null then a else t end order by a.no)
                        into v_askers
                        from unnest(v_askers) a left join unnest(v_tried) t using (no);
                end if;
                insert into sluice.journal (tenant, item, hold, to_state, qty, reason, actor)
                select p_tenant, p_item, id, 'held', qty, 'reserved', 'buyer'
                from unnest(v_tried) where why is null order by no;
                v_stock.available := sluice_api.offer(v_item);
                v_stock.n := v_item.n;
                if exists (select from unnest(v_askers) where why = 'short') then
                        v_stock := sluice_api.stock_now(p_tenant, p_item);
                end if;
        end if;

        v_version := sluice_api.version_text(v_stock.n);
        v_expired := sluice_api.expired_here();
        return query
        select (told.answer).* from (
                select a.no, case
                        when a.known is null and a.why is null then
                                ('created', sluice_api.hold_json(h), v_stock.available,
                                 v_version, 'held', null,
                                 sluice_api.us(statement_timestamp(), v_asked),
                                 sluice_api.us(v_asked, v_had), v_expired,
                                 true)::sluice_api.answer
                        when h.id is not null then
                                sluice_api.replay(h, a.request, v_stock)
                        else sluice_api.refusal(p_tenant, a, v_stock) end as answer
        from unnest(v_askers) a
        left join lateral (
                select * from sluice.hold
                where tenant = p_tenant and buyer = a.buyer and idem_key = a.key and line = 0
                  and (a.known is not null or a.why is null or a.why = 'twin') limit 1) h on true
        offset 0) told order by told.no;
end $$;

-- Plans are made when a session first asks, which may be while the tables are as
-- good as empty and every index looks right. With what is known after this they
-- are made anew.
create function sluice_api.learn() returns void
language plpgsql security definer set search_path = pg_catalog as $$
begin
        analyze (skip_locked) sluice.hold;
end $$;

-- What is said to one of several who got nothing.
create function sluice_api.refusal(p_tenant text, p_asker sluice_api.asker,
                                   p_stock sluice_api.stock)
returns sluice_api.answer
language plpgsql as $$
begin
        return (case p_asker.why
                        when 'twin' then 'again' -- the one who had the key has it no more
                        when 'short' then coalesce(sluice_api.shortage(p_stock, p_asker.qty),
                                                   'again')
                        else p_asker.why end,
                null, p_stock.available, sluice_api.version_text(p_stock.n), null,
                case when p_asker.why = 'buyer_limit' then sluice_api.open_hold(
                        p_tenant, p_asker.sale, p_asker.buyer, null) end,
                null, null, null, p_stock.batch)::sluice_api.answer;
end $$;
-- Several items under one key, all or nothing: one hold a line. Lines of the
-- sale's own item belong to the sale; others are sold beside it. Two lines of
-- one item count together.
create function sluice_api.reserve_order(
        p_tenant text, p_ids uuid[], p_buyer text, p_items text[], p_qtys bigint[], p_sale text,
        p_key text, p_request text, p_pass_jti text, p_round bigint, p_channel text,
        p_order_ref text, p_max_hold bigint)
returns sluice_api.answer
language plpgsql as $$
declare
        v_request bytea := sha256(convert_to(p_request, 'UTF8'));
        v_now     timestamptz(3) := date_trunc('milliseconds', now());
        v_window  sluice_api.sale_window;
        v_hold    sluice.hold;
        v_stock   sluice_api.stock;
        v_item    sluice.item;
        v_turn    text;
        v_why     text;
        v_short   sluice_api.stock;
        v_of_sale bigint := 0;
        r         record;
begin
        for r in select item, sum(qty)::bigint as qty
                 from unnest(p_items, p_qtys) as l (item, qty) group by item order by item loop
                v_stock := sluice_api.stock_now(p_tenant, r.item);
                if v_why is null then
                        v_why := case when v_stock.n is null then 'not_found'
                                      else sluice_api.shortage(v_stock, r.qty) end;
                        v_short := v_stock;
                end if;
        end loop;
        select * into v_hold from sluice.hold
        where tenant = p_tenant and buyer = p_buyer and idem_key = p_key and line = 0;
        if found then
                return sluice_api.replay_order(v_hold, v_request);
        end if;
        if p_sale is not null then
                v_window := sluice_api.window_now(p_sale, p_tenant, null, p_buyer, p_round);
                select coalesce(sum(qty), 0) into v_of_sale
                from unnest(p_items, p_qtys) as l (item, qty) where item = v_window.item;
                v_why := coalesce(v_window.refuses,
                                  case when v_of_sale = 0 then 'sale_differs' end, v_why);
        end if;
        if v_why is not null then
                return sluice_api.say(v_why, null, v_short.available);
        end if;

        for i in 1 .. cardinality(p_ids) loop
                insert into sluice.hold (tenant, id, item, sale, buyer, qty, state, expires_at,
                                         created_at, idem_key, line, request, round, pass_jti,
                                         channel, order_ref)
                values (p_tenant, p_ids[i], p_items[i],
                        case when p_items[i] = v_window.item then p_sale end, p_buyer, p_qtys[i],
                        'held',
                        v_now + make_interval(secs => least(coalesce(v_window.hold_seconds, 600),
                                                            p_max_hold)),
                        v_now, p_key, i - 1, v_request, v_window.round,
                        case when p_items[i] = v_window.item then p_pass_jti end, p_channel,
                        p_order_ref)
                on conflict on constraint hold_key_is_used_once do nothing
                returning * into v_hold;
                if not found then
                        select * into v_hold from sluice.hold
                        where tenant = p_tenant and buyer = p_buyer and idem_key = p_key
                          and line = 0;
                        return sluice_api.replay_order(v_hold, v_request);
                end if;
                perform sluice_api.note(v_hold, null, 'held', 'reserved', 'buyer');
        end loop;
        if v_of_sale > 0 then
                v_turn := pg_advisory_xact_lock(
                        sluice_api.buyer_number(p_tenant, p_sale, p_buyer))::text;
                if sluice_api.units_of(p_tenant, p_sale, p_buyer, null) > v_window.per_account then
                        perform sluice_api.refuse('buyer_limit', v_short, null, null);
                end if;
        end if;
        for r in select item, sum(qty)::bigint as qty
                 from unnest(p_items, p_qtys) as l (item, qty) group by item order by item loop
                v_item := sluice_api.take_units(p_tenant, r.item, r.qty, false, 0, null,
                                                v_item.item is null);
        end loop;
        return sluice_api.say('created', sluice_api.order_json(p_tenant, p_buyer, p_key));
end $$;

create function sluice_api.order_json(p_tenant text, p_buyer text, p_key text) returns text
language plpgsql as $$
begin
        return json_build_object('holds', (
                select json_agg(sluice_api.hold_json(h)::json order by h.line)
                from sluice.hold h
                where tenant = p_tenant and buyer = p_buyer and idem_key = p_key))::text;
end $$;

create function sluice_api.replay_order(p_hold sluice.hold, p_request bytea)
returns sluice_api.answer
language plpgsql as $$
begin
        if p_hold.request <> p_request then
                return sluice_api.say('idempotency_mismatch');
        end if;
        return sluice_api.say('replayed', sluice_api.order_json(p_hold.tenant, p_hold.buyer,
                                                                p_hold.idem_key));
end $$;

-- The answer to a key that is already known.
create function sluice_api.replay(p_hold sluice.hold, p_request bytea, p_stock sluice_api.stock)
returns sluice_api.answer
language plpgsql as $$
begin
        if p_hold.request <> p_request then
                return sluice_api.say('idempotency_mismatch');
        end if;
        return sluice_api.say('replayed', sluice_api.hold_json(p_hold), p_stock.available,
                              sluice_api.version_text(p_stock.n));
end $$;

-- A hold of the buyer that fills the limit, to be named in the refusal.
create function sluice_api.open_hold(p_tenant text, p_sale text, p_buyer text, p_but uuid)
returns text
language plpgsql as $$
begin
        return (
        select sluice_api.hold_name(id)
        from sluice_api.counted
        where turn = sluice_api.buyer_number(p_tenant, p_sale, p_buyer)
          and sale = p_sale and buyer = p_buyer and id is distinct from p_but
        order by created_at limit 1);
end $$;

-- The refusal for a step that the hold's state does not allow.
create function sluice_api.state_refuses(p_state text) returns text
language sql immutable as $$
        select case p_state when 'sold' then 'already_sold'
                            when 'shipped' then 'already_sold'
                            when 'expired' then 'hold_expired'
                            when 'released' then 'hold_released'
                            when 'cancelled' then 'hold_cancelled'
                            else 'conflict' end
$$;

-- The answer about a hold whose item row nobody touched.
create function sluice_api.answer_of(p_code text, p_hold sluice.hold, p_body boolean)
returns sluice_api.answer
language plpgsql as $$
declare
        s sluice_api.stock := sluice_api.stock_now(p_hold.tenant, p_hold.item);
begin
        return sluice_api.say(p_code, case when p_body then sluice_api.hold_json(p_hold) end,
                              s.available, sluice_api.version_text(s.n),
                              sluice_api.hold_state(p_hold), sluice_api.hold_name(p_hold.id));
end $$;

-- The hold, locked until the end of the transaction.
create function sluice_api.lock_hold(p_id uuid) returns sluice.hold
language plpgsql as $$
declare
        v_hold sluice.hold;
begin
        select * into v_hold from sluice.hold where id = p_id for update;
        return v_hold;
end $$;

-- Puts a hold into its next state and moves its units with it. Only called
-- under the hold's lock.
create function sluice_api.move_hold(p_hold sluice.hold, p_to text, p_reason text, p_actor text,
                                     p_payment_ref text)
returns sluice_api.answer
language plpgsql as $$
declare
        v_from  text := p_hold.state;
        v_hold  sluice.hold;
        v_item  sluice.item;
        v_asked timestamptz;
begin
        update sluice.hold
        set state = p_to, payment_ref = coalesce(p_payment_ref, payment_ref)
        where tenant = p_hold.tenant and id = p_hold.id and state = v_from
        returning * into strict v_hold;
        perform sluice_api.note(v_hold, v_from, p_to, p_reason, p_actor);
        v_asked := clock_timestamp();
        update sluice.item
        set available = available
                        + case when p_to in ('released', 'cancelled', 'expired')
                               then v_hold.qty else 0 end,
            held = held - case when v_from = 'held' then v_hold.qty else 0 end,
            sold = sold + case when p_to = 'sold' then v_hold.qty
                               when p_to = 'cancelled' then -v_hold.qty else 0 end,
            shipped = shipped + case when p_to = 'shipped' then v_hold.qty else 0 end,
            n = n + 1
        where tenant = v_hold.tenant and item = v_hold.item and location = v_hold.location
        returning * into strict v_item;
        return sluice_api.say('ok', sluice_api.hold_json(v_hold), sluice_api.offer(v_item),
                              sluice_api.version_text(v_item.n), v_hold.state,
                              sluice_api.hold_name(v_hold.id),
                              sluice_api.us(statement_timestamp(), v_asked),
                              sluice_api.us(v_asked, clock_timestamp()));
end $$;

-- release, cancel, ship: conditional on the state, repeats change nothing.
create function sluice_api.step(p_id uuid, p_verb text, p_actor text)
returns sluice_api.answer
language plpgsql as $$
declare
        v_to    text := case p_verb when 'release' then 'released'
                                    when 'cancel' then 'cancelled' else 'shipped' end;
        v_from  text := case p_verb when 'release' then 'held' else 'sold' end;
        v_hold  sluice.hold := sluice_api.lock_hold(p_id);
        v_state text := sluice_api.hold_state(v_hold);
begin
        if v_hold.id is null then
                return sluice_api.say('not_found');
        elsif v_state = v_to then
                return sluice_api.answer_of('ok', v_hold, true);
        elsif v_state <> v_from then
                return sluice_api.answer_of(sluice_api.state_refuses(v_state), v_hold, false);
        end if;
        return sluice_api.move_hold(v_hold, v_to, v_to, p_actor, null);
end $$;

-- Once, when payment starts. Asking again answers the same end.
create function sluice_api.extend(p_id uuid, p_actor text)
returns sluice_api.answer
language plpgsql as $$
declare
        v_hold  sluice.hold := sluice_api.lock_hold(p_id);
        v_state text := sluice_api.hold_state(v_hold);
        v_more  bigint;
begin
        if v_hold.id is null then
                return sluice_api.say('not_found');
        elsif v_state <> 'held' then
                return sluice_api.answer_of(sluice_api.state_refuses(v_state), v_hold, false);
        elsif v_hold.extended then
                return sluice_api.answer_of('ok', v_hold, true);
        end if;
        select extend_seconds into v_more from sluice.sale where sale = v_hold.sale;
        update sluice.hold
        set expires_at = expires_at + make_interval(secs => coalesce(v_more, 300)),
            extended = true, tx = pg_current_xact_id()
        where tenant = v_hold.tenant and id = v_hold.id and state = 'held' and not extended
        returning * into strict v_hold;
        perform sluice_api.note(v_hold, 'held', 'held', 'extended', p_actor);
        return sluice_api.answer_of('ok', v_hold, true);
end $$;

-- The payer's word. On a hold in force it sells it. On one that is over it
-- tries once to take the units anew: p_new becomes a hold born sold.
create function sluice_api.confirm(p_id uuid, p_payment_ref text, p_new uuid)
returns sluice_api.answer
language plpgsql as $$
declare
        v_hold  sluice.hold := sluice_api.lock_hold(p_id);
        v_state text := sluice_api.hold_state(v_hold);
        v_next  sluice.hold;
begin
        if v_hold.id is null then
                return sluice_api.say('not_found');
        elsif v_state = 'held' then
                return sluice_api.move_hold(v_hold, 'sold', 'paid', 'payer', p_payment_ref);
        elsif v_state in ('sold', 'shipped') and v_hold.payment_ref = p_payment_ref then
                return sluice_api.answer_of('ok', v_hold, true);
        elsif v_state <> 'expired' then
                return sluice_api.answer_of(sluice_api.state_refuses(v_state), v_hold, false);
        end if;
        select * into v_next from sluice.hold
        where tenant = v_hold.tenant and replaces = v_hold.id;
        if not found then
                return sluice_api.take_anew(v_hold, p_payment_ref, p_new);
        elsif v_next.payment_ref = p_payment_ref and v_next.state in ('sold', 'shipped') then
                return sluice_api.answer_of('ok', v_next, true);
        end if;
        return sluice_api.answer_of(sluice_api.state_refuses(v_next.state), v_next, false);
end $$;

-- A payment came after the end of its hold. The same guards as for any new
-- hold: window, allowance, stock.
create function sluice_api.take_anew(p_hold sluice.hold, p_payment_ref text, p_new uuid)
returns sluice_api.answer
language plpgsql as $$
declare
        v_now    timestamptz(3) := date_trunc('milliseconds', now());
        v_window sluice_api.sale_window;
        v_turn   text;
        v_back   bigint := 0;
        v_hold   sluice.hold;
        v_item   sluice.item;
        v_asked  timestamptz;
begin
        if p_hold.sale is not null then
                v_window := sluice_api.window_now(p_hold.sale, p_hold.tenant, p_hold.item,
                                                  p_hold.buyer, null);
                if v_window.refuses = 'paused' then
                        return sluice_api.say('paused');
                elsif v_window.refuses is not null then
                        return sluice_api.answer_of('hold_expired', p_hold, false);
                end if;
        end if;
        if p_hold.state = 'held' then
                update sluice.hold set state = 'expired'
                where tenant = p_hold.tenant and id = p_hold.id;
                perform sluice_api.note(p_hold, 'held', 'expired', 'due', 'origin');
                perform set_config('sluice.expired', '1', true);
                v_back := p_hold.qty;
        end if;
        insert into sluice.hold (tenant, id, item, location, sale, buyer, qty, state, expires_at,
                                 created_at, round, channel, order_ref, payment_ref, replaces)
        values (p_hold.tenant, p_new, p_hold.item, p_hold.location, p_hold.sale, p_hold.buyer,
                p_hold.qty, 'sold', v_now, v_now, p_hold.round, p_hold.channel, p_hold.order_ref,
                p_payment_ref, p_hold.id)
        returning * into v_hold;
        if p_hold.sale is not null then
                v_turn := pg_advisory_xact_lock(sluice_api.buyer_number(
                        p_hold.tenant, p_hold.sale, p_hold.buyer))::text;
                if sluice_api.units_of(p_hold.tenant, p_hold.sale, p_hold.buyer, p_new)
                   + p_hold.qty > v_window.per_account then
                        perform sluice_api.refuse('hold_expired',
                                sluice_api.stock_now(p_hold.tenant, p_hold.item), 'expired',
                                sluice_api.hold_name(p_hold.id));
                end if;
        end if;
        perform sluice_api.note(v_hold, null, 'sold', 'paid late', 'payer');
        v_asked := clock_timestamp();
        v_item := sluice_api.take_units(p_hold.tenant, p_hold.item, p_hold.qty, true, v_back,
                                        'expired', true);
        return sluice_api.say('created', sluice_api.hold_json(v_hold), sluice_api.offer(v_item),
                              sluice_api.version_text(v_item.n), v_hold.state,
                              sluice_api.hold_name(v_hold.id),
                              sluice_api.us(statement_timestamp(), v_asked),
                              sluice_api.us(v_asked, clock_timestamp()));
end $$;

-- Takes back up to p_batch due holds of any item. Only tidiness: every number
-- counts them as free already. Returns how many, when the next one is due, and
-- what time it is.
create function sluice_api.expire(p_batch bigint, out expired bigint, out next_due_ms bigint,
                                  out now_ms bigint)
language plpgsql as $$
declare
        v_ids uuid[];
        r     record;
begin
        select array_agg(id order by id), count(*) into v_ids, expired from (
                select h.id
                from sluice.item i, lateral (
                        select id from sluice.hold
                        where tenant = i.tenant and item = i.item and location = i.location
                          and state = 'held' and expires_at <= now()
                        order by expires_at limit p_batch) due
                join sluice.hold h using (id)
                where i.held > 0 and i.paused is null and h.state = 'held'
                  and h.expires_at <= now()
                order by h.id limit p_batch for update of h skip locked) locked;
        with gone as (
                update sluice.hold set state = 'expired' where id = any (v_ids) returning *)
        insert into sluice.journal (tenant, item, location, hold, from_state, to_state, qty,
                                    reason, actor)
        select tenant, item, location, id, 'held', 'expired', qty, 'due', 'origin' from gone;
        for r in select tenant, item, location, sum(qty) as qty from sluice.hold
                 where id = any (v_ids) group by 1, 2, 3 order by 1, 2, 3 loop
                update sluice.item
                set available = available + r.qty, held = held - r.qty, n = n + 1
                where tenant = r.tenant and item = r.item and location = r.location;
        end loop;
        select (extract(epoch from min(due.expires_at)) * 1000)::bigint into next_due_ms
        from sluice.item i, lateral (
                select expires_at from sluice.hold
                where tenant = i.tenant and item = i.item and location = i.location
                  and state = 'held'
                order by expires_at limit 1) due
        where i.held > 0 and i.paused is null;
        now_ms := (extract(epoch from clock_timestamp()) * 1000)::bigint;
end $$;

create function sluice_api.item_json(p_tenant text, p_item text) returns text
language plpgsql as $$
begin
        return (select json_build_object(
                        'tenant', tenant, 'item', item, 'total', total,
                        'on_hand', total - shipped, 'reserved', held + sold - shipped,
                        'available', available, 'held', held, 'sold', sold, 'shipped', shipped,
                        'version', sluice_api.version_text(n), 'paused', paused,
                        'batch', case when batch then 'on' else 'off' end)::text
                from sluice_api.stock_of_items where tenant = p_tenant and item = p_item);
end $$;

-- Sets an item's total, never below what is held or sold, and whether its holds
-- are decided together; p_batch null: as it is.
create function sluice_api.item_put(p_tenant text, p_item text, p_total bigint, p_actor text,
                                    p_batch boolean)
returns sluice_api.answer
language plpgsql as $$
declare
        v_code text := 'ok';
        v_old  bigint;
        v_back bigint := 0;
begin
        insert into sluice.item (tenant, item, total, available, batch)
        values (p_tenant, p_item, p_total, p_total, coalesce(p_batch, true))
        on conflict do nothing;
        if found then
                v_code := 'created';
                v_old := 0;
        else
                -- Due holds are free; taking them back first keeps the lock order.
                if p_total < (select held + sold from sluice.item
                              where tenant = p_tenant and item = p_item and location = '') then
                        v_back := sluice_api.take_due(p_tenant, p_item, 1000000, false);
                end if;
                select total into v_old from sluice.item
                where tenant = p_tenant and item = p_item and location = '' for update;
                update sluice.item
                set total = p_total, available = available + v_back + p_total - total,
                    held = held - v_back, n = n + 1, batch = coalesce(p_batch, batch)
                where tenant = p_tenant and item = p_item and location = ''
                  and (total <> p_total or v_back > 0 or batch <> p_batch)
                  and p_total >= held - v_back + sold;
                if not found and v_old <> p_total then
                        perform sluice_api.refuse('conflict',
                                sluice_api.stock_now(p_tenant, p_item), null, null);
                end if;
        end if;
        if v_old <> p_total then
                insert into sluice.journal (tenant, item, to_state, qty, reason, actor)
                values (p_tenant, p_item, 'available', p_total - v_old, 'stock', p_actor);
        end if;
        return sluice_api.say(v_code, sluice_api.item_json(p_tenant, p_item));
end $$;

-- A rule of the item was violated: nothing new is held until an operator
-- resumes a sale of it. The item may be named by one of its holds.
create function sluice_api.item_pause(p_tenant text, p_item text, p_hold uuid, p_why text)
returns boolean
language plpgsql as $$
begin
        update sluice.item i set paused = p_why, n = n + 1
        from (select p_tenant as tenant, p_item as item
              union all
              select tenant, item from sluice.hold where id = p_hold) named
        where i.tenant = named.tenant and i.item = named.item and i.paused is null;
        return found;
end $$;

create function sluice_api.item_resume(p_tenant text, p_item text) returns boolean
language plpgsql as $$
begin
        update sluice.item set paused = null, n = n + 1
        where tenant = p_tenant and item = p_item and paused is not null;
        return found;
end $$;
