// The view of sessions and watches.
import { html, useState } from "./vendor/preact.js";
import { everywhere, get, znode } from "./api.js";
import { done, usePoll, useStore, useAsync, mayWrite } from "./store.js";
import { Ask, Failure, Failures, Field, Name, open } from "./parts.js";
import { Expired } from "./expired.js";
import { link } from "./tree.js";
import { ago, contains, names, plural, when, who } from "./text.js";

const first = 100, // sessions that are shown at first
  all = 10_000, // and that are looked at with a filter,
  drawn = 1000; // of which these are shown
const page = 1000; // sessions in an answer
const every = 5000, // milliseconds between two looks, and
  seldom = 30e3; // of all of them

const time = (text) => when(Date.parse(text));
const order = (a, b) => a.id.length - b.id.length || (a.id < b.id ? -1 : 1);

// merge makes one list of the rows of all servers: what the one has that carries a session is the most.
export function merge(lists) {
  const found = new Map();
  for (const row of lists.flat()) if (!found.get(row.id)?.last_heard) found.set(row.id, row);
  return [...found.values()].sort(order);
}

// clients are the rows of some sessions, at most 100, with what the servers know that carry them.
export async function clients(ids, signal) {
  const pages = await everywhere((server) => get("/v1/sessions", { server, id: ids }, signal), signal);
  return merge(pages.map((p) => p.sessions ?? []));
}

// read reads the first sessions of all servers.
async function read(most, signal) {
  const pages = await everywhere(async (server) => {
    const sessions = [];
    let after, total;
    do {
      const next = await get("/v1/sessions", { server, after, limit: Math.min(most, page) }, signal);
      sessions.push(...next.sessions);
      [after, total] = [next.next, next.total];
    } while (after && sessions.length < most);
    return { sessions, total, more: Boolean(after) };
  }, signal);
  const rows = merge(pages.map((p) => p.sessions ?? []));
  const total = Math.max(rows.length, ...pages.map((p) => p.total ?? 0));
  return { pages, rows, total, more: pages.some((p) => p.more) };
}

export const SessionLink = ({ id, current }) =>
  html`<a href=${"#/sessions/" + id} aria-current=${current ? "true" : undefined}><code>${id}</code></a>`;

// Client says who the client of a session is, as far as its server tells.
export const Client = ({ of }) => of?.address && html`<small><${Name} text=${whose(of)} /></small>`;

// whose says it in words.
export const whose = ({ address, identities }) => [...names(identities), address].filter(Boolean).join(", ");

const matches = (s, text) => contains([s.id, `server ${s.server}`, whose(s)], text);

export function Sessions({ id }) {
  const store = useStore();
  const [text, setText] = useState("");
  const [wide, setWide] = useState(false);
  const most = wide || text.trim() ? all : first;
  const pause = most === first ? every : seldom;
  const { value, error } = usePoll((signal) => read(most, signal), pause, [most, store.identity, store.changes]);
  const found = value?.rows.filter((s) => matches(s, text)) ?? [];
  const said = value && `${text.trim() ? `${found.length.toLocaleString("en")} of ` : ""}${plural(value.total, "session")}`;
  return html`<div class=${id ? "halves chosen" : ""}>
    <section aria-label="Sessions"><h1>Sessions</h1>
      <div class="tools"><label class="field inline"><span>Filter</span><input placeholder="id, client or server"
        value=${text} onInput=${(e) => setText(e.target.value)} spellcheck="false" /></label>
      <span role="status">${said ?? "reading …"}</span></div>
      ${value && !store.identity?.administrator && html`<p class="note">Administrators see whose they are.</p>`}
      <${Failure} error=${error} /><${Failures} of=${value?.pages} />
      <div class="wide" tabindex="0"><table class="stack"><thead><tr><th>Session</th><th>Client</th><th>Last heard</th>
        <th>Server</th><th>Timeout</th><th>Ephemerals</th></tr></thead><tbody>${found.slice(0, most === first ? first : drawn).map(
          (s) =>
            html`<tr key=${s.id}><td><${SessionLink} id=${s.id} current=${s.id === id} /></td>
            <td data-label="Client" class="text"><${Name} text=${whose(s) || "–"} /></td>
            <td data-label="Last heard">${s.last_heard ? ago(Date.parse(s.last_heard)) : "–"}</td>
            <td data-label="Server">${s.server < 0 ? "–" : s.server}${s.local ? " (local)" : ""}</td>
            <td data-label="Timeout">${s.timeout}</td><td data-label="Ephemerals">${s.ephemerals}</td></tr>`,
        )}</tbody></table></div>
      ${found.length > drawn && html`<p class="note">The first ${drawn.toLocaleString("en")}: filter them.</p>`}
      ${text.trim() && value?.more && html`<p class="note">Of the first ${all.toLocaleString("en")} sessions.</p>`}
      ${most === first && value?.more && html`<button onClick=${() => setWide(true)}>More</button>`}
    </section>
    ${id && html`<${Session} key=${id} id=${id} />`}</div><${Watchers} /><${Expired} />`;
}

