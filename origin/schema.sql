-- Tables of the origin. Run by `sluice-origin --init` under an advisory lock,
-- in one transaction, as often as one likes: what exists is left alone.
--
-- A unit is always in exactly one place: available, held or sold. `sold`
-- includes what is shipped. Every key begins with the tenant, so that tenants
-- can be spread over databases; `location` leaves room for several stores of
-- one item ('' is the only one so far).

create schema if not exists sluice;

create table if not exists sluice.schema_version (
        version    int primary key,
        applied_at timestamptz not null default now()
);

-- The numbers of one item. Every reserve of the item updates this row last, so
-- the row's lock is what limits a sale; half of each page stays empty to keep
-- those updates in the page (no index changes).
create table if not exists sluice.item (
        tenant    text   not null,
        item      text   not null,
        location  text   not null default '',
        total     bigint not null,
        available bigint not null,
        held      bigint not null default 0,
        sold      bigint not null default 0,
        shipped   bigint not null default 0,
        n         bigint not null default 1, -- raised by every statement that changes the row
        paused    text,                      -- why nothing new is held; null: goes on
        primary key (tenant, item, location),
        constraint item_available_not_negative check (available >= 0),
        constraint item_held_not_negative check (held >= 0),
        constraint item_sold_not_negative check (sold >= 0),
        constraint item_shipped_within_sold check (shipped >= 0 and shipped <= sold),
        constraint item_sum_is_total check (available + held + sold = total)
) with (fillfactor = 50);
-- Whether holds that arrive together are decided together. Since version 2.
alter table sluice.item add column if not exists batch boolean not null default true;

-- One hold, from its birth to whatever became of it. Rows are never deleted:
-- they are the memory of idempotency keys. No foreign key names the item: its
-- check would lock the item's row first, and that row must come last.
create table if not exists sluice.hold (
        tenant      text           not null,
        id          uuid           not null,
        item        text           not null,
        location    text           not null default '',
        sale        text,                    -- null: sold without a window
        buyer       text           not null,
        qty         bigint         not null,
        state       text           not null,
        expires_at  timestamptz(3) not null, -- exclusive: at this instant the hold is over
        created_at  timestamptz(3) not null,
        extended    boolean        not null default false,
        idem_key    text,                    -- null: born from a late payment
        line        int            not null default 0, -- of an order under one key
        request     bytea,                   -- hash of what was asked under the key
        round       bigint,                  -- of the sale when it was taken
        pass_jti    text,                    -- the pass it was taken with
        channel     text,
        order_ref   text,
        payment_ref text,
        replaces    uuid,                    -- the expired hold it stands for
        tx          xid8           not null default pg_current_xact_id(),
        primary key (tenant, id),
        foreign key (tenant, replaces) references sluice.hold,
        constraint hold_key_is_used_once unique (tenant, buyer, idem_key, line),
        constraint hold_qty_positive check (qty > 0),
        constraint hold_state_known check
                (state in ('held', 'sold', 'shipped', 'released', 'expired', 'cancelled')),
        constraint hold_sold_is_paid check
                (state not in ('sold', 'shipped') or payment_ref is not null)
);
create index if not exists hold_by_id on sluice.hold (id);
create index if not exists hold_by_end on sluice.hold (tenant, item, location, expires_at)
        where state = 'held';
-- The buyer's number in the sale (sluice_api.buyer_number), not the three names:
-- half as large, and no other index can look as good to the planner while the
-- table is empty, when the plans of a session are made.
create index if not exists hold_by_turn on sluice.hold
        (hashtextextended(tenant || chr(1) || sale || chr(1) || buyer, 0))
        where sale is not null;
drop index if exists sluice.hold_by_buyer;
alter table sluice.hold drop constraint if exists hold_is_replaced_once;
create unique index if not exists hold_is_replaced on sluice.hold (tenant, replaces)
        where replaces is not null;
create index if not exists hold_by_tx on sluice.hold (tx) where pass_jti is not null;

-- Everything that ever happened to stock, in order for each hold; also the
-- outbox: a relay reads rows whose mark is null. Rows without a hold are
-- changes of an item's total. Nothing is changed or deleted here.
create table if not exists sluice.journal (
        tenant     text        not null,
        seq        bigint      not null generated always as identity,
        item       text        not null,
        location   text        not null default '',
        hold       uuid,
        from_state text,
        to_state   text        not null,
        qty        bigint      not null, -- units moved; for a total, the difference
        reason     text        not null,
        actor      text        not null,
        at         timestamptz not null default clock_timestamp(),
        relayed_at timestamptz,
        primary key (tenant, seq)
);
create index if not exists journal_by_hold on sluice.journal (hold, seq) where hold is not null;

create or replace function sluice.journal_keeps_everything() returns trigger
language plpgsql as $$
begin
        if tg_op = 'UPDATE' and old.relayed_at is null and new.relayed_at is not null then
                old.relayed_at := new.relayed_at;
                if old is not distinct from new then
                        return new;
                end if;
        end if;
        raise exception 'the journal is append only' using errcode = 'insufficient_privilege';
end $$;
create or replace trigger journal_keeps_rows before update or delete on sluice.journal
        for each row execute function sluice.journal_keeps_everything();
create or replace trigger journal_keeps_table before truncate on sluice.journal
        for each statement execute function sluice.journal_keeps_everything();

-- A sale's window. `spec` is every field as the API shows it; those that SQL
-- itself needs stand beside it.
create table if not exists sluice.sale (
        sale           text primary key,
        tenant         text        not null,
        item           text,
        spec           jsonb       not null,
        opens_at       timestamptz not null,
        prequeue_at    timestamptz,
        closes_at      timestamptz,
        per_account    bigint      not null,
        hold_seconds   bigint      not null,
        extend_seconds bigint      not null,
        version        bigint      not null default 1,
        round          bigint      not null default 1,
        paused_at      timestamptz,
        hard           boolean     not null default false,
        closed_at      timestamptz, -- by the verb; closes_at closes by itself
        created_at     timestamptz not null default now()
);

create table if not exists sluice.audit (
        sale    text        not null,
        seq     bigint      not null generated always as identity,
        at      timestamptz not null default now(),
        actor   text        not null,
        verb    text        not null,
        version bigint      not null, -- of the sale after it
        detail  jsonb       not null default '{}',
        primary key (sale, seq)
);

-- Accounts whose passes no longer count in a round of a sale.
create table if not exists sluice.revocation (
        sale       text        not null references sluice.sale,
        round      bigint      not null,
        account    text        not null,
        revoked_at timestamptz not null default now(),
        primary key (sale, round, account)
);

create index if not exists item_paused on sluice.item (tenant, item) where paused is not null;

-- What one origin does for all of them: who does it now, and until when. `epoch`
-- rises with each taking.
create table if not exists sluice.duty (
        name    text        primary key,
        owner   text,
        epoch   bigint      not null default 0,
        until   timestamptz not null default '-infinity',
        done_at timestamptz, -- of the invariant: the last look, what it found, how long it took
        wrong   bigint,
        took_ms bigint
);
insert into sluice.duty (name) values ('relay'), ('invariant') on conflict do nothing;
