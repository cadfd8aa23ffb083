// The sessions that have expired, and why.
import { html, useState } from "./vendor/preact.js";
import { everywhere, get } from "./api.js";
import { useStore, useAsync } from "./store.js";
import { Failure, Failures, Name } from "./parts.js";
import { whose } from "./sessions.js";
import { ago, contains, millis, plural, when } from "./text.js";

const first = 50, // sessions that are shown before "More"
  most = 1000; // that each server remembers

const causes = {
  server: (x) => `Server ${x.server}, which carried it, was not heard of.`,
  paused: (x) => `Server ${x.server}, which carried it, stood still for ${millis(x.paused_ms)}.`,
  disconnected: (x) => `Its connection had ended, and its client did not come back: ${x.connection_end_reason}.`,
  silent: () => "Nothing came from its client: that, its machine or the network to it had stopped.",
  elsewhere: (x) => `Server ${x.server}, which carried it, knows why and does not answer.`,
};

// merge makes one list of what each server knows, the newest first.
export function merge(lists) {
  const all = new Map();
  for (const x of lists.flat()) all.set(x.session, both(all.get(x.session), x));
  return [...all.values()].sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

// both is what two servers know of a session: the leader when its client was heard, and the one that carried it of its
// connection. That the latter was not heard explains what it saw.
function both(a, b) {
  if (!a) return b;
  const [led, other] = a.heard ? [a, b] : [b, a];
  const carried = [a, b].find(({ cause }) => cause !== "elsewhere" && cause !== "server") ?? other;
  const { heard, heard_by, cause } = led;
  const { address, identities } = a.address ? a : b;
  return { ...carried, address, identities, heard, heard_by, cause: cause === "server" ? cause : carried.cause };
}

const before = (x, moment) => `${millis(Date.parse(x.at) - Date.parse(moment))} before`;

// paths are those of the first ephemerals that went with it.
const paths = ({ paths = [], ephemerals }) => [
  ...paths.map((path) => html`<br /><code><${Name} text=${path} /></code>`),
  paths.length > 0 && paths.length < ephemerals && html`<br />and ${ephemerals - paths.length} more`,
];

const matches = (x, text) => contains([x.session, whose(x), ...(x.paths ?? []), causes[x.cause](x)], text);

export function Expired() {
  const store = useStore();
  const [text, setText] = useState("");
  const [limit, setLimit] = useState(first);
  const { value, error } = useAsync(
    async (signal) => {
      if (!store.identity?.administrator) return null;
      const pages = await everywhere((server) => get("/v1/expired-sessions", { server, limit }, signal), signal);
      return { pages, all: merge(pages.map((p) => p.items ?? [])) };
    },
    [limit, store.identity, store.changes],
  );
  const more = limit < most && value?.pages.some((p) => p.next);
  const found = value?.all.filter((x) => matches(x, text)) ?? [];
  // The filter looks at all that are remembered.
  const filter = (e) => (setText(e.target.value), setLimit(most));
  return html`<section aria-label="Expired sessions"><h1>Expired sessions</h1>
    ${!store.identity?.administrator && html`<p class="note">Log in as an administrator to see them.</p>`}
    <${Failure} error=${error} /><${Failures} of=${value?.pages} />
    ${
      value &&
      html`<div class="tools"><label class="field inline"><span>Filter</span>
        <input placeholder="id, client, znode or reason" value=${text} onInput=${filter} spellcheck="false" /></label>
      <span role="status">${text.trim() && `${found.length.toLocaleString("en")} of `}${plural(value.all.length, "session")}
        ${more && " and more"}</span></div>
    ${found.length > 0 && html`<div class="wide" tabindex="0"><table id="expired" class="stack"><thead><tr><th>Session</th>
      <th>Client</th><th>Expired</th><th>Why</th><th>Last heard</th><th>Timeout</th><th>Took with it</th></tr></thead><tbody>${found.map(
        (x) => html`<tr key=${x.session}><td><code>${x.session}</code></td>
        <td data-label="Client" class="text"><${Name} text=${whose(x) || "–"} /></td>
        <td data-label="Expired">${ago(Date.parse(x.at))}<br /><small>${when(Date.parse(x.at))}</small></td>
        <td data-label="Why" class="text"><${Name} text=${causes[x.cause](x)} /></td>
        <td data-label="Last heard" class="line">${x.heard ? before(x, x.heard) : "–"}
          ${x.heard && x.heard_by !== undefined && html`<br /><small>by server ${x.heard_by}</small>`}</td>
        <td data-label="Timeout">${millis(x.timeout_ms)}</td>
        <td data-label="Took with it" class="line">${plural(x.ephemerals, "ephemeral")},
          ${" "}${plural(x.watches ?? 0, "watch", "watches")}${paths(x)}</td></tr>`,
      )}</tbody></table></div>`}
    ${more && html`<button onClick=${() => setLimit(most)}>More</button>`}`
    }</section>`;
}
