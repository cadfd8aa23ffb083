// What the page says and does without a majority: the views show nothing that may be old unless they are asked to.
import { html, useEffect } from "./vendor/preact.js";
import { send } from "./api.js";
import { outage, useServers } from "./ensemble.js";
import { back, showLocal, useStore } from "./store.js";
import { Failure } from "./parts.js";

const every = 2000; // milliseconds between two looks for it

// Majority is the banner of all views.
export const Majority = () => !useStore().majority && html`<${Lost} />`;

function Lost() {
  const { local } = useStore();
  const { rows } = useServers();
  useEffect(() => {
    const abort = new AbortController();
    const look = () =>
      send({ path: "/v1/znodes/", query: { children: true, limit: 1 } }, abort.signal).then(
        back,
        ({ status }) => status && status !== 503 && back(), // what the server refuses otherwise, it serves
      );
    const timer = setInterval(look, every);
    return () => {
      clearInterval(timer);
      abort.abort();
    };
  }, []);
  return html`<div class="banner" id="majority"><p role="alert">${why(outage(rows))}</p>
    ${local && html`<p id="stale"><strong>What you see may be stale:</strong> it is what this server alone has.</p>`}
    <p>Nothing can be changed until there is one. <a href="/docs#no-majority" target="_blank">What to do</a></p></div>`;
}

// why says what is the matter, and what to do.
function why(o) {
  if (!o) return "No majority: this server has no contact with one.";
  const { silent, halted, missing } = o;
  const one = silent.length === 1;
  const who = silent.length > 0 && `server${one ? "" : "s"} ${list(silent)} ${one ? "does" : "do"} not answer`;
  if (halted.length)
    return html`No majority: ${halted.map(([id, reason]) => `server ${id} has halted (${reason}), `)}${who || "and nobody leads"}.
      ${" "}<code>zk-lite doctor</code> says what to do.`;
  if (missing && who)
    return html`No majority: ${who}. Start ${one ? "it; if it is" : "them; if they are"} lost for good: <code>zk-lite recover</code>.`;
  return html`No leader: ${who ? `${who}, and the others` : "all servers answer, and"} have elected none. If it stays so,
    ${" "}<code>zk-lite doctor</code> says more.`;
}

const list = (ids) => (ids.length < 2 ? ids.join() : `${ids.slice(0, -1).join(", ")} and ${ids.at(-1)}`);

// Unread says why a view has not been read, and offers what this server has; then is called when that is wanted.
export const Unread = ({ error, then }) =>
  error?.lost
    ? html`<section aria-label="No majority" class="unread"><p>Without a majority this server cannot tell whether others
      have newer data than it has, so nothing is shown.</p><p><button class="main" onClick=${() => {
        showLocal();
        then?.();
      }}>Show what this server has</button></p></section>`
    : html`<${Failure} error=${error} />`;
