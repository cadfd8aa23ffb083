// The view that finds znodes.
import { html, useEffect, useState } from "./vendor/preact.js";
import { get, znode } from "./api.js";
import { Field, Name } from "./parts.js";
import { Unread } from "./majority.js";
import { link } from "./tree.js";
import { bytes, plural } from "./text.js";

export function Search({ args }) {
  const [x, setX] = useState({ any: "", below: "/", owner: "", ...args });
  const [r, setR] = useState(null); // {found, visited, next, busy, error}
  const field = (name) => ({ value: x[name], onInput: (value) => setX({ ...x, [name]: value }) });
  const look = async (before = { found: [], visited: 0 }) => {
    setR({ ...before, busy: true });
    try {
      const all = { ...before };
      do {
        // a page may be empty, and not the last
        const below = "/" + x.below.trim().replace(/^\/+|\/+$/g, "");
        const page = await get(znode(below, "search"), {
          any: x.any || undefined,
          owner: x.owner.trim() || undefined,
          after: all.next,
        });
        all.found = [...all.found, ...page.found].sort((a, b) => (a.path < b.path ? -1 : 1));
        all.visited += page.visited;
        all.next = page.next;
        setR({ ...all, busy: true });
      } while (all.next && all.found.length === before.found.length);
      setR(all);
    } catch (error) {
      setR({ ...before, next: undefined, error });
    }
  };
  useEffect(() => {
    if (args.any || args.owner) look(); // a link to what it finds
  }, []);
  return html`<section aria-label="Search"><h1>Search</h1>
    <form class="form" onSubmit=${(event) => (event.preventDefault(), look())}>
      <${Field} label="Name or data" ...${field("any")} hint="a part of either; a is not A" />
      <${Field} label="Below" ...${field("below")} hint="this znode, and all below it" />
      <${Field} label="Session" placeholder="0x1001" ...${field("owner")} hint="its ephemeral znodes; any: those of all" />
      <button class="main" disabled=${r?.busy}>Search</button></form>
    <${Unread} error=${r?.error} then=${() => look()} />
    <p role="status">${r && `${plural(r.found.length, "znode")} found${r.next ? " so far" : ""}, of ${plural(r.visited, "znode")}${r.busy ? " …" : ""}`}</p>
    <ul class="plain" id="found">${r?.found.map(
      ({ path, stat }) => html`<li><a href=${link(path)}>
      <${Name} text=${path} /></a> <small>${bytes(stat.dataLength)}</small></li>`,
    )}</ul>
    ${r?.next && !r.busy && html`<button onClick=${() => look(r)}>More</button>`}</section>`;
}
