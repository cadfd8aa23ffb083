// Making elements, with attributes and children. Text always goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
  return node;
}

export function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

export function html(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export const byId = (id) => document.getElementById(id);

// number writes a time or a count in three decimals at most.
export const number = (x) => String(Math.round(x * 1000) / 1000);
