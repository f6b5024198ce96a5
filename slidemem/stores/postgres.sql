-- What a store asks of PostgreSQL: each procedure of `served.py` as one function, so each call is one statement.
--
-- "SCHEMA." is replaced by the store's own schema. Texts of hosts are JSON literals here (see wire.py). Functions that
-- read are STABLE: all of their statements see one instant. Functions that write lock the session's row first.

-- ------------------------------------------------------------------ the session's row

CREATE OR REPLACE FUNCTION SCHEMA.is_over(s SCHEMA.sessions, a jsonb) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(s.written < now() - make_interval(secs => (a->>'ttl')::float8), false)
$$;

-- A session of which nothing is left but its revision, moved by one.
CREATE OR REPLACE FUNCTION SCHEMA.nothing_of(s SCHEMA.sessions) RETURNS SCHEMA.sessions LANGUAGE plpgsql STABLE AS $$
BEGIN
    s.epoch := s.epoch + 1; s.revision := s.revision + 1; s.boundary := 0; s.segments := 0;
    s.next_seq := 0; s.live_tokens := 0; s.live_turns := 0; s.anchor_tokens := 0; s.overhead_tokens := 0;
    s.counter := '""'; s.record_anchor := 0; s.record_overhead := 0; s.anchor_counter := NULL;
    s.holder := NULL; s.until := NULL; s.metadata := '[]'; s.id := NULL; s.owner := NULL;
    RETURN s;
END $$;

-- The row of a session as readers see it; that of none has the number 0, by which nothing is found.
CREATE OR REPLACE FUNCTION SCHEMA.there(k text, a jsonb) RETURNS SCHEMA.sessions LANGUAGE plpgsql STABLE AS $$
DECLARE s SCHEMA.sessions;
BEGIN
    SELECT * INTO s FROM SCHEMA.sessions WHERE key = k;
    IF NOT FOUND THEN
        s.epoch := -1; s.revision := -1;
        s := SCHEMA.nothing_of(s);
        s.n := 0;
    ELSIF SCHEMA.is_over(s, a) THEN
        s := SCHEMA.nothing_of(s);
        s.n := 0;
    END IF;
    RETURN s;
END $$;

-- The row of a session, locked: all that writes a session waits here for each other. One that is not there is made, so
-- that there is something to lock; it counts for nothing before it has an id.
CREATE OR REPLACE FUNCTION SCHEMA.locked(k text, a jsonb) RETURNS SCHEMA.sessions LANGUAGE plpgsql AS $$
DECLARE s SCHEMA.sessions;
BEGIN
    LOOP
        SELECT * INTO s FROM SCHEMA.sessions WHERE key = k FOR UPDATE;
        EXIT WHEN FOUND;
        PERFORM SCHEMA.sweep(a);
        INSERT INTO SCHEMA.sessions(key, epoch) VALUES (k, (a->>'epoch')::bigint) ON CONFLICT (key) DO NOTHING;
    END LOOP;
    IF SCHEMA.is_over(s, a) THEN
        PERFORM SCHEMA.empty(s.n);
        s := SCHEMA.nothing_of(s);
        PERFORM SCHEMA.save(s);
    END IF;
    RETURN s;
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.begun(k text, a jsonb) RETURNS SCHEMA.sessions LANGUAGE plpgsql AS $$
DECLARE s SCHEMA.sessions := SCHEMA.locked(k, a);
BEGIN
    s.id := a->>'id';
    RETURN s;
END $$;

-- Everything of the row that changes; what was written counts from now.
CREATE OR REPLACE FUNCTION SCHEMA.save(s SCHEMA.sessions) RETURNS void LANGUAGE sql AS $$
    UPDATE SCHEMA.sessions SET
        id = s.id, owner = s.owner, epoch = s.epoch, revision = s.revision, boundary = s.boundary,
        segments = s.segments, next_seq = s.next_seq, live_tokens = s.live_tokens, live_turns = s.live_turns,
        anchor_tokens = s.anchor_tokens, overhead_tokens = s.overhead_tokens, counter = s.counter,
        record_anchor = s.record_anchor, record_overhead = s.record_overhead, anchor_counter = s.anchor_counter,
        holder = s.holder, until = s.until, metadata = s.metadata, written = now(), day = SCHEMA.today()
    WHERE n = s.n
$$;

