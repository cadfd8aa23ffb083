// The frame of the page: the views, chosen by the part of the address behind #, and what all of them share.
import "./handover.js";
import { html, render, useState, useEffect } from "./vendor/preact.js";
import { useStore, set } from "./store.js";
import { Said } from "./parts.js";
import { Login, refresh } from "./login.js";
import { Tree } from "./tree.js";
import { Search } from "./search.js";
import { Sessions } from "./sessions.js";
import { Locks } from "./locks.js";
import { Events } from "./events.js";
import { Load } from "./load.js";
import { Ensemble } from "./ensemble.js";
import { Majority } from "./majority.js";

const views = {
  tree: { title: "Tree", draw: (path) => html`<${Tree} path=${path || "/"} />` },
  search: {
    title: "Search",
    draw: (_, query) => html`<${Search} key=${query} args=${Object.fromEntries(query)} />`,
  },
  ensemble: { title: "Ensemble", draw: () => html`<${Ensemble} />` },
  locks: { title: "Locks", draw: () => html`<${Locks} />` },
  events: { title: "Events", draw: (path, query) => html`<${Events} key=${path} path=${path || "/"} since=${query.get("since")} />` },
  load: { title: "Load", draw: () => html`<${Load} />` },
  sessions: { title: "Sessions", draw: (path) => html`<${Sessions} id=${path.slice(1)} />` },
};

// place is the view and what is behind it: #/tree/app/x is ["tree", "/app/x", URLSearchParams()].
function place() {
  const [, name, path, query] = /^#\/([a-z]+)([^?]*)(.*)$/.exec(location.hash) ?? [];
  try {
    if (views[name]) return [name, decodeURIComponent(path), new URLSearchParams(query)];
  } catch {} // no URL encoding
  return ["tree", "/", new URLSearchParams()];
}

function App() {
  const { dialog } = useStore();
  const [[name, path, query], setPlace] = useState(place);
  useEffect(() => {
    const move = () => {
      setPlace(place());
      set({ dialog: null });
    };
    addEventListener("hashchange", move);
    refresh();
    return () => removeEventListener("hashchange", move);
  }, []);
  useEffect(() => {
    document.title = `${views[name].title} – zk-lite`;
  }, [name]);
  return html`<header><strong>zk-lite</strong>
      <nav aria-label="Views">
        ${Object.entries(views).map(([key, { title }]) => html`<a href=${"#/" + key}
          aria-current=${key === name ? "page" : undefined}>${title}</a>`)}</nav>
      <span class="login"><a href="/docs">API</a><${Login} /></span></header>
    <main id="main" tabindex="-1"><${Majority} />${views[name].draw(path, query)}</main><${Said} />${dialog}`;
}

render(html`<${App} />`, document.getElementById("app"));
