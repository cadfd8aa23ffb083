// The dialogs about what a znode was: its revisions, the way back to one, and how they are forgotten.
import { html, useState } from "./vendor/preact.js";
import { get, send, znode } from "./api.js";
import { done, set, useAsync } from "./store.js";
import { Ask, Dialog, Diff, Failure, Name, open } from "./parts.js";
import { diff, plural, visible, when, who } from "./text.js";

const page = 20; // revisions at once
const shown = 1000; // characters of a value

export const revisions = (z, may) => open(html`<${Revisions} z=${z} may=${may} />`);

function Revisions({ z, may }) {
  const [limit, setLimit] = useState(page);
  const { value, error } = useAsync((signal) => get(znode(z.path), { revisions: true, limit }, signal), [limit]);
  const back = (r) => open(html`<${Revert} z=${z} r=${r} />`);
  return html`<${Dialog} title=${`Revisions of ${z.path}`}>
    <${Failure} error=${error} />
    <ol class="plain" aria-label="Revisions">${value?.revisions.map(
      (r) => html`<li key=${r.zxid}>
        <p>${r.event} ${when(Date.parse(r.time))}${r.author.length > 0 && ` by ${r.author.map(name).join(", ")}`} <code>
          ${r.zxid}</code> ${may && r.event !== "deleted" && !r.purged && html`<button type="button"
          aria-label=${`Go back to ${r.zxid}`} onClick=${() => back(r)}>Go back</button>`}</p>
        ${r.purged ? html`<p class="note">Purged.</p>` : html`<pre tabindex="0" aria-label="Value">${text(r)}</pre>`}
      </li>`,
    )}</ol>
    ${value && html`<p class="note">${value.next ? "There are more." : `Nothing else is known since ${value.since}.`}</p>`}
    <p class="buttons"><button type="button" onClick=${() => set({ dialog: null })}>Close</button>
      ${value?.next && limit < 1000 && html`<button type="button" onClick=${() => setLimit(Math.min(1000, limit * 4))}>More</button>`}
      ${may && html`<button type="button" class="danger" onClick=${() => open(html`<${Purge} z=${z} />`)}>
        Forget the former ones</button>`}</p>
  </${Dialog}>`;
}

const name = (id) => (id.scheme === "digest" ? visible(id.id.split(":")[0]) : who(id));

const text = ({ data, encoding }) =>
  (encoding === "base64" ? "base64 " : "") + visible(data.slice(0, shown), true) + (data.length > shown ? "…" : "");

function Revert({ z, r }) {
  const [recursive, setRecursive] = useState(false);
  const ask = (query) => ({
    method: "POST",
    path: znode(z.path, "revisions"),
    query: { to: r.zxid, recursive, ...query },
  });
  const { value, error, loading } = useAsync(async (signal) => {
    const { body } = await send(ask({ plan: true }), signal);
    return { plan: body, now: await get(znode(z.path), {}, signal) };
  }, [recursive]);
  const plan = value?.plan;
  const request = () => !loading && plan?.changes.length > 0 && ask({ seen: plan.zxid });
  const then = ({ body }) =>
    done(`${z.path} is as it was at ${r.zxid}: ${plural(body.changes.length, "change")}.`, async () => {
      await send({ ...ask(), query: { to: plan.zxid, seen: body.zxid, recursive } });
      done(`${z.path} is as it was before that.`);
    });
  return html`<${Ask} title=${`Go back with ${z.path}`} action="Go back" request=${request} then=${then}
    what=${html`To its value of ${when(Date.parse(r.time))}, in one transaction; nothing is done if something has changed
      meanwhile. Ephemeral znodes stay.`}
    fields=${html`<label class="check"><input type="checkbox" checked=${recursive}
        onChange=${(e) => setRecursive(e.target.checked)} /> All below it, too</label>
      <${Failure} error=${error} />
      ${plan && html`<${Diff} lines=${diff(text(value.now), text(r))} />`}
      ${plan && html`<p>${plan.changes.length ? plural(plan.changes.length, "change") : "Nothing to do"}${plan.left.length > 0 && `, ${plan.left.length} left alone`}.</p>
        <ul aria-label="The plan">${plan.changes.slice(0, shown).map((c) => html`<li>${c.action} <${Name} text=${c.path} /></li>`)}
        ${plan.left.slice(0, shown).map((l) => html`<li>leave <${Name} text=${l.path} />: ${l.reason}</li>`)}</ul>`}`} />`;
}

function Purge({ z }) {
  const [recursive, setRecursive] = useState(z.about.below.znodes === 0 ? undefined : false);
  const request = () => ({ method: "DELETE", path: znode(z.path, "revisions"), query: { recursive } });
  return html`<${Ask} title=${`Forget what ${z.path} was`} action="Forget" danger request=${request}
    then=${() => done(`The former values of ${z.path} are forgotten.`)}
    what="All servers forget its former values. The present one stays, and so do the logs on disk, older snapshots and backups. It cannot be undone."
    fields=${recursive !== undefined && html`<label class="check"><input type="checkbox" checked=${recursive}
      onChange=${(e) => setRecursive(e.target.checked)} /> Those of all below it, too</label>`} />`;
}
