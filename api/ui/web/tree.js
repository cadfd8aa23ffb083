// The view of a znode: what is around it on the left, itself on the right.
import { html, useState, useEffect } from "./vendor/preact.js";
import { get, znode, escapePath } from "./api.js";
import { useStore, useAsync, mayWrite } from "./store.js";
import { Name } from "./parts.js";
import { Unread } from "./majority.js";
import { Columns, listed } from "./columns.js";
import { bytes, hex, kind, perms, plural, pretty, visible, when, who, decode, base } from "./text.js";
import { editData, editACL, create, remove } from "./change.js";
import { exportTree, importTree, compareTree } from "./subtree.js";
import { revisions } from "./revisions.js";

const shown = 64 << 10; // bytes of data that are shown at first

export const link = (path) => "#/tree" + (path === "/" ? "/" : escapePath(path));
const go = (path) => (location.hash = link(path));

export function Tree({ path }) {
  const store = useStore();
  const [heard, setHeard] = useState(0);
  const znodes = useAsync(
    async (signal) => {
      const [data, about, acl] = await Promise.all([
        get(znode(path), {}, signal),
        get(znode(path), { about: true }, signal),
        get(znode(path), { acl: true }, signal).catch(() => ({ acl: null })),
      ]);
      return { ...data, about, acl: acl.acl };
    },
    [path, store.identity, store.changes, heard],
  );
  const hear = () => setHeard((n) => n + 1);
  const z = znodes.value; // of the znode before, until this one is read
  const list = z && listed(z);
  useEffect(() => listen(path, hear), [path, store.identity]);
  useEffect(() => (list && list !== path ? listen(list, hear) : undefined), [list, path, store.identity]);
  const here = z?.path === path;
  return html`<div class="tree">
    <nav aria-label="Path" class="path">${crumbs(path)}</nav>
    <${Unread} error=${znodes.error} />
    ${!z && znodes.loading && html`<p role="status">reading …</p>`}
    ${z && html`<div class=${list === z.path ? "browse" : "browse leaf"}>
      <${Columns} z=${z} heard=${heard} open=${go} />
      ${here && html`<${Znode} key=${path} z=${z} may=${mayWrite(store)} />`}</div>`}
  </div>`;
}

// listen calls heard() when the znode or its children change, by long polls while the page is in sight: a browser has
// few connections for all its tabs. It returns the function that ends it.
function listen(path, heard) {
  const abort = new AbortController();
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const inSight = () =>
    document.hidden && new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
  (async () => {
    for (let since; !abort.signal.aborted;) {
      await inSight();
      try {
        const news = await get(znode(path, "watches"), { kind: "persistent", wait: "25s", since }, abort.signal);
        if (news.events.length) heard();
        since = news.zxid;
        await wait(500); // a znode that changes all the time is not read all the time
      } catch {
        since = undefined; // and what happened meanwhile is seen by reading again
        await wait(2000);
        if (!abort.signal.aborted) heard();
      }
    }
  })();
  return () => abort.abort();
}

function crumbs(path) {
  const names = path === "/" ? [] : path.slice(1).split("/");
  const all = ["/", ...names.map((_, i) => "/" + names.slice(0, i + 1).join("/"))];
  return all.map(
    (p, i) =>
      html`<a href=${link(p)} aria-current=${i === all.length - 1 ? "page" : undefined}>
        <${Name} text=${i ? names[i - 1] : "/"} /></a>`,
  );
}

