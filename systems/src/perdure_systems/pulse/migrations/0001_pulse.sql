-- A document as it was handed in. Its job has the state; `job_id` is that job.
CREATE TABLE IF NOT EXISTS pulse_document (
    id text PRIMARY KEY,
    job_id text NOT NULL,
    source text NOT NULL,
    handler text NOT NULL,
    title text NOT NULL,
    body text NOT NULL,
    submitted_at timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS pulse_document_job ON pulse_document (job_id);

-- A piece of a document, and what the model wants for it: estimated before the call, actual after it.
CREATE TABLE IF NOT EXISTS pulse_chunk (
    document text NOT NULL REFERENCES pulse_document (id) ON DELETE CASCADE,
    number integer NOT NULL,
    body text NOT NULL,
    estimated double precision NOT NULL,
    actual double precision,
    asked_at timestamptz,
    PRIMARY KEY (document, number)
);
CREATE INDEX IF NOT EXISTS pulse_chunk_asked ON pulse_chunk (asked_at);

-- What came out of a document.
CREATE TABLE IF NOT EXISTS pulse_result (
    document text PRIMARY KEY REFERENCES pulse_document (id) ON DELETE CASCADE,
    summary text NOT NULL,
    topics text NOT NULL,
    chunks integer NOT NULL,
    failed integer NOT NULL,
    cost double precision NOT NULL,
    finished_at timestamptz NOT NULL
);

-- Limits that an operator has set while the system runs; a missing row means those of the environment.
CREATE TABLE IF NOT EXISTS pulse_limit (
    name text PRIMARY KEY,
    value double precision NOT NULL,
    set_by text NOT NULL,
    set_at timestamptz NOT NULL
);
