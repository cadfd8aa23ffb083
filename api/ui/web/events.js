// The view of what changes below a znode, as it happens.
import { html, useState, useEffect, useRef } from "./vendor/preact.js";
import { escapePath, send, start, znode } from "./api.js";
import { useStore } from "./store.js";
import { Name, Field } from "./parts.js";
import { link } from "./tree.js";
import { plural } from "./text.js";

const kept = 1000; // events on the page
const pause = 1000; // milliseconds before the stream is asked for again
const again = "; trying again"; // ends the state of a stream that has failed

// follow calls heard({type, path, zxid, id}) for each change and state(text) when the stream's state changes, until the
// signal. It goes on from the last position, which it keeps in place.at, so that nothing is lost or comes twice.
async function follow(path, place, heard, state, signal) {
  while (!signal.aborted) {
    try {
      const response = await start(
        {
          path: znode(path, "watches"),
          query: { kind: "recursive", since: place.at },
          headers: { Accept: "text/event-stream" },
        },
        signal,
      );
      state("live");
      for await (const event of events(response.body)) {
        if (event.name === "gone") throw Object.assign(new Error(event.data.detail), { gone: true });
        place.at = event.id ?? place.at;
        if (event.name === "reconnect") break;
        if (event.name !== "progress") heard({ ...event.data, id: event.id });
      }
      state("the stream has ended; asking again");
    } catch (error) {
      if (signal.aborted) return;
      if (error.gone || error.status === 410) {
        place.at = undefined; // begins with what happens now
        heard({ type: "gap", path, zxid: "", id: `gap ${Date.now()}` });
      }
      state(error.message + again);
    }
    await new Promise((done) => setTimeout(done, pause));
  }
}

// events reads server-sent events: {name, id, data}.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let part; !(part = await reader.read()).done;) {
    text += part.value;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const fields = Object.fromEntries(
        text
          .slice(0, end)
          .split("\n")
          .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
      );
      if (fields.event) yield { name: fields.event, id: fields.id, data: JSON.parse(fields.data) };
    }
  }
}

const words = {
  created: "created",
  changed: "changed",
  deleted: "deleted",
  gap: "events are missing here: this server does not know them any more",
};

// others are the servers besides that of the page whose HTTP ports have been published.
async function others() {
  const { body, headers } = await send({ path: "/v1/servers" });
  return body.servers.filter(({ id, http }) => http && String(id) !== headers.get("Zk-Server"));
}

// Elsewhere leads to the same view of the other servers, whose streams go on from the same position: while the server of
// the page is away, the page may ask nobody else.
function Elsewhere({ path, position, servers }) {
  const to = (address) =>
    `${location.protocol}//${address}/ui/#/events${escapePath(path)}?${new URLSearchParams(position ? { since: position } : {})}`;
  return (
    servers.length > 0 &&
    html`<p id="elsewhere">This page goes on when its server is back. Without a gap at once: ${servers.map(
      ({ id, http }) => html`<a href=${to(http)}>at server ${id}</a> `,
    )}</p>`
  );
}

export function Events({ path, since }) {
  const store = useStore();
  const [text, setText] = useState(path);
  const [rows, setRows] = useState([]);
  const [state, setState] = useState("connecting");
  const [paused, setPaused] = useState(false);
  const waiting = useRef([]),
    position = useRef({ at: since ?? undefined });
  const [servers, setServers] = useState([]);
  useEffect(() => {
    if (state === "live") others().then(setServers, () => {}); // else those of before
  }, [state]);
  useEffect(() => {
    const abort = new AbortController();
    follow(
      path,
      position.current,
      (event) => waiting.current.push({ ...event, at: new Date() }),
      setState,
      abort.signal,
    );
    const timer = setInterval(() => {
      // a thousand events a second are drawn a few times a second
      if (!waiting.current.length) return;
      const news = waiting.current.splice(0).reverse();
      setRows((old) => [...news, ...old].slice(0, kept));
    }, 200);
    return () => {
      abort.abort();
      clearInterval(timer);
    };
  }, [path, store.identity]);
  const [frozen, setFrozen] = useState([]);
  const shown = paused ? frozen : rows;
  return html`<section aria-label="Events"><h1>Events</h1>
    <form class="form" onSubmit=${(e) => {
      e.preventDefault();
      location.hash = "#/events" + text.split("/").map(encodeURIComponent).join("/");
    }}>
      <${Field} label="Below" value=${text} onInput=${setText} /><button class="main">Follow</button></form>
    ${state.endsWith(again) && html`<${Elsewhere} path=${path} position=${position.current.at} servers=${servers} />`}
    <p class="buttons"><span role="status" id="stream">${state}</span>
      <button aria-pressed=${paused} onClick=${() => {
        setFrozen(rows);
        setPaused(!paused);
      }}>Pause</button><button onClick=${() => {
        setRows([]);
        setFrozen([]);
      }}>Clear</button>
      <small>${plural(shown.length, "event")}, the newest first; ${kept} are kept</small></p>
    <div class="wide" tabindex="0" role="region" aria-label="What has changed"><table id="events"><thead><tr>
      <th>Seen at</th><th>What</th><th>Znode</th><th>Zxid</th></tr></thead><tbody>${shown.map(
      (e) =>
        html`<tr key=${e.id + e.path + e.type}><td>${e.at.toLocaleTimeString("en-GB")}</td><td>
          ${words[e.type] ?? e.type}</td><td><a href=${link(e.path)}><${Name} text=${e.path} /></a></td><td><code>
          ${e.zxid}</code></td></tr>`,
    )}</tbody></table></div></section>`;
}