function Znode({ z, may }) {
  const { about, stat } = z;
  const can = (letter) => about.may.includes(letter);
  const button = (text, run, enabled = true, why = "") =>
    html`<button type="button" disabled=${!enabled} title=${enabled ? "" : why} onClick=${run}>${text}</button>`;
  return html`<section class="znode" aria-label="Znode">
    <h1><${Name} text=${z.path === "/" ? "/" : base(z.path)} /></h1>
    <p>${kind(about, stat)}${stat.ephemeralOwner !== "0x0" && html` (<a
      href=${"#/sessions/" + stat.ephemeralOwner}>show it</a>)`}. You may ${perms(about.may)}.</p>
    <p class="buttons" role="group" aria-label="What to do with it">
      ${button("Edit", () => editData(z), may)} ${button("Create below", () => create(z), may)}
      ${button("Permissions", () => editACL(z), may && z.acl)} ${button("Delete", () => remove(z), may && z.path !== "/")}
      ${button("Export", () => exportTree(z))} ${button("Import", () => importTree(z), may)} ${button("Compare", () => compareTree(z))}
      ${button("Revisions", () => revisions(z, may))}
    </p>
    <p><a href=${"#/events" + escapePath(z.path)}>Follow its changes</a>, <a
      href=${"#/search?" + new URLSearchParams({ below: z.path })}>search below it</a></p>
    ${may && !can("w") && html`<p class="note">The permissions do not let you write here; the server will say so.</p>`}
    <${Data} z=${z} />
    <${Permissions} acl=${z.acl} />
    <${Stat} stat=${stat} about=${about} />
  </section>`;
}

function Data({ z }) {
  const [chosen, choose] = useState(null);
  const [all, setAll] = useState(false);
  const views = {
    text: () => (z.encoding === "base64" ? null : visible(cut(z.data), true)),
    JSON: () => {
      try {
        return visible(cut(pretty(z.data)), true);
      } catch {
        return null;
      }
    },
    hex: () => hex(all ? decode(z) : decode(z).subarray(0, shown / 4)),
  };
  const cut = (text) => (all ? text : text.slice(0, shown));
  // Objects and lists are indented without being asked.
  const natural = () =>
    z.encoding === "base64" ? "hex" : /^\s*[[{]/.test(z.data) && views.JSON() !== null ? "JSON" : "text";
  const as = chosen ?? natural();
  const text = views[as]();
  const more = !all && z.stat.dataLength > (as === "hex" ? shown / 4 : shown);
  return html`<div class="data"><div class="tools" role="group" aria-label="Data as">
      <h2>Data</h2> ${Object.keys(views).map((v) => html`<button aria-pressed=${v === as} onClick=${() => choose(v)}>
        ${v}</button>`)}
      <span>${bytes(z.stat.dataLength)}</span></div>
    ${
      z.stat.dataLength === 0
        ? html`<p class="note">No data.</p>`
        : text === null
          ? html`<p class="note">${as === "JSON" ? "It is not JSON." : "It is not text: bytes that are no UTF-8."}</p>`
          : html`<pre tabindex="0" aria-label="Data">${text}</pre>`
    }
    ${more && text !== null && html`<p><button onClick=${() => setAll(true)}>Show all</button></p>`}</div>`;
}

const Permissions = ({ acl }) =>
  html`<h2>Permissions</h2>${
    acl
      ? html`<ul>${acl.map((entry) => html`<li>${who(entry)} may ${perms(entry.perms)}.</li>`)}</ul>`
      : html`<p class="note">You may not read them.</p>`
  }`;

const Stat = ({ stat, about }) => html`<h2>Stat</h2><dl>
  <dt>Created</dt><dd>${when(stat.ctime)} <code>${stat.czxid}</code></dd>
  <dt>Data changed</dt><dd>${when(stat.mtime)} <code>${stat.mzxid}
    </code>, ${stat.version ? plural(stat.version, "time") : "never"} (version ${stat.version})</dd>
  <dt>Children changed</dt><dd><code>${stat.pzxid}</code> (cversion ${stat.cversion})</dd>
  <dt>Permissions changed</dt><dd>
    ${stat.aversion ? plural(stat.aversion, "time") : "never"} (aversion ${stat.aversion})</dd>
  <dt>Below it</dt><dd>${below(about)}</dd></dl>`;

// below says how much is below a znode.
export function below({ below: b }) {
  if (b.znodes === 0) return "nothing";
  return `${b.more ? "at least " : ""}${plural(b.znodes, "znode")}, ${bytes(b.bytes)} of paths and data${b.ephemerals ? `, ${b.ephemerals} of them ephemeral` : ""}`;
}
