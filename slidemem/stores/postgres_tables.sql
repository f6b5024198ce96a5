-- Version 1: the tables. "SCHEMA." is replaced by the store's own schema.
--
-- A session's row is small and half of its page is left free, since every append writes it anew in its place: the
-- record stands in a table of its own. Of a cleared session the row is left for a day, with the digest of its id and its
-- revision and nothing else.

CREATE FUNCTION SCHEMA.today() RETURNS int LANGUAGE sql STABLE AS $$
    SELECT floor(extract(epoch FROM now()) / 86400)::int
$$;

CREATE TABLE SCHEMA.sessions(
    n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key text NOT NULL UNIQUE,
    id text,
    owner text,
    epoch bigint NOT NULL,
    revision bigint NOT NULL DEFAULT 0,
    boundary bigint NOT NULL DEFAULT 0,
    segments bigint NOT NULL DEFAULT 0,
    next_seq bigint NOT NULL DEFAULT 0,
    live_tokens bigint NOT NULL DEFAULT 0,
    live_turns bigint NOT NULL DEFAULT 0,
    anchor_tokens bigint NOT NULL DEFAULT 0,
    overhead_tokens bigint NOT NULL DEFAULT 0,
    counter text NOT NULL DEFAULT '""',
    record_anchor bigint NOT NULL DEFAULT 0,
    record_overhead bigint NOT NULL DEFAULT 0,
    anchor_counter text,
    holder text,
    until float8,
    metadata text NOT NULL DEFAULT '[]',
    written timestamptz NOT NULL DEFAULT now(),
    day int NOT NULL DEFAULT SCHEMA.today()
) WITH (fillfactor = 50);
CREATE INDEX sessions_by_owner ON SCHEMA.sessions(owner) WHERE owner IS NOT NULL;
CREATE INDEX sessions_by_day ON SCHEMA.sessions(day);

CREATE TABLE SCHEMA.records(
    session bigint PRIMARY KEY,
    record json NOT NULL
);

CREATE TABLE SCHEMA.messages(
    session bigint NOT NULL,
    branch int NOT NULL,
    seq bigint NOT NULL,
    host_key text,
    host_id text NOT NULL,
    digest text NOT NULL,
    role text NOT NULL,
    shown_digest text NOT NULL,
    tokens bigint NOT NULL,
    counter text NOT NULL,
    body json NOT NULL,
    PRIMARY KEY (session, branch, seq)
);
CREATE INDEX messages_by_host ON SCHEMA.messages(session, host_key, seq) WHERE branch = 0 AND host_key IS NOT NULL;

CREATE TABLE SCHEMA.branches(
    session bigint NOT NULL,
    branch int NOT NULL,
    revision bigint NOT NULL,
    PRIMARY KEY (session, branch)
);

CREATE TABLE SCHEMA.segments(
    n bigint GENERATED ALWAYS AS IDENTITY,
    session bigint NOT NULL,
    name text NOT NULL,
    segment json NOT NULL,
    PRIMARY KEY (session, name)
);

CREATE TABLE SCHEMA.pins(
    n bigint GENERATED ALWAYS AS IDENTITY,
    session bigint NOT NULL,
    name text NOT NULL,
    pin json NOT NULL,
    PRIMARY KEY (session, name)
);

CREATE TABLE SCHEMA.documents(
    session bigint NOT NULL,
    seq bigint NOT NULL,
    document json NOT NULL,
    terms jsonb NOT NULL,
    upto bigint NOT NULL,
    PRIMARY KEY (session, seq)
);

CREATE TABLE SCHEMA.postings(
    session bigint NOT NULL,
    term text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    count int NOT NULL,
    nth bigint NOT NULL,
    PRIMARY KEY (session, term, seq)
);
