// The frame of the page: the views, chosen by the part of the address behind #, and what all of them share.
import "./handover.js";
import { html, render, useState, useEffect } from "./vendor/preact.js";
import { useStore, set } from "./store.js";
import { useHealth, Watch } from "./health.js";
import { Said } from "./parts.js";
import { Login, refresh } from "./login.js";
import { Overview } from "./overview.js";
import { Tree } from "./tree.js";
import { Search } from "./search.js";
import { Sessions } from "./sessions.js";
import { Locks } from "./locks.js";
import { Events } from "./events.js";
import { Load } from "./load.js";
import { Ensemble } from "./ensemble.js";
import { Majority } from "./majority.js";

const views = {
  overview: { title: "Overview", draw: () => html`<${Overview} />` },
  tree: { title: "Tree", draw: (path) => html`<${Tree} path=${path || "/"} />` },
  search: {
    title: "Search",
    draw: (_, query) => html`<${Search} key=${query} args=${Object.fromEntries(query)} />`,
  },
  ensemble: { title: "Ensemble", draw: () => html`<${Ensemble} />` },
  locks: { title: "Locks", draw: () => html`<${Locks} />` },
  events: {
    title: "Events",
    draw: (path, query) => html`<${Events} key=${path} path=${path || "/"} since=${query.get("since")} />`,
  },
  load: { title: "Load", draw: () => html`<${Load} />` },
  sessions: { title: "Sessions", draw: (path) => html`<${Sessions} id=${path.slice(1)} />` },
};

// place is the view and what is behind it: #/tree/app/x is ["tree", "/app/x", URLSearchParams()].
function place() {
  const [, name, path, query] = /^#\/([a-z]+)([^?]*)(.*)$/.exec(location.hash) ?? [];
  try {
    if (views[name]) return [name, decodeURIComponent(path), new URLSearchParams(query)];
  } catch {} // no URL encoding
  return ["overview", "", new URLSearchParams()];
}

const withServers = ["overview", "ensemble"]; // the views that show what the servers say

// State is how the ensemble stands, in one word and one colour, and leads to the overview.
function State() {
  const { level, word, text } = useHealth();
  return html`<a id="state" class=${level} href="#/overview" title=${text.replaceAll("`", "")}><span class="dot"
    aria-hidden="true"></span>${word}</a>`;
}

function App() {
  const { dialog } = useStore();
  const [[name, path, query], setPlace] = useState(place);
  const [menu, setMenu] = useState(false); // of a narrow window
  useEffect(() => {
    const move = () => {
      setPlace(place());
      setMenu(false);
      set({ dialog: null });
    };
    addEventListener("hashchange", move);
    refresh();
    return () => removeEventListener("hashchange", move);
  }, []);
  useEffect(() => {
    document.title = `${views[name].title} – zk-lite`;
    return () => set({ said: null }); // messages are about the view
  }, [name]);
  return html`<${Watch} shown=${withServers.includes(name)} /><header><strong>zk-lite</strong><${State} />
      <button id="menu" aria-expanded=${menu} aria-controls="views" onClick=${() => setMenu(!menu)}>
        ☰ ${views[name].title}</button>
      <nav id="views" aria-label="Views" class=${menu ? "open" : ""}>
        ${Object.entries(views).map(
          ([key, { title }]) => html`<a href=${"#/" + key}
          aria-current=${key === name ? "page" : undefined}>${title}</a>`,
        )}</nav>
      <span class="login"><a href="/docs">API</a><${Login} /></span></header>
    <main id="main" tabindex="-1">${name !== "overview" && html`<${Majority} />`}${views[name].draw(path, query)}</main>
    <${Said} />${dialog}`;
}

render(html`<${App} />`, document.getElementById("app"));
