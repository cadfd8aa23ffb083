// Pieces of which the views are made.
import { html, useState, useEffect, useLayoutEffect, useRef } from "./vendor/preact.js";
import { set, useStore, failed } from "./store.js";
import { send, curl } from "./api.js";
import { visible } from "./text.js";

// Name shows a name or path that somebody else has chosen: what it contains cannot reorder what is beside it.
export const Name = ({ text, data }) => html`<bdi>${visible(text, data)}</bdi>`;

// Text is a sentence of ours, with commands between backquotes.
export const Text = ({ text }) => text.split("`").map((part, i) => (i % 2 ? html`<code>${part}</code>` : part));

// Failure is about a server that has not answered another one, if it is given, or about the request.
export const Failure = ({ error, server }) =>
  error &&
  html`<div role="alert" class="error">${
    error.reason
      ? html`<${Silent} error=${error} server=${server} />`
      : html`<p>${server && `Server ${server}: `}<${Name} text=${error.message} /> ${
          error.hint &&
          html`<small>${error.hint}
    </small>`
        }</p>`
  }</div>`;

// Failures are those of servers: [{id, error}, ...].
export const Failures = ({ of }) =>
  (of ?? []).map(({ id, error }) => html`<${Failure} key=${id} server=${id} error=${error} />`);

// Silent says in short why a server gives no answer, in one line, and when it is opened the whole error.
export const Silent = ({ error, server }) =>
  html`<details class="silent"><summary class="error">${server && `Server ${server} `}<${Name} text=${error.reason} /></summary>
    <code><${Name} text=${error.cause} /></code></details>`;

export const Curl = ({ request }) => {
  const text = curl(request);
  return html`<details class="curl"><summary>As a command</summary><pre tabindex="0">${visible(text, true)}</pre>
    <button type="button" onClick=${() => navigator.clipboard?.writeText(text)}>Copy</button></details>`;
};

export const Diff = ({ lines }) =>
  html`<pre class="diff" tabindex="0" aria-label="What changes">${lines.map(
    ([sign, line]) =>
      html`<span class=${{ "+": "plus", "-": "minus" }[sign]}>${sign} ${visible(line, true)}${"\n"}</span>`,
  )}</pre>`;

// Dialog is modal; Escape closes it, and the focus returns to where it was.
export function Dialog({ title, children }) {
  const ref = useRef();
  useLayoutEffect(() => {
    const before = document.activeElement;
    ref.current.showModal();
    return () => before?.isConnected && before.focus();
  }, []);
  const close = () => set({ dialog: null });
  return html`<dialog ref=${ref} aria-labelledby="dialog-title" onClose=${close}>
    <h2 id="dialog-title"><${Name} text=${title} /></h2>${children}</dialog>`;
}

export const open = (dialog) => set({ dialog });

// Ask is a dialog with a form. fields is what the form shows; request() is what pressing the button sends, or null
// while the form is incomplete; then(answer, request) is called when it has succeeded. check(problem) may return what
// to show of a failure instead. Without a request the button calls then.
export function Ask({ title, what, fields, action, danger, request, then, check }) {
  const [state, setState] = useState({});
  const wanted = request?.();
  const submit = async (event) => {
    event.preventDefault();
    setState({ busy: true });
    try {
      await then(wanted && (await send(wanted)), wanted);
      setState({});
    } catch (error) {
      setState({ error, more: check?.(error) });
    }
  };
  return html`<${Dialog} title=${title}>
    <form onSubmit=${submit}>
      ${what && html`<div class="what">${what}</div>`}${fields}
      <${Failure} error=${state.error} />${state.more}
      ${wanted && html`<${Curl} request=${wanted} />`}
      <p class="buttons"><button type="button" onClick=${() => set({ dialog: null })}>Cancel</button>
        <button class=${danger ? "danger" : "main"} disabled=${state.busy || (request && !wanted)}>${action}</button>
          </p>
    </form></${Dialog}>`;
}

// Field is a labelled input, a select with options, or a textarea with rows.
export function Field({ label, hint, options, rows, onInput, ...rest }) {
  const input = (event) => onInput(event.target.value);
  const control = options
    ? html`<select ...${rest} onChange=${input}>${options.map(
        ([value, text]) => html`<option value=${value}>${text}
      </option>`,
      )}</select>`
    : rows
      ? html`<textarea rows=${rows} spellcheck="false" ...${rest} onInput=${input}></textarea>`
      : html`<input spellcheck="false" autocapitalize="off" autocomplete="off" ...${rest} onInput=${input} />`;
  return html`<label class="field"><span>${label}</span>${control}${hint && html`<small>${hint}</small>`}</label>`;
}

const brief = 4000; // milliseconds that a message is shown which offers nothing to do

// Said is what was done or failed last, with a way back. It goes by itself, unless it is an error or can be undone.
export function Said() {
  const { said } = useStore();
  const close = () => set({ said: null });
  useEffect(() => {
    if (!said || said.error || said.undo) return;
    const timer = setTimeout(close, brief);
    return () => clearTimeout(timer);
  }, [said]);
  const undo = () => said.undo().catch(failed);
  return html`<div id="said" role="status" class=${said?.error ? "error" : ""}>${
    said &&
    html`
    <span><${Name} text=${said.text} /> ${said.hint && html`<small>${said.hint}</small>`}</span>
    ${said.undo && html`<button onClick=${undo}>Undo</button>`}
    <button aria-label="Close this message" onClick=${close}>×</button>`
  }</div>`;
}

// save hands a file to the browser.
export function save(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/x-ndjson" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
