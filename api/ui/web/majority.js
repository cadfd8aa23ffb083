// What the page says and does without a majority: the views show nothing that may be old unless they are asked to.
import { html, useEffect } from "./vendor/preact.js";
import { send } from "./api.js";
import { useHealth } from "./health.js";
import { back, showLocal, useStore } from "./store.js";
import { Failure, Text } from "./parts.js";

const every = 2000; // milliseconds between two looks for it

// Majority is the banner of all views.
export const Majority = () => !useStore().majority && html`<${Lost} />`;

function Lost() {
  const { local } = useStore();
  const { text } = useHealth();
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
  return html`<div class="banner" id="majority"><p role="alert"><${Text} text=${text} /></p>
    ${local && html`<p id="stale"><strong>What you see may be stale:</strong> it is what this server alone has.</p>`}
    <p>Nothing can be changed until there is one. <a href="/docs#no-majority" target="_blank">What to do</a></p></div>`;
}

// Unread says why a view has not been read, and offers what this server has; then is called when that is wanted.
export const Unread = ({ error, then }) =>
  error?.lost
    ? html`<section aria-label="No majority" class="unread"><p>Without a majority this server cannot tell whether others
      have newer data than it has, so nothing is shown.</p><p><button class="main" onClick=${() => {
        showLocal();
        then?.();
      }}>Show what this server has</button></p></section>`
    : html`<${Failure} error=${error} />`;
