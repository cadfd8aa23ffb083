// How the ensemble stands, from what the servers say of themselves: for the state in the header, the overview and the
// banner. The bounds are those of the alerts for Prometheus (packaging/prometheus/alerts.yml).
import { useEffect } from "./vendor/preact.js";
import { disks, halt, label, lag, leads, role, round, useServers } from "./servers.js";
import { lost, useRounds, useStore } from "./store.js";
import { bytes, plural } from "./text.js";

const often = 3000, // milliseconds between two rounds where servers are shown, or something is the matter
  seldom = 10_000;
const day = 86400; // seconds
const far = 1000; // entries of lag

// checks are what /readyz?verbose finds: what is wrong, and what to do.
const checks = {
  formed: [
    "waits to form or join the ensemble",
    "All voters have to be up at the first start; a new server is let in by `zk-lite member add`.",
  ],
  not_draining: ["is drained: it takes no clients", "Stop it, or let it serve again: `zk-lite drain ID --undo`."],
  leader: ["knows no leader", "Start the others: a majority of the voters has to be up."],
  majority: ["has no contact with a majority", "Start the others: a majority of the voters has to be up."],
  disk: ["cannot write to its disk", "Make room, or replace the disk; the server goes on by itself."],
  data: ["has lost its data directory", "Put it back, or take a backup now: `zk-lite backup`."],
  progress: ["applies nothing, though requests wait", "Look at the disks of a majority of the servers."],
  memory: ["refuses writes: its tree is full", "Delete znodes, or give all servers more memory."],
  self_check: ["differs from others", "Back up from each server: `zk-lite backup`; `zk-lite doctor` says more."],
  snapshot: ["cannot write snapshots: its log grows", "Make room; its log says why."],
  disk_space: ["has a disk that is nearly full", "Remove other files, or enlarge the disk."],
  backup: ["could not take its scheduled backup", "Its log says why; take one by hand: `zk-lite backup`."],
  certificate: ["has an expired certificate, or cannot use its new one", "Issue one: `zk-lite tls issue`."],
  peer_certificate: [
    "has an expired certificate for other servers, or cannot use its new one",
    "Issue one: `zk-lite tls issue`.",
  ],
  mirror: ["does not mirror ZooKeeper now", "`zk-lite mirror status` says why."],
};

const ofLeader = ["leader", "majority", "progress"]; // checks that fail everywhere where nobody leads

const need = (id, text, advice, detail) => ({ id, text: `server ${id} ${text}.`, advice, detail });

// ofServer is what needs attention at one server.
function ofServer({ id, m, ready, error }, before, led) {
  const lost = led ? ` If it is lost for good: \`zk-lite member remove ${id}\`.` : "";
  if (error) return [need(id, "does not answer", "Start it." + lost, error.reason ?? error.message)];
  if (!m) return [];
  if (m.halted)
    return [need(id, `has halted: ${halt(m)}`, "`zk-lite doctor`, on its machine, says what to do.", ready?.reason)];
  const failed = (ready?.checks ?? []).filter(({ name, ok }) => !ok && (led || !ofLeader.includes(name)));
  const all = failed.map(({ name, detail }) => {
    const [text, advice] = checks[name] ?? [`fails the check ${name}`, "`zk-lite doctor`, on its machine, says more."];
    return need(id, text, advice.replace("ID", id), detail);
  });
  const has = (name) => failed.some((c) => c.name === name);
  const room = Math.min(...disks(m));
  if (room < 2 ** 30 + 2 * m.tree_memory_bytes && !has("disk_space"))
    all.push(
      need(id, `has ${bytes(room)} of disk left, and needs room for a log and two snapshots`, checks.disk_space[1]),
    );
  if (m.tree_memory_limit_bytes > 0 && m.tree_memory_bytes > 0.8 * m.tree_memory_limit_bytes && !has("memory"))
    all.push(need(id, "has used more than 80 % of the memory for its tree", checks.memory[1]));
  for (const [whose, name, check] of [
    ["clients", "tls_certificate_expiry_seconds", "certificate"],
    ["other servers", "tls_peer_certificate_expiry_seconds", "peer_certificate"],
  ])
    if (m[name] < 14 * day && !has(check))
      all.push(
        need(
          id,
          `has a certificate for ${whose} that expires in ${plural(Math.floor(m[name] / day), "day")}`,
          checks[check][1],
        ),
      );
  const entries = lag(m, before);
  if (entries > far)
    all.push(
      need(
        id,
        `is ${plural(entries, "entry", "entries")} behind the leader`,
        "It catches up by itself; if not, look at its disk and its network.",
      ),
    );
  return all;
}

