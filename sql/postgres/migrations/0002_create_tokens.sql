-- relay: compatible
-- Who may call the server. Only the hash of a token is kept; scopes are a JSON list.

create table tokens (
  id text primary key,
  name text not null,
  scopes text not null,
  hash text not null unique,
  created_at bigint not null,
  last_used_at bigint,
  revoked_at bigint
);
