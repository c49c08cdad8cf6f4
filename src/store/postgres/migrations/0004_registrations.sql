CREATE TABLE registration (
  id bigint PRIMARY KEY,
  registration_id text COLLATE "C" NOT NULL,
  email_digest bytea NOT NULL,
  email text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  intended_use text COLLATE "C" NOT NULL,
  tier text COLLATE "C" NOT NULL,
  by_form bigint NOT NULL,
  registered_at_s bigint NOT NULL,
  appointment_at_s bigint,
  caller_id bigint REFERENCES caller (id),
  link_sha256 bytea,
  link_expires_at_s bigint,
  claimed_at_s bigint,
  notice text COLLATE "C",
  notice_attempt text COLLATE "C",
  notice_at_s bigint,
  notice_detail text COLLATE "C",
  removed_at_s bigint
);
CREATE UNIQUE INDEX registration_registration_id_unique ON registration (registration_id);
CREATE UNIQUE INDEX registration_email_digest_unique ON registration (email_digest);
CREATE UNIQUE INDEX registration_link_sha256_unique ON registration (link_sha256);
CREATE INDEX registration_due ON registration (id) WHERE notice IS NULL;
CREATE INDEX registration_sending ON registration (id) WHERE notice = 'SENDING';
CREATE INDEX registration_by_form ON registration (id) WHERE by_form = 1;