function Session({ id }) {
  const store = useStore();
  // What every server knows says which one to ask for the rest.
  const { value: s, error } = useAsync(
    async (signal) => {
      const known = await get(`/v1/sessions/${id}`, {}, signal);
      try {
        return { ...(await get(`/v1/sessions/${id}`, { server: known.server }, signal)), asked: known.server };
      } catch (failure) {
        return { ...known, failure };
      }
    },
    [id, store.identity, store.changes],
  );
  const c = s?.connection;
  const close = () =>
    open(html`<${Ask} title=${`End session ${id}`} action="End it" danger
    what=${html`This ends the session at once: ${plural(s.ephemerals, "ephemeral znode")} will be deleted, and its client is told that its session has expired. Only an administrator may.`}
    request=${() => ({ method: "DELETE", path: `/v1/sessions/${id}`, query: { force: true } })}
    then=${() => done(`Session ${id} is ended.`)} />`);
  return html`<section aria-label="Session"><h1><code>${id}</code></h1><${Failure} error=${error ?? s?.failure} server=${s?.server} />${
    s &&
    html`
    <p class="buttons"><button disabled=${!mayWrite(store) || error || s.local} onClick=${close}>End this session</button></p>
    <dl><dt>Timeout</dt><dd>${s.timeout}</dd><dt>Server</dt><dd>${s.server}${s.local && ", which alone knows it"}</dd>
      ${
        c &&
        html`<dt>Client</dt><dd>${c.address ?? "shown to administrators"}</dd><dt>Identity</dt><dd>${c.identities.map(who).join("; ") || "none that is yours"}</dd>
      <dt>Connected since</dt><dd>${time(c.established)}</dd><dt>Last heard</dt><dd>
        ${c.last_heard ? ago(Date.parse(c.last_heard)) : "not yet"}</dd>
      <dt>Requests in progress</dt><dd>${c.outstanding}</dd>`
      }</dl>
    ${!c && !s.failure && html`<p
      class="note">It has no connection to the ZooKeeper port now: its client uses HTTP, or is on its way to another server.</p>`}
    <h2>Ephemeral znodes</h2>${s.paths.length ? html`<ul>${s.paths.map((p) => html`<li><a href=${link(p)}>
      <${Name} text=${p} /></a></li>`)}</ul>` : html`<p class="note">None that you may see, of ${s.ephemerals}.</p>`}
    ${c && html`<h2>Watches</h2>${c.watches.length ? html`<ul>${c.watches.map((w) => html`<li><a href=${link(w.path)}>
      <${Name} text=${w.path} /></a> <small>${w.kinds.join(", ")}</small></li>`)}
      </ul>` : html`<p class="note">None that you may see.</p>`}`}
    ${s.more && html`<p class="note">There are more than are listed here.</p>`}`
  }</section>`;
}

// Watchers asks all servers who watches a path.
function Watchers() {
  const [path, setPath] = useState("/");
  const [rows, setRows] = useState(null);
  const [error, setError] = useState(null);
  const look = async (event) => {
    event.preventDefault();
    setError(null);
    try {
      setRows(await everywhere((server) => get(znode(path, "watchers"), { server })));
    } catch (e) {
      setError(e);
    }
  };
  return html`<section aria-label="Watches"><h1>Who watches a path</h1><form class="form" onSubmit=${look}>
      <${Field} label="Path" value=${path} onInput=${setPath} /><button class="main">Ask all servers</button></form>
    <${Failure} error=${error} />
    <div role="status">${
      rows &&
      html`<${Failures} of=${rows} />
      <p>${plural(
        rows.reduce((n, r) => n + (r.watchers?.length ?? 0), 0),
        "session",
      )}${rows.some((r) => r.more) ? " and more" : ""}</p>
      <ul class="plain">${rows.flatMap(({ id, watchers = [] }) =>
        watchers.map(
          (w) => html`<li><a href=${"#/sessions/" + w.session}><code>${w.session}</code></a>${" at server "}${id} <small>${w.kinds.join(", ")}</small></li>`,
        ),
      )}</ul>`
    }</div></section>`;
}