// needs is what needs attention: [{id, text, advice, detail}, ...], without an id if it is about all servers.
function needs(rows, before) {
  const led = rows.some(leads);
  const all = rows.flatMap((row) => ofServer(row, before, led));
  const up = rows.filter(({ m }) => m).map(({ m }) => m);
  const versions = [...new Set(up.map((m) => label(m, "zk_lite_info", "version")))];
  if (versions.length > 1)
    all.push({
      text: `an upgrade is under way: servers run ${versions.join(" and ")}.`,
      advice: "`zk-lite upgrade status` says what is next.",
    });
  const backup = lastBackup(rows);
  if (backup && Date.now() / 1000 - backup > 2 * day)
    all.push({ text: "the last backup is older than two days.", advice: "Take one: `zk-lite backup`." });
  return all;
}

// lastBackup is when the last good one was begun, in seconds since 1970; 0: none is known.
export const lastBackup = (rows) => Math.max(0, ...rows.map(({ m }) => m?.backup_last_success_timestamp_seconds ?? 0));

// outage says why nobody leads: who is silent, who has halted and why, and whether a majority is missing for that. It is
// null while somebody serves, or not all have been asked.
export function outage(rows) {
  const up = rows.filter(({ m }) => m);
  if (!up.length || rows.some(({ m, error }) => !m && !error) || up.some((r) => leads(r) || r.m.serving)) return null;
  const voters = Math.max(...up.map(({ m }) => m.quorum_size ?? 1));
  const left = up.filter(({ m }) => role(m) !== "observer" && !m.halted).length;
  return {
    silent: rows.filter(({ error }) => error).map(({ id }) => id),
    halted: up.filter(({ m }) => m.halted).map(({ id, m }) => [id, halt(m)]),
    missing: 2 * left <= voters,
  };
}

const list = (ids) => (ids.length < 2 ? ids.join() : `${ids.slice(0, -1).join(", ")} and ${ids.at(-1)}`);

// why says why nobody leads, and what to do.
function why(o) {
  if (!o) return "No majority: this server has no contact with one.";
  const { silent, halted, missing } = o;
  const one = silent.length === 1;
  const who = silent.length > 0 && `server${one ? "" : "s"} ${list(silent)} ${one ? "does" : "do"} not answer`;
  if (halted.length)
    return `No majority: ${halted.map(([id, reason]) => `server ${id} has halted (${reason}), `).join("")}${who || "and nobody leads"}. \`zk-lite doctor\` says what to do.`;
  if (missing && who)
    return `No majority: ${who}. Start ${one ? "it; if it is" : "them; if they are"} lost for good: \`zk-lite recover\`.`;
  return `No leader: ${who ? `${who}, and the others` : "all servers answer, and"} have elected none. If it stays so, \`zk-lite doctor\` says more.`;
}

// useHealth is how the ensemble stands: {level: "good" | "warn" | "bad" | "none", word, text, needs}, where commands in
// text stand between backquotes, and needs are what needs attention.
export function useHealth() {
  const { majority } = useStore();
  const { rows, error, before } = useServers();
  if (error?.status) return { level: "none", word: "Not known", text: error.message, needs: [] };
  if (error) return { level: "bad", word: "No answer", text: error.message, needs: [] };
  const o = outage(rows);
  const all = needs(rows, before);
  if (!majority || o) return { level: "bad", word: "Not serving", text: why(o), needs: all };
  const leader = rows.find(leads);
  if (!leader || rows.some(({ m, error }) => !m && !error))
    return { level: "none", word: "Asking", text: "Asking all servers …", needs: all };
  const left = leader.m.failures_tolerated_now ?? 0;
  const may = left ? `${plural(left, "more server")} may fail.` : "no other server may fail.";
  if (all.length) {
    const more = all.length > 1 ? ` ${plural(all.length - 1, "other thing")} to look at.` : "";
    return { level: "warn", word: "Degraded", text: `Serving, but ${all[0].text}${more} Now ${may}`, needs: all };
  }
  const up =
    rows.length > 1 ? `all ${rows.length} servers are up, and ${left || "none"} may fail.` : "one server, alone.";
  return { level: "good", word: "Healthy", text: `Serving: ${up}`, needs: all };
}

// Watch asks all servers again and again, for all views; shown: the view shows what they say.
export function Watch({ shown }) {
  const { changes, majority } = useStore();
  const { rows, error } = useServers();
  const calm = majority && !error && rows.every((r) => !r.error);
  useRounds(round, shown || !calm ? often : seldom, [shown || !calm, changes]);
  useEffect(() => {
    if (outage(rows)?.missing) lost();
  }, [rows]);
}
