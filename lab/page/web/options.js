// The form for a command's options, made from the list that the simulator has of them.

import { html, byId } from "./svg.js";
import { value, set } from "./command.js";

// algorithms fills the list of all algorithms of all commands.
export function algorithms(commands) {
  byId("algorithm").replaceChildren(...commands.map((c) => {
    const choices = c.options.find((o) => o.name === "algorithm")?.choices ?? [""];
    return html("optgroup", { label: c.name },
      choices.map((a) => html("option", { value: `${c.name} ${a}`.trim() }, a || c.name)));
  }));
}

// show sets the form to a command; change is called with the words that a field makes of them.
export function show(commands, words, trace, change) {
  const command = commands.find((c) => c.name === words[0]);
  const named = command?.options.some((o) => o.name === "algorithm");
  byId("algorithm").value = named ? `${words[0]} ${trace.algorithm}` : words[0];
  const shown = (command?.options ?? []).filter((o) => o.name !== "algorithm" && o.name !== "sweep");
  byId("options").replaceChildren(...shown.map((o) => {
    const id = `option-${o.name}`;
    const given = value(words, o.name);
    return html("div", { class: given === undefined ? "option" : "option given" },
      html("label", { for: id }, `--${o.name}`), field(o, id, given, (v) => change(set(words, o.name, v))),
      html("p", { id: `${id}-help` }, o.help));
  }));
}

function field(o, id, given, change) {
  const about = { id, "aria-describedby": `${id}-help` };
  if (!o.value) {
    return html("input", { ...about, type: "checkbox", checked: given === "true",
      onchange: (e) => change(e.target.checked || undefined) });
  }
  if (o.choices.length) {
    return html("select", { ...about, onchange: (e) => change(e.target.value) },
      o.choices.map((c) => html("option", { value: c, selected: c === (given ?? o.default) }, c)));
  }
  return html("input", { ...about, type: "text", value: given ?? "", placeholder: o.default || o.value,
    autocomplete: "off", onchange: (e) => change(e.target.value.trim()) });
}