CREATE OR REPLACE FUNCTION SCHEMA.told(s SCHEMA.sessions, a jsonb) RETURNS SCHEMA.sessions LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF a->>'metadata' IS NOT NULL THEN
        s.metadata := a->>'metadata';
    END IF;
    s.owner := coalesce(a->>'owner', s.owner);
    RETURN s;
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.totals(s SCHEMA.sessions) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_build_array(
        s.next_seq, s.live_tokens, s.live_turns, s.anchor_tokens, s.overhead_tokens, s.counter::json
    )
$$;

-- ------------------------------------------------------------------ deletion

CREATE OR REPLACE FUNCTION SCHEMA.empty(of bigint) RETURNS void LANGUAGE sql AS $$
    DELETE FROM SCHEMA.messages WHERE session = of;
    DELETE FROM SCHEMA.branches WHERE session = of;
    DELETE FROM SCHEMA.segments WHERE session = of;
    DELETE FROM SCHEMA.pins WHERE session = of;
    DELETE FROM SCHEMA.records WHERE session = of;
    DELETE FROM SCHEMA.postings WHERE session = of;
    DELETE FROM SCHEMA.documents WHERE session = of;
$$;

-- Take away a few of what has been over for long: sessions not written for `ttl`, and after a day the revisions that
-- cleared ones leave.
CREATE OR REPLACE FUNCTION SCHEMA.sweep(a jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE s SCHEMA.sessions;
BEGIN
    FOR s IN
        SELECT * FROM SCHEMA.sessions
        WHERE day <= SCHEMA.today() - floor(least((a->>'ttl')::float8, 86400) / 86400)::int
            AND (SCHEMA.is_over(sessions, a) OR id IS NULL AND written < now() - interval '1 day')
        LIMIT 20 FOR UPDATE SKIP LOCKED
    LOOP
        PERFORM SCHEMA.empty(s.n);
        DELETE FROM SCHEMA.sessions WHERE n = s.n;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.clear(k text, a jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE s SCHEMA.sessions := SCHEMA.begun(k, a);
BEGIN
    PERFORM SCHEMA.empty(s.n);
    PERFORM SCHEMA.save(SCHEMA.nothing_of(s));
    RETURN 'true';
END $$;

-- ------------------------------------------------------------------ messages in

-- Store a message: [seq, digest of the host's id, that id, digest, role, digest of what is shown, tokens, counter,
-- body, document, its length, its terms, their counts].
CREATE OR REPLACE FUNCTION SCHEMA.put(of bigint, in_branch int, at bigint, e jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE length bigint := (e->>10)::bigint;
BEGIN
    INSERT INTO SCHEMA.messages VALUES (
        of, in_branch, at, e->>1, e->>2, e->>3, e->>4, e->>5, (e->>6)::bigint, e->>7, (e->>8)::json
    );
    IF in_branch > 0 THEN
        RETURN;
    END IF;
    INSERT INTO SCHEMA.documents
        SELECT of, at, (e->>9)::json, e->11, length
            + coalesce((SELECT upto FROM SCHEMA.documents WHERE session = of ORDER BY seq DESC LIMIT 1), 0);
    INSERT INTO SCHEMA.postings
        SELECT of, said.term, at, said.count::int, 1 + coalesce(
            (SELECT nth FROM SCHEMA.postings p WHERE p.session = of AND p.term = said.term ORDER BY seq DESC LIMIT 1), 0)
        FROM ROWS FROM (jsonb_array_elements_text(e->11), jsonb_array_elements_text(e->12)) AS said(term, count);
END $$;

-- Store messages at the end, but for those that are there already, with the sums that follow.
CREATE OR REPLACE FUNCTION SCHEMA.add(s SCHEMA.sessions, entries jsonb) RETURNS SCHEMA.sessions LANGUAGE plpgsql AS $$
DECLARE
    e jsonb;
    latest text;
    last text;
BEGIN
    FOR e IN SELECT value FROM jsonb_array_elements(entries) LOOP
        IF e->>1 IS NOT NULL THEN
            SELECT digest INTO latest FROM SCHEMA.messages
                WHERE session = s.n AND branch = 0 AND host_key = e->>1 ORDER BY seq DESC LIMIT 1;
            CONTINUE WHEN latest = e->>3;
        END IF;
        PERFORM SCHEMA.put(s.n, 0, s.next_seq, e);
        s.next_seq := s.next_seq + 1;
        s.live_tokens := s.live_tokens + (e->>6)::bigint;
        s.live_turns := s.live_turns + (e->>4 = 'user')::int;
        last := e->>7;
    END LOOP;
    IF last IS NOT NULL AND s.counter = '""' THEN
        s.counter := last;
    END IF;
    RETURN s;
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.append(k text, a jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE s SCHEMA.sessions := SCHEMA.add(SCHEMA.told(SCHEMA.begun(k, a), a), a->'entries');
BEGIN
    PERFORM SCHEMA.save(s);
    RETURN SCHEMA.totals(s);
END $$;

-- Take the messages from a place on out of the conversation, as the newest branch.
CREATE OR REPLACE FUNCTION SCHEMA.close(s SCHEMA.sessions, keep bigint) RETURNS SCHEMA.sessions LANGUAGE plpgsql AS $$
DECLARE newest int;
BEGIN
    SELECT coalesce(max(branch), 0) + 1 INTO newest FROM SCHEMA.branches WHERE session = s.n;
    UPDATE SCHEMA.messages SET branch = newest WHERE session = s.n AND branch = 0 AND seq >= keep;
    IF FOUND THEN
        INSERT INTO SCHEMA.branches VALUES (s.n, newest, s.revision);
    END IF;
    DELETE FROM SCHEMA.postings p USING SCHEMA.documents d, jsonb_array_elements_text(d.terms) AS term
        WHERE d.session = s.n AND d.seq >= keep AND p.session = s.n AND p.term = term.value AND p.seq = d.seq;
    DELETE FROM SCHEMA.documents WHERE session = s.n AND seq >= keep;
    s.epoch := s.epoch + 1;
    RETURN s;
END $$;

-- The sums of what is live; those that were counted by several counters say so.
CREATE OR REPLACE FUNCTION SCHEMA.summed(s SCHEMA.sessions) RETURNS SCHEMA.sessions LANGUAGE plpgsql AS $$
DECLARE
    lowest text;
    highest text;
BEGIN
    SELECT s.boundary + count(*), coalesce(sum(tokens), 0), count(*) FILTER (WHERE role = 'user'),
            min(counter), max(counter)
        INTO s.next_seq, s.live_tokens, s.live_turns, lowest, highest
        FROM SCHEMA.messages WHERE session = s.n AND branch = 0 AND seq >= s.boundary;
    lowest := least(lowest, s.anchor_counter);
    highest := greatest(highest, s.anchor_counter);
    s.anchor_tokens := s.record_anchor;
    s.overhead_tokens := s.record_overhead;
    s.counter := CASE WHEN lowest <> highest THEN '"several"' ELSE coalesce(lowest, s.counter) END;
    RETURN s;
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.cut(k text, a jsonb) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
    PERFORM SCHEMA.save(SCHEMA.summed(SCHEMA.close(SCHEMA.begun(k, a), (a->>'keep')::bigint)));
    RETURN 'true';
END $$;

-- ------------------------------------------------------------------ messages out

CREATE OR REPLACE FUNCTION SCHEMA.entries(of bigint, in_branch int, first bigint, until bigint) RETURNS json
LANGUAGE sql STABLE AS $$
    SELECT coalesce(json_agg(json_build_array(seq, tokens, counter::json, body) ORDER BY seq), '[]')
        FROM SCHEMA.messages WHERE session = of AND branch = in_branch AND seq >= first
        AND (until IS NULL OR seq < until)
$$;

CREATE OR REPLACE FUNCTION SCHEMA.read(k text, a jsonb) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT SCHEMA.entries((SCHEMA.there(k, a)).n, 0, (a->>'start')::bigint, (a->>'end')::bigint)
$$;

CREATE OR REPLACE FUNCTION SCHEMA.pick(k text, a jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE of bigint := (SCHEMA.there(k, a)).n;
BEGIN
    RETURN (SELECT coalesce(json_agg(json_build_array(m.seq, tokens, counter::json, body) ORDER BY m.seq), '[]')
        FROM jsonb_array_elements_text(a->'seqs') AS wanted
        JOIN SCHEMA.messages m ON m.session = of AND m.branch = 0 AND m.seq = wanted.value::bigint);
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.keys(k text, a jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE of bigint := (SCHEMA.there(k, a)).n;
BEGIN
    RETURN (SELECT coalesce(json_agg(json_build_array(digest, host_id::json, role, shown_digest) ORDER BY seq), '[]')
        FROM SCHEMA.messages WHERE session = of AND branch = 0);
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.closed(of bigint) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT coalesce(
        json_agg(json_build_array(revision, SCHEMA.entries(of, branch, 0, NULL)) ORDER BY branch), '[]'
    ) FROM SCHEMA.branches WHERE session = of
$$;

CREATE OR REPLACE FUNCTION SCHEMA.branches(k text, a jsonb) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT SCHEMA.closed((SCHEMA.there(k, a)).n)
$$;

-- ------------------------------------------------------------------ postings

CREATE OR REPLACE FUNCTION SCHEMA.matching(k text, a jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
    of bigint := (SCHEMA.there(k, a)).n;
    before bigint := (a->>'before')::bigint;
    most bigint := (a->>'most')::bigint;
    messages bigint := 0;
    length bigint := 0;
    found json;
BEGIN
    SELECT seq + 1, upto INTO messages, length FROM SCHEMA.documents
        WHERE session = of AND seq < before ORDER BY seq DESC LIMIT 1;
    WITH frequent AS (
        SELECT term, ord, coalesce((
            SELECT nth FROM SCHEMA.postings p
                WHERE p.session = of AND p.term = asked.term AND p.seq < before ORDER BY seq DESC LIMIT 1
        ), 0) AS f FROM jsonb_array_elements_text(a->'terms') WITH ORDINALITY AS asked(term, ord)
    ), limited AS (
        SELECT term, ord, f, greatest(0, least(f, most - coalesce(
            sum(f) OVER (ORDER BY f, ord ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0))) AS wanted
        FROM frequent
    )
    SELECT coalesce(json_agg(json_build_array(f, (
        SELECT coalesce(json_agg(json_build_array(seq, count) ORDER BY seq), '[]') FROM (
            SELECT seq, count FROM SCHEMA.postings p
                WHERE p.session = of AND p.term = limited.term AND p.seq < before
                ORDER BY seq DESC LIMIT limited.wanted
        ) AS newest
    )) ORDER BY ord), '[]') INTO found FROM limited;
    RETURN json_build_array(coalesce(messages, 0), coalesce(length, 0), found);
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.documents(k text, a jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE of bigint := (SCHEMA.there(k, a)).n;
BEGIN
    RETURN (SELECT coalesce(json_agg(json_build_array(d.seq, d.document)), '[]')
        FROM jsonb_array_elements_text(a->'seqs') AS wanted
        JOIN SCHEMA.documents d ON d.session = of AND d.seq = wanted.value::bigint);
END $$;

-- ------------------------------------------------------------------ records

-- Another record: its lease is gone, and an epoch begins.
CREATE OR REPLACE FUNCTION SCHEMA.recorded(s SCHEMA.sessions, r jsonb) RETURNS SCHEMA.sessions LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO SCHEMA.records VALUES (s.n, (r->>'record')::json)
        ON CONFLICT (session) DO UPDATE SET record = excluded.record;
    s.revision := r->>'revision'; s.boundary := r->>'boundary'; s.segments := r->>'segments';
    s.record_anchor := r->>'anchor_tokens'; s.anchor_counter := r->>'anchor_counter';
    s.record_overhead := r->>'overhead_tokens';
    s.holder := NULL; s.until := NULL; s.epoch := s.epoch + 1;
    RETURN s;
END $$;

-- One after the other, here and with pins: a call may hold two with one name.
CREATE OR REPLACE FUNCTION SCHEMA.keep_segments(of bigint, kept jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE one jsonb;
BEGIN
    FOR one IN SELECT value FROM jsonb_array_elements(kept) LOOP
        INSERT INTO SCHEMA.segments(session, name, segment) VALUES (of, one->>0, (one->>1)::json)
            ON CONFLICT (session, name) DO UPDATE SET segment = excluded.segment;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.keep_pins(of bigint, kept jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE one jsonb;
BEGIN
    FOR one IN SELECT value FROM jsonb_array_elements(kept) LOOP
        INSERT INTO SCHEMA.pins(session, name, pin) VALUES (of, one->>0, (one->>1)::json)
            ON CONFLICT (session, name) DO UPDATE SET pin = excluded.pin;
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.drop_pins(of bigint, names jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM SCHEMA.pins WHERE session = of AND name IN (SELECT jsonb_array_elements_text(names));
    RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.all_segments(of bigint) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT coalesce(json_agg(segment ORDER BY n), '[]') FROM SCHEMA.segments WHERE session = of
$$;

CREATE OR REPLACE FUNCTION SCHEMA.all_pins(of bigint) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT coalesce(json_agg(pin ORDER BY n), '[]') FROM SCHEMA.pins WHERE session = of
$$;

CREATE OR REPLACE FUNCTION SCHEMA.held(k text, a jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE s SCHEMA.sessions := SCHEMA.there(k, a);
BEGIN
    RETURN json_build_array(
        s.revision, (SELECT record FROM SCHEMA.records WHERE session = s.n), SCHEMA.all_pins(s.n), s.metadata::json
    );
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.describe(k text, a jsonb) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
    PERFORM SCHEMA.save(SCHEMA.told(SCHEMA.begun(k, a), a));
    RETURN 'true';
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.commit(k text, a jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    s SCHEMA.sessions := SCHEMA.locked(k, a);
    tokens_covered bigint;
    turns_covered bigint;
BEGIN
    IF s.revision <> (a->>'expected')::bigint THEN
        RETURN 'false';
    END IF;
    s.id := a->>'id';
    s := SCHEMA.recorded(s, a->'record');
    SELECT coalesce(sum(tokens), 0), count(*) FILTER (WHERE role = 'user') INTO tokens_covered, turns_covered
        FROM SCHEMA.messages
        WHERE session = s.n AND branch = 0 AND seq >= (a->>'start')::bigint AND seq < (a->>'end')::bigint;
    s.live_tokens := s.live_tokens - tokens_covered;
    s.live_turns := s.live_turns - turns_covered;
    s.anchor_tokens := s.record_anchor;
    s.overhead_tokens := s.record_overhead;
    PERFORM SCHEMA.keep_segments(s.n, a->'segments'), SCHEMA.keep_pins(s.n, a->'pins'), SCHEMA.save(s);
    RETURN 'true';
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.segment(k text, a jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE of bigint := (SCHEMA.there(k, a)).n;
BEGIN
    RETURN (SELECT segment FROM SCHEMA.segments WHERE session = of AND name = a->>'name');
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.pin(k text, a jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE s SCHEMA.sessions := SCHEMA.told(SCHEMA.begun(k, a), a);
BEGIN
    PERFORM SCHEMA.keep_pins(s.n, a->'pins'), SCHEMA.save(s);
    RETURN 'true';
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.unpin(k text, a jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE s SCHEMA.sessions := SCHEMA.locked(k, a);
BEGIN
    IF SCHEMA.drop_pins(s.n, a->'names') THEN
        PERFORM SCHEMA.save(s);
        RETURN 'true';
    END IF;
    RETURN 'false';
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.claim(k text, a jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
    s SCHEMA.sessions := SCHEMA.locked(k, a);
    now_ float8 := a->>'now';
    until_ float8 := a->>'until';
BEGIN
    IF s.revision <> (a->>'expected')::bigint OR s.holder <> a->>'holder'
        AND now_ < s.until AND s.until <= now_ + 2 * (until_ - now_)
    THEN
        RETURN 'false';
    END IF;
    s.id := a->>'id';
    s.holder := a->>'holder'; s.until := until_;
    PERFORM SCHEMA.save(s);
    RETURN 'true';
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.release(k text, a jsonb) RETURNS json LANGUAGE sql AS $$
    UPDATE SCHEMA.sessions SET holder = NULL, until = NULL WHERE key = k AND holder = a->>'holder';
    SELECT 'true'::json
$$;

-- ------------------------------------------------------------------ all together

CREATE OR REPLACE FUNCTION SCHEMA.snapshot(k text, a jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
    s SCHEMA.sessions := SCHEMA.there(k, a);
    known bigint := CASE WHEN s.epoch = (a->>'epoch')::bigint THEN (a->>'known')::bigint END;
BEGIN
    RETURN json_build_array(
        CASE WHEN s.n > 0 THEN s.epoch ELSE 0 END, s.revision, s.boundary, SCHEMA.totals(s), s.metadata::json,
        CASE WHEN known IS NULL THEN (SELECT record FROM SCHEMA.records WHERE session = s.n) END,
        SCHEMA.entries(s.n, 0, coalesce(known, s.boundary), NULL), SCHEMA.all_pins(s.n),
        SCHEMA.all_pins((SCHEMA.there(a->>'beside', a)).n)
    );
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.recount(k text, a jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE s SCHEMA.sessions := SCHEMA.locked(k, a);
BEGIN
    IF s.revision <> (a->>'expected')::bigint THEN
        RETURN 'false';
    END IF;
    s.id := a->>'id';
    UPDATE SCHEMA.messages m SET tokens = (one->>1)::bigint, counter = a->>'counter'
        FROM jsonb_array_elements(a->'tokens') AS one
        WHERE session = s.n AND branch = 0 AND seq = (one->>0)::bigint;
    SELECT coalesce(sum(tokens), 0) INTO s.live_tokens
        FROM SCHEMA.messages WHERE session = s.n AND branch = 0 AND seq >= s.boundary;
    s.anchor_tokens := a->>'anchor_tokens'; s.overhead_tokens := a->>'overhead_tokens'; s.counter := a->>'counter';
    s.epoch := s.epoch + 1;
    PERFORM SCHEMA.save(s);
    RETURN 'true';
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.rewrite(k text, a jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE s SCHEMA.sessions := SCHEMA.locked(k, a);
BEGIN
    IF s.revision <> (a->'expected'->>0)::bigint OR s.next_seq <> (a->'expected'->>1)::bigint THEN
        RETURN NULL;
    END IF;
    s.id := a->>'id';
    s := SCHEMA.told(s, a);
    IF a->>'record' IS NOT NULL THEN
        s := SCHEMA.summed(SCHEMA.recorded(SCHEMA.close(s, (a->>'keep')::bigint), a->'record'));
    END IF;
    PERFORM SCHEMA.drop_pins(s.n, a->'unpinned');
    s := SCHEMA.add(s, a->'entries');
    PERFORM SCHEMA.save(s);
    RETURN SCHEMA.totals(s);
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.whole(k text, a jsonb) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE s SCHEMA.sessions := SCHEMA.there(k, a);
BEGIN
    RETURN json_build_array(
        s.revision, (SELECT record FROM SCHEMA.records WHERE session = s.n), SCHEMA.entries(s.n, 0, 0, NULL),
        SCHEMA.closed(s.n), SCHEMA.all_segments(s.n), SCHEMA.all_pins(s.n), s.metadata::json
    );
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.restore(k text, a jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE s SCHEMA.sessions := SCHEMA.locked(k, a);
BEGIN
    IF s.revision <> (a->'expected'->>0)::bigint OR s.next_seq <> (a->'expected'->>1)::bigint THEN
        RETURN 'false';
    END IF;
    s.id := a->>'id';
    s := SCHEMA.told(s, a);
    PERFORM SCHEMA.empty(s.n);
    INSERT INTO SCHEMA.branches
        SELECT s.n, ord, (branch->>0)::bigint FROM jsonb_array_elements(a->'branches') WITH ORDINALITY AS b(branch, ord);
    PERFORM SCHEMA.put(s.n, ord::int, (e->>0)::bigint, e)
        FROM jsonb_array_elements(a->'branches') WITH ORDINALITY AS b(branch, ord), jsonb_array_elements(branch->1) AS e;
    PERFORM SCHEMA.put(s.n, 0, ord - 1, e) FROM jsonb_array_elements(a->'entries') WITH ORDINALITY AS m(e, ord);
    PERFORM SCHEMA.keep_segments(s.n, a->'segments'), SCHEMA.keep_pins(s.n, a->'pins');
    s.counter := a->>'counter';
    PERFORM SCHEMA.save(SCHEMA.summed(SCHEMA.recorded(s, a->'record')));
    RETURN 'true';
END $$;

CREATE OR REPLACE FUNCTION SCHEMA.sessions(k text, a jsonb) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT coalesce(json_agg(id::json ORDER BY n), '[]') FROM SCHEMA.sessions s
        WHERE id IS NOT NULL AND (a->>'owner' IS NULL OR owner = a->>'owner') AND NOT SCHEMA.is_over(s, a) AND (
            a->>'owner' IS NOT NULL OR segments > 0 OR metadata <> '[]'
            OR EXISTS (SELECT FROM SCHEMA.messages WHERE session = s.n)
            OR EXISTS (SELECT FROM SCHEMA.pins WHERE session = s.n)
        )
$$;

CREATE OR REPLACE FUNCTION SCHEMA.loaded(k text, a jsonb) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT coalesce(json_agg(id::json ORDER BY n), '[]') FROM SCHEMA.sessions s
        WHERE id IS NOT NULL AND NOT SCHEMA.is_over(s, a) AND (
            live_tokens + anchor_tokens + overhead_tokens >= (a->>'tokens')::bigint
            OR live_turns > (a->>'turns')::bigint
        )
$$;
