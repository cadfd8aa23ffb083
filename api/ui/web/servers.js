// What each server says of itself: one source for all views, so that each server is asked once.
import { get, readiness, send } from "./api.js";
import { shared } from "./store.js";

// rows are what each server says, as soon as it does: [{id}, {id, m, ready}, {id, error}, ...]. before is what the
// leader had applied in the round before. error: the page's own server does not answer.
const servers = shared({ rows: [], error: null, before: 0 });
export const useServers = servers.use;

// metrics are a server's, by name and labels: {"raft_term": 3, 'zk_lite_info{version="1"}': 1}.
export async function metrics(server, signal) {
  const text = await get("/metrics", { server }, signal);
  return Object.fromEntries(
    text
      .split("\n")
      .filter((l) => l && l[0] !== "#")
      .map((l) => [l.slice(0, l.lastIndexOf(" ")), number(l.slice(l.lastIndexOf(" ") + 1))]),
  );
}

// number is exact for integers, too.
const number = (text) => (/^-?\d{16,}$/.test(text) ? BigInt(text) : Number(text));

export const label = (m, name, key) =>
  Object.keys(m)
    .map((k) => new RegExp(`^${name}\\{.*${key}="([^"]*)"`).exec(k)?.[1])
    .find(Boolean);
export const halt = (m) => label(m, "halt_reason", "reason");
export const role = (m) => label(m, "raft_role", "role");
export const leads = ({ m }) => m && ["leader", "standalone"].includes(role(m));

const applied = (rows) => Number(rows.find(leads)?.m.raft_applied_index ?? 0);

// round asks all servers.
export async function round(signal) {
  const put = (row) => servers.set({ rows: servers.state.rows.map((r) => (r.id === row.id ? row : r)) });
  const ask = async (id) => {
    const ready = readiness(id, signal).catch(() => null);
    const row = await metrics(id, signal).then(
      async (m) => ({ id, m, ready: await ready }),
      (error) => ({ id, error }),
    );
    if (!signal.aborted) put(row);
  };
  try {
    const { body, headers } = await send({ path: "/v1/servers" }, signal);
    // The page's own may have been removed.
    const ids = [...new Set([...body.servers.map(({ id }) => id), Number(headers.get("Zk-Server"))])];
    const { rows } = servers.state;
    servers.set({ rows: ids.map((id) => rows.find((r) => r.id === id) ?? { id }), error: null, before: applied(rows) });
    await Promise.all(ids.map(ask));
  } catch (error) {
    if (!signal.aborted) servers.set({ rows: [], error });
  }
}

// disks are the rooms on a server's disks, in bytes.
export const disks = (m) =>
  Object.keys(m)
    .filter((k) => k.startsWith("disk_free_bytes"))
    .map((k) => Number(m[k]));

// lag is how many entries a server is behind where the leader was a round ago.
export const lag = (m, before) => Math.max(0, before - Number(m.raft_applied_index));

// election is the last one that these servers know of, with the least bound of how long nobody was served, in
// milliseconds: {at, outage}.
export function election(rows) {
  const term = Math.max(...rows.map(({ m }) => m?.raft_term ?? 0));
  const seen = rows.filter(({ m }) => m?.raft_term === term && m.election_last_timestamp_seconds > 0).map(({ m }) => m);
  if (!seen.length) return null;
  const least = seen.reduce((a, b) => (a.election_last_outage_seconds < b.election_last_outage_seconds ? a : b));
  return { at: 1000 * least.election_last_timestamp_seconds, outage: 1000 * least.election_last_outage_seconds };
}
