// The columns of the tree: the children of the znode, or of its parent if it has none, and those of the level above.
import { html, useState, useEffect } from "./vendor/preact.js";
import { get, znode } from "./api.js";
import { useAsync, useStore } from "./store.js";
import { Name, Failure } from "./parts.js";
import { List } from "./list.js";
import { base, bytes, join, parent, plural, visible } from "./text.js";

const sorted = 2000; // children, up to which they are shown by name; more in the server's own order

// listed is the znode whose children the last column shows: a leaf stays among its siblings.
export const listed = ({ path, stat }) => (stat.numChildren || path === "/" ? path : parent(path));

// Columns shows the two lowest levels around z. They are read again when heard changes; open(path) goes to a znode.
export function Columns({ z, heard, open }) {
  const last = listed(z);
  const shown = last === "/" ? [last] : [parent(last), last];
  return html`<section class="columns" aria-label="Znodes">
    ${shown.map(
      (path) => html`<${Column} key=${path} path=${path} z=${z} last=${path === last} heard=${heard} open=${open} />`,
    )}
  </section>`;
}

function Column({ path, z, last, heard, open }) {
  const store = useStore();
  const [text, setText] = useState("");
  const [match, setMatch] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setMatch(text), 200);
    return () => clearTimeout(timer);
  }, [text]);
  const known = useAsync(
    async (signal) => {
      const { stat } = await get(znode(path), { children: true, offset: 0, limit: 1 }, signal);
      const all = { count: stat.numChildren, match };
      if (match === "" && all.count > sorted) return all;
      const query = { children: true, stat: true, limit: sorted, match: match || undefined };
      const { children, next } = await get(znode(path), query, signal);
      return { ...all, list: children, more: next };
    },
    [path, match, heard, store.identity, store.changes],
  );
  const { count = 0, list, more } = known.value ?? {};
  const load = async (from, signal) =>
    list
      ? list.slice(from, from + 200)
      : (await get(znode(path), { children: true, stat: true, offset: from, limit: 200 }, signal)).children;
  // Where the way to the znode passes.
  const name = z.path === path ? null : base(parent(z.path) === path ? z.path : parent(z.path));
  return html`<div class=${last ? "column" : "column above"}>
    ${
      !last && !match
        ? html`<div class="tools"><${Name} text=${path} /></div>`
        : html`<div class="tools"><label class="field inline"><span>Filter</span>
      <input value=${text} onInput=${(e) => setText(e.target.value)} spellcheck="false" /></label>
      <span class="count">${known.value?.match ? `${list.length.toLocaleString("en")}${more ? " first" : ""} of ` : ""}
        ${known.value && plural(count, "child", "children")}</span></div>`
    }
    ${known.value && !list && html`<p class="note">Too many to be sorted: in this server's order. The filter looks at all of
      them.</p>`}
    ${unlisted(known.error)}
    <${List} label=${`Children of ${visible(path)}`} count=${list ? list.length : count} version=${known.value} load=${load}
      row=${last ? Child : Above} current=${(child) => child.name === name}
      at=${name && list ? list.findIndex((child) => child.name === name) : -1} takes=${last && z.path}
      open=${(child) => open(join(path, child.name))} up=${() => z.path !== "/" && open(parent(z.path))} />
  </div>`;
}

const unlisted = (error) =>
  [401, 403].includes(error?.status)
    ? html`<p class="note">You may not list them.</p>`
    : html`<${Failure} error=${error} />`;

const Above = ({ name }) => html`<span class="name"><${Name} text=${name} /></span>`;
const Child = ({ name, stat, error }) => html`<span class="name"><${Name} text=${name} /></span>
  <small>${error ? "may not be read" : facts(stat).join(", ")}</small>`;
const facts = (stat) =>
  [
    stat.numChildren && plural(stat.numChildren, "child", "children"),
    stat.ephemeralOwner !== "0x0" && "ephemeral",
    bytes(stat.dataLength),
  ].filter(Boolean);
