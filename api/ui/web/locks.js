// The view of locks, elections, semaphores, queues and groups: who holds what, and who waits for whom.
import { html, useRef, useState } from "./vendor/preact.js";
import { get } from "./api.js";
import { useRounds, useStore } from "./store.js";
import { Field, Name } from "./parts.js";
import { Unread } from "./majority.js";
import { Client, SessionLink, clients } from "./sessions.js";
import { link } from "./tree.js";
import { base, lasting, plural, when } from "./text.js";

const every = 3000, // milliseconds between two looks; longer if one takes long:
  share = 10; // the server spends a tenth of its time on them at most
const most = 500; // places
const asked = 100, // sessions whose clients are asked for in a round
  remembered = 30e3; // milliseconds that the answers are good for
const unfolded = 200; // rows of a kind

const kinds = {
  lock: ["Locks", "participant"],
  "read-write lock": ["Read-write locks", "participant"],
  semaphore: ["Semaphores", "participant"],
  election: ["Elections", "participant"],
  queue: ["Queues", "item"],
  group: ["Groups", "member"],
};

// useRecipes reads the places of a kind, again and again, and for administrators whose they are:
// {places, deadlocks, more, rows, error}, where rows are those of sessions by their ids.
function useRecipes(kind) {
  const store = useStore();
  const [result, setResult] = useState({});
  const known = useRef({ at: -Infinity });
  const round = async (signal) => {
    const begun = performance.now();
    if (begun > known.current.at + remembered) known.current = { at: begun, rows: new Map() };
    const { rows } = known.current;
    const keep = (change) => signal.aborted || setResult((r) => ({ ...r, ...change, rows }));
    try {
      const answer = await get("/v1/recipes", { kind: kind || undefined, limit: most }, signal);
      keep({ ...answer, error: null });
      const sessions = new Set(answer.places.flatMap((p) => p.first.map((u) => u.session)));
      const ids = [...sessions].filter((id) => id && !rows.has(id)).slice(0, asked);
      if (store.identity?.administrator && ids.length) {
        for (const row of await clients(ids, signal)) rows.set(row.id, row);
        keep({});
      }
    } catch (error) {
      keep({ places: null, error });
    }
    await new Promise((done) => setTimeout(done, share * (performance.now() - begun) - every));
  };
  useRounds(round, every, [kind, store.identity, store.changes]);
  return result;
}

// edges are those of a circle of sessions, who waits in it for whom, and where: [{from, to, at, ends}], where at are
// places and ends the znodes of both.
export function edges(places, circle) {
  return circle.map((from, i) => {
    const to = circle[(i + 1) % circle.length];
    const edge = { from, to, at: [], ends: [] };
    for (const { path, first } of places) {
      const waiter = first.find((u) => u.session === from && u.waits_for?.includes(to));
      const holder = first.find((u) => u.session === to && u.state === "holds");
      if (!waiter || !holder) continue;
      edge.at.push(path);
      edge.ends.push(waiter.path, holder.path);
    }
    return edge;
  });
}

