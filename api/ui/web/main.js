// The frame of the page: the views, chosen by the part of the address behind #, and what all of them share.
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

const views = {
  tree: { title: "Tree", draw: (path) => html`<${Tree} path=${path || "/"} />` },
  search: {
    title: "Search",
    draw: (rest) => html`<${Search} key=${rest} args=${Object.fromEntries(new URLSearchParams(rest.slice(1)))} />`,
  },
  ensemble: { title: "Ensemble", draw: () => html`<${Ensemble} />` },
  locks: { title: "Locks", draw: () => html`<${Locks} />` },
  events: { title: "Events", draw: (path) => html`<${Events} key=${path} path=${path || "/"} />` },
  load: { title: "Load", draw: () => html`<${Load} />` },
  sessions: { title: "Sessions", draw: (rest) => html`<${Sessions} id=${rest.slice(1)} />` },
};

// place is the view and what is behind it: #/tree/app/x is ["tree", "/app/x"].
function place() {
  const [, name, rest] = /^#\/([a-z]+)(.*)$/.exec(location.hash) ?? [];
  try {
    return views[name] ? [name, decodeURIComponent(rest)] : ["tree", "/"];
  } catch {
    return ["tree", "/"];
  }
}

function App() {
  const { dialog } = useStore();
  const [[name, rest], setPlace] = useState(place);
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
      <span class="login"><${Login} /></span></header>
    <main id="main" tabindex="-1">${views[name].draw(rest)}</main><${Said} />${dialog}`;
}

render(html`<${App} />`, document.getElementById("app"));
