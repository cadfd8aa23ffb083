// The search: an index of the sections in which each word stands (internal/site/search.go), loaded when it is needed.
"use strict";
{
  const root = document.currentScript.dataset.root;
  const input = document.querySelector("#site-search");
  const results = document.querySelector("#site-results");
  const list = results.querySelector("ol");
  const most = 20; // results
  let words, sections; // of the index: each word with its sections

  const split = (text) => text.toLowerCase().split(/[^\p{L}\p{Nd}]+/u).filter(Boolean);

  function load() {
    if (words) return;
    words = [];
    const script = document.createElement("script");
    script.src = root + "search.js";
    script.onload = () => {
      const index = globalThis.searched;
      sections = index.Sections.map(([page, id, text]) => {
        const [url, title] = index.Pages[page];
        return { url: `${root}${url}#${id}`, title, text, heads: split(text), top: title === text };
      });
      const lists = index.In.split(" ");
      words = index.Words.split(" ").map((word, i) => {
        let at = 0;
        return { word, at: lists[i].split(",").map((step) => (at += parseInt(step, 36))) };
      });
      show();
    };
    script.onerror = () => say("The index of the search could not be loaded.", []);
    document.head.append(script);
  }

  // Sections that have all words, or words that begin so, with their scores.
  function find(asked) {
    let all;
    for (const a of asked) {
      const scores = new Map();
      for (const { word, at } of words) {
        if (!word.startsWith(a)) continue;
        // A rare word says more than a common one, a whole word more than a beginning.
        const weight = Math.log(1 + sections.length / at.length) * (word === a ? 2 : 1);
        for (const n of at) scores.set(n, Math.max(scores.get(n) ?? 0, weight * (sections[n].heads.includes(word) ? 5 : 1)));
      }
      all = all ? new Map([...all].filter(([n]) => scores.has(n)).map(([n, s]) => [n, s + scores.get(n)])) : scores;
    }
    return [...all].sort(([n, a], [m, b]) => b - a || n - m).map(([n]) => sections[n]);
  }

  function say(text, found) {
    results.querySelector("p").textContent = text;
    list.replaceChildren(...found.map((s) => {
      const link = document.createElement("a");
      link.href = s.url;
      link.textContent = s.top ? s.title : `${s.title}: ${s.text}`;
      const item = document.createElement("li");
      item.append(link);
      return item;
    }));
    results.hidden = false;
  }

  function show() {
    const asked = split(input.value);
    results.hidden = asked.length === 0;
    if (results.hidden || !sections) return;
    const found = find(asked);
    const count = found.length === 1 ? "1 section" : `${found.length} sections`;
    say(found.length > most ? `${count}, the best ${most}:` : found.length ? `${count}:` : "Nothing has all these words.",
      found.slice(0, most));
  }

  function hide() { results.hidden = true; }

  input.addEventListener("focus", () => { load(); show(); });
  input.addEventListener("input", show);
  document.addEventListener("keydown", (e) => {
    const links = [...list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    const inside = at >= 0 || document.activeElement === input;
    if (e.key === "/" && document.activeElement !== input && !e.ctrlKey && !e.metaKey && !e.altKey) {
      input.focus();
    } else if (e.key === "Escape" && inside) {
      hide();
      input.focus();
      hide();
    } else if (e.key === "ArrowDown" && inside && at + 1 < links.length) {
      links[at + 1].focus();
    } else if (e.key === "ArrowUp" && at >= 0) {
      (links[at - 1] ?? input).focus();
    } else if (e.key === "Enter" && document.activeElement === input && links.length && !results.hidden) {
      links[0].click();
    } else {
      return;
    }
    e.preventDefault();
  });
  document.addEventListener("click", (e) => { if (!e.target.closest("search")) hide(); });
  list.addEventListener("click", hide); // a result on this page
  document.querySelector("search").hidden = false;
}
