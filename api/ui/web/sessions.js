// The view of sessions and watches.
import { html, useState } from "./vendor/preact.js";
import { everywhere, get, znode } from "./api.js";
import { done, readAgain, useStore, useAsync, mayWrite } from "./store.js";
import { Ask, Failure, Failures, Field, Name, open } from "./parts.js";
import { Expired } from "./expired.js";
import { link } from "./tree.js";
import { plural, when, who } from "./text.js";

const time = (text) => when(Date.parse(text));

export function Sessions({ id }) {
  const store = useStore();
  const [pages, setPages] = useState([""]);
  const list = useAsync(
    async (signal) => {
      const all = await Promise.all(pages.map((after) => get("/v1/sessions", { after: after || undefined }, signal)));
      return { sessions: all.flatMap((p) => p.sessions), total: all[0].total, next: all.at(-1).next };
    },
    [pages.join(), store.changes],
  );
  const { sessions = [], total = 0, next } = list.value ?? {};
  return html`<div class="halves">
    <section aria-label="Sessions"><h1>Sessions</h1><p>
      ${plural(total, "session")} <button onClick=${readAgain}>Read again</button></p>
      <${Failure} error=${list.error} />
      <div class="wide" tabindex="0"><table><thead><tr><th>Session</th><th>Server</th><th>Timeout</th>
        <th>Ephemerals</th></tr></thead><tbody>${sessions.map(
        (s) =>
          html`<tr key=${s.id}><td><a href=${"#/sessions/" + s.id} aria-current=${s.id === id ? "true" : undefined}>
            <code>${s.id}</code></a></td><td>${s.server}${s.local && " (local)"}</td><td>${s.timeout}</td><td>${s.ephemerals}</td></tr>`,
      )}</tbody></table></div>
      ${next && html`<button onClick=${() => setPages([...pages, next])}>More</button>`}
    </section>
    <div>${id && html`<${Session} key=${id} id=${id} />`}<${Watchers} /></div></div><${Expired} />`;
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
        ${c.last_heard ? time(c.last_heard) : "not yet"}</dd>
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