export function Locks() {
  const [kind, setKind] = useState("");
  const [text, setText] = useState("");
  const { places, deadlocks = [], more, rows, error } = useRecipes(kind);
  const circles = deadlocks.map((c) => edges(places ?? [], c));
  const caught = new Set(circles.flat().flatMap((e) => e.ends));
  const shown = (places ?? []).filter((p) => p.path.includes(text.trim()));
  const contended = shown.filter((p) => p.waiting);
  const said = `${plural(shown.length, "place")}${more ? ", and more than are read" : ""}; ${contended.length ? `someone waits at ${contended.length}` : "no one waits"}`;
  const table = (users) => html`<${Users} users=${users} caught=${caught} rows=${rows} />`;
  return html`<div><section aria-label="Locks"><h1>Locks, elections, queues and groups</h1>
      <div class="form"><${Field} label="Path contains" value=${text} onInput=${setText} />
        <${Field} label="Kind" value=${kind} onInput=${setKind}
          options=${[["", "all"], ...Object.entries(kinds).map(([name, [title]]) => [name, title])]} /></div>
      <p role="status">${places ? said : error ? "" : "reading …"}</p>
      <${Unread} error=${error} />
      ${circles.map((c) => html`<p class="error" role="alert"><strong>Deadlock:</strong> ${c.map(edge)}</p>`)}
    </section>
    ${contended.map(
      (p) => html`<section key=${p.kind + p.path} class="queue" aria-label=${p.path}><h2><a href=${link(p.path)}>
        <${Name} text=${p.path} /></a> <small>${p.kind}, ${plural(p.participants, kinds[p.kind][1])},
        ${" "}${plural(p.waiting, "waits", "wait")}</small></h2>
      ${table(p.first.map((u) => ({ ...u, name: base(u.path) })))}
      ${p.more && html`<p class="note">The first ${p.first.length}.</p>`}</section>`,
    )}
    ${Object.keys(kinds).map((name) => {
      const rest = shown.filter((p) => p.kind === name && !p.waiting);
      const open = Boolean(kind || text);
      return rest.length > 0 && html`<${Fold} key=${name} kind=${name} places=${rest} open=${open} table=${table} />`;
    })}</div>`;
}

const edge = ({ from, to, at }, i) =>
  html`${i > 0 && ", "}<${SessionLink} id=${from} /> waits for <${SessionLink} id=${to} />${at.map(
    (path, j) => html`${j ? " and " : " at "}<a href=${link(path)}><${Name} text=${path} /></a>`,
  )}`;

// Fold has the places of a kind where no one waits, which are seen when it is opened.
function Fold({ kind, places, open, table }) {
  const [opened, setOpened] = useState(open);
  const [title, one] = kinds[kind];
  const users = places.flatMap((p) => p.first.map((u) => ({ ...u, name: u.path }))).slice(0, unfolded);
  const all = places.reduce((n, p) => n + p.participants, 0);
  return html`<section class="queue" aria-label=${title}><details open=${open} onToggle=${(e) => setOpened(e.target.open)}>
    <summary><h2>${title}</h2> <small>${plural(places.length, "place")}, ${plural(all, one)}</small></summary>
    ${opened && table(users)}
    ${opened && all > users.length && html`<p class="note">The first ${users.length}.</p>`}
    </details></section>`;
}

const Users = ({ users, caught, rows }) => html`<div class="wide" tabindex="0"><table class="stack"><thead><tr><th>Znode</th>
    <th>State</th><th>For</th><th>Who</th><th>Session</th><th>Waits for</th><th>Fencing token</th></tr></thead><tbody>${users.map(
      (u) => html`<tr key=${u.path} class=${caught.has(u.path) ? "caught" : ""}>
        <td class="text"><a href=${link(u.path)}><${Name} text=${u.name} /></a></td>
        <td data-label="State">${u.state}${u.read ? " to read" : ""}</td>
        <td data-label="For">${u.since && html`<span title=${when(Date.parse(u.since))}>${since(u)}</span>`}</td>
        <td data-label="Who" class="text">${u.data && html`<${Name} text=${u.data} />${" "}`}
          <${Client} of=${rows?.get(u.session)} /></td>
        <td data-label="Session" class="line">${u.session && html`<${SessionLink} id=${u.session} />`}</td>
        <td data-label="Waits for" class="line">${u.waits_for && waits(u.waits_for)}</td>
        <td data-label="Fencing token" class="line">${granted.has(u.state) && html`<code>${u.token}</code>`}</td></tr>`,
    )}</tbody></table></div>`;

const granted = new Set(["holds", "leads"]);
const since = (u) => lasting(Date.now() - Date.parse(u.since));
const waits = ([first, ...others]) =>
  html`<${SessionLink} id=${first} />${others.length > 0 && ` and ${others.length} more`}`;
