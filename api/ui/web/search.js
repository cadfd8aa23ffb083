// The view that finds znodes.
import { html, useState } from "./vendor/preact.js";
import { get, znode } from "./api.js";
import { Field, Name } from "./parts.js";
import { Unread } from "./majority.js";
import { link } from "./tree.js";
import { bytes, plural } from "./text.js";

export function Search({ args }) {
  const [x, setX] = useState({ below: "/", name: "", data: "", owner: "", ...args });
  const [r, setR] = useState(null); // {found, visited, next, busy, error}
  const field = (name) => ({ value: x[name], onInput: (value) => setX({ ...x, [name]: value }) });
  const look = async (before = { found: [], visited: 0 }) => {
    setR({ ...before, busy: true });
    try {
      const all = { ...before };
      do {
        // a page may be empty, and not the last
        const page = await get(znode(x.below, "search"), {
          name: x.name || undefined,
          data: x.data || undefined,
          owner: x.owner || undefined,
          after: all.next,
        });
        all.found = [...all.found, ...page.found];
        all.visited += page.visited;
        all.next = page.next;
        setR({ ...all, busy: true });
      } while (all.next && all.found.length === before.found.length);
      setR(all);
    } catch (error) {
      setR({ ...before, next: undefined, error });
    }
  };
  return html`<section aria-label="Search"><h1>Search</h1>
    <form class="form" onSubmit=${(event) => (event.preventDefault(), look())}>
      <${Field} label="Below" ...${field("below")} /><${Field} label="Name contains" ...${field("name")} />
      <${Field} label="Data contain" ...${field("data")} />
        <${Field} label="Owner" placeholder="0x1001" ...${field("owner")} hint="the session of ephemeral znodes" />
      <button class="main" disabled=${r?.busy}>Search</button></form>
    <${Unread} error=${r?.error} then=${() => look()} />
    <p role="status">${r && `${plural(r.found.length, "znode")} found${r.next ? " so far" : ""}, of ${plural(r.visited, "znode")}${r.busy ? " …" : ""}`}</p>
    <ul class="plain" id="found">${r?.found.map(({ path, stat }) => html`<li><a href=${link(path)}>
      <${Name} text=${path} /></a> <small>${bytes(stat.dataLength)}</small></li>`)}</ul>
    ${r?.next && !r.busy && html`<button onClick=${() => look(r)}>More</button>`}</section>`;
}
