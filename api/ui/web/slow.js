// The requests that were slow, with the stages of their way.
import { html, useState } from "./vendor/preact.js";
import { everywhere, get } from "./api.js";
import { useStore, useAsync } from "./store.js";
import { Failure, Failures, Name } from "./parts.js";
import { link } from "./tree.js";
import { plural, millis, when } from "./text.js";

const first = 50, // requests that are shown before "More"
  most = 1000; // that each server remembers

// The stages of the leader's part, which other servers know as one, and all stages in their order, in words.
const leaders = ["propose", "disk", "majority"];
const stages = {
  queue: "until it was sent to the leader; all of a read",
  leader: "to the leader and back, and the leader's part",
  propose: "until the leader proposed it",
  disk: "until the leader's disk had it",
  majority: "until a majority's disks had it",
  network: "to the leader and back",
  apply: "until the server had applied it",
  reply: "until the client had taken the reply",
};

// divide divides a request's stage "leader" by what the leader of that time knows: pages are each server's slow entries.
// What the leader does not list took it a quarter of the threshold at most.
export function divide(request, pages) {
  const { leader = 0, ...own } = request.stages_ms;
  const entries = pages.flatMap((p) => p.items ?? []);
  const entry = entries.find((e) => e.index === request.index && e.term === request.term);
  if (!leader || !(entry || pages.some((p) => p.leads_term === request.term))) return request;
  let left = leader;
  if (entry) {
    for (const s of leaders) {
      own[s] = Math.min(entry.stages_ms[s], left);
      left -= own[s];
    }
  }
  own.network = left;
  const longest = [...leaders, "network"].reduce((a, b) => (own[b] > (own[a] ?? 0) ? b : a));
  return { ...request, stages_ms: own, cause: request.cause === "leader" ? longest : request.cause };
}

async function read(limit, signal) {
  const page = (path) => everywhere((server) => get(path, { server, limit }, signal), signal);
  const [requests, entries] = await Promise.all([page("/v1/slow/requests"), page("/v1/slow/entries")]);
  const all = requests.flatMap(({ id, items = [] }) =>
    items.map((r) => ({ ...divide(r, entries), server: id, key: `${id} ${r.id}` })),
  );
  return { pages: requests, all: all.sort((a, b) => Date.parse(b.at) - Date.parse(a.at)) };
}

export function Slow() {
  const store = useStore();
  const [limit, setLimit] = useState(first);
  const administrator = store.identity?.administrator;
  const { value, error } = useAsync(
    (signal) => (administrator ? read(limit, signal) : Promise.resolve(null)),
    [limit, store.identity, store.changes],
  );
  const threshold = value?.pages.find((p) => p.threshold_ms)?.threshold_ms;
  const more = limit < most && value?.pages.some((p) => p.next);
  return html`<section aria-label="Slow requests"><h1>Slow requests</h1>
    ${!administrator && html`<p class="note">Log in as an administrator to see them.</p>`}
    <${Failure} error=${error} /><${Failures} of=${value?.pages} />
    ${
      value &&
      html`<p role="status">${plural(value.all.length, "request")}${more ? " and more" : ""}${
        threshold ? ` that took ${millis(threshold)} or longer` : ""
      }</p><div class="wide" tabindex="0"><table id="slow"><thead><tr><th>Came</th><th>Server</th><th>Took</th><th>Cause</th>
      <th>Operation</th><th>Stages</th><th>Client</th></tr></thead><tbody>${value.all.map(
        (r) => html`<tr key=${r.key}><td>${when(Date.parse(r.at))}</td><td>${r.server}</td><td>${millis(r.took_ms)}</td>
        <td>${r.cause || "–"}</td>
        <td>${r.operation} ${r.path && html`<a href=${link(r.path)}><${Name} text=${r.path} /></a>`}</td>
        <td class="text">${Object.keys(stages)
          .filter((s) => r.stages_ms[s] >= 0.1)
          .map((s) => html`<span class="stage">${s} ${millis(r.stages_ms[s])}</span> `)}</td>
        <td>${r.address} ${r.session && html`<a href=${"#/sessions/" + r.session}><code>${r.session}</code></a>`}</td></tr>`,
      )}</tbody></table></div>
    <details><summary>What the stages are</summary><dl>${Object.entries(stages).map(
      ([name, text]) => html`<dt>${name}</dt><dd>${text}</dd>`,
    )}</dl></details>
    ${more && html`<button onClick=${() => setLimit(most)}>More</button>`}`
    }</section>`;
}
