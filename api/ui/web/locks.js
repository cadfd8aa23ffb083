// The view of locks, elections, queues and groups, which are known by the names of their znodes.
import { html } from "./vendor/preact.js";
import { get, znode } from "./api.js";
import { readAgain, useStore, useAsync } from "./store.js";
import { Name } from "./parts.js";
import { Unread } from "./majority.js";
import { link } from "./tree.js";
import { base, parent, plural, when } from "./text.js";

// What stands before the number in the names: Curator's, kazoo's and ours (internal/curator). read may be held together.
const markers = [
  ["lock-", "Lock"],
  ["__lock__", "Lock"],
  ["__WRIT__", "Read-write lock"],
  ["__READ__", "Read-write lock", "read"],
  ["__rlock__", "Read-write lock", "read"],
  ["latch-", "Election"],
  ["lease-", "Semaphore"],
  ["queue-", "Queue"],
  ["entry-", "Queue"],
];
const most = 5000; // znodes that are looked for

// queues finds what there is: [{path, kind, waiters: [{path, name, number, session, since, token, read}]}].
async function queues(signal) {
  const found = new Map();
  let more = false;
  // What is ephemeral, and the items of queues, which are not.
  for (const query of [{ owner: "any" }, { name: markers.filter(([, kind]) => kind === "Queue").map(([m]) => m) }]) {
    let after,
      n = 0;
    do {
      const page = await get("/v1/search/", { ...query, limit: 1000, after }, signal);
      for (const z of page.found) add(found, z);
      n += page.found.length;
      after = page.next;
    } while (after && n < most);
    more ||= Boolean(after);
  }
  const all = [...found.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  for (const q of all)
    q.waiters.sort((a, b) => (q.kind === "Group" ? (a.path < b.path ? -1 : 1) : (a.number - b.number) | 0)); // RFC 1982, as the recipes compare
  return { queues: all, more };
}

// add puts a znode into the queue that its parent is. An ephemeral one without such a name is a member of a group.
function add(found, { path, stat }) {
  const name = base(path);
  const number = (marker) => /^(\d{10}|-\d{9,10})$/.exec(name.slice(name.lastIndexOf(marker) + marker.length))?.[0];
  const [marker, kind, read] = markers.find(([m]) => name.includes(m) && number(m)) ?? ["", "Group"];
  if (kind !== "Queue" && stat.ephemeralOwner === "0x0") return;
  const dir = parent(path),
    key = `${kind} ${dir}`;
  if (!found.has(key)) found.set(key, { path: dir, kind, waiters: [] });
  const q = found.get(key);
  q.waiters.push({
    path,
    number: marker ? Number(number(marker)) : 0,
    session: stat.ephemeralOwner,
    since: stat.ctime,
    token: BigInt(stat.czxid).toString(),
    read: read === "read",
  });
}

// blockers are those for whom the i-th waits.
function blockers({ kind, waiters }, i) {
  if (["Queue", "Semaphore", "Group"].includes(kind)) return [];
  return waiters.slice(0, i).filter((w) => !(w.read && waiters[i].read));
}

// deadlocks finds circles of sessions that wait for each other in locks: [[session, session, ...], ...].
export function deadlocks(all) {
  const waits = new Map();
  for (const q of all.filter(({ kind }) => kind !== "Election")) {
    q.waiters.forEach((w, i) => {
      const others = blockers(q, i)
        .map((b) => b.session)
        .filter((s) => s !== w.session);
      if (others.length) waits.set(w.session, new Set([...(waits.get(w.session) ?? []), ...others]));
    });
  }
  const circles = new Map();
  for (const from of waits.keys()) {
    const seen = new Set(),
      way = (at, path) => {
        for (const next of waits.get(at) ?? []) {
          if (next === from) return path;
          if (seen.has(next)) continue;
          seen.add(next);
          const found = way(next, [...path, next]);
          if (found) return found;
        }
        return null;
      };
    const circle = way(from, [from]);
    if (circle) circles.set([...circle].sort().join(), circle);
  }
  return [...circles.values()];
}

const Session = ({ id }) => html`<a href=${"#/sessions/" + id}><code>${id}</code></a>`;

export function Locks() {
  const store = useStore();
  const { value, error, loading } = useAsync(queues, [store.changes, store.identity]);
  const all = value?.queues ?? [];
  const circles = deadlocks(all),
    caught = new Set(circles.flat());
  return html`<div><section aria-label="Locks"><h1>Locks, elections, queues and groups</h1>
      <p role="status">${loading ? "reading …" : error ? "" : `${plural(all.length, "place")}${value?.more ? " of more" : ""}, known by the names of Curator's, kazoo's and zk-lite's recipes `}
        <button onClick=${readAgain}>Read again</button></p>
      <${Unread} error=${error} />
      ${circles.map((c) => html`<p class="error" role="alert">
        <strong>Deadlock:</strong> ${c.map((s) => html`<${Session} id=${s} /> waits for `)}<${Session} id=${c[0]} />
        </p>`)}
    </section>
    ${all.map(
      (
        q,
      ) => html`<section key=${q.kind + q.path} class="queue" aria-label=${q.path}><h2><a href=${link(q.path)}>
        <${Name} text=${q.path} /></a> <small>
        ${q.kind}, ${plural(q.waiters.length, { Queue: "item", Group: "member" }[q.kind] ?? "participant")}</small></h2>
      <div class="wide" tabindex="0"><table><thead><tr><th>Place</th><th>Session</th><th>Since</th>
        <th>Fencing token</th><th>Znode</th></tr></thead><tbody>${q.waiters
        .slice(0, 100)
        .map(
          (w, i) => html`<tr key=${w.path} class=${caught.has(w.session) ? "caught" : ""}>
        <td>${place(q, i)}</td><td>${w.session === "0x0" ? "–" : html`<${Session} id=${w.session} />`}</td><td>
          ${when(w.since)}</td><td><code>${w.token}</code></td><td><a href=${link(w.path)}>
          <${Name} text=${base(w.path)} /></a></td></tr>`,
        )}</tbody></table></div>
      ${q.waiters.length > 100 && html`<p class="note">The first 100.</p>`}</section>`,
    )}</div>`;
}

function place(q, i) {
  if (q.kind === "Queue") return `item ${i + 1}`;
  if (q.kind === "Group") return "member";
  const n = blockers(q, i).length;
  if (n === 0) return q.kind === "Election" ? "leads" : "holds it";
  return `waits behind ${n}`;
}
