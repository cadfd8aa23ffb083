// Tells a story: a text, a question and a moment of a run at a time. On a wall it says one of them at a time.

import { html, byId } from "./svg.js";
import { split, toFragment } from "./command.js";

// slideLists are the slides of each lecture, with links to their stories and commands.
export function slideLists({ lectures, slides, commands }) {
  const link = (fragment, text) => [" ", html("a", { href: fragment }, text)];
  const runs = (line) => commands.some((c) => c.name === line.split(" ")[0]) && !line.includes("--sweep");
  return lectures.flatMap((title, i) => [html("h2", {}, `Lecture ${i + 1}: ${title}`), html("ul", {},
    slides.filter((s) => s.lectures.includes(i + 1)).map((s) => html("li", {}, s.title,
      s.stories.flatMap((name) => link(`#s=${name}`, name)),
      s.commands.filter(runs).slice(0, 1).flatMap((line) => link(toFragment({ words: split(line) }), "run")))))]);
}

export class Teller {
  // show is called with the words of a step's command and its moment.
  constructor({ stories, lectures }, show) {
    this.stories = stories;
    this.show = show;
    const list = byId("stories");
    list.replaceChildren(html("option", { value: "" }, "choose one"), ...lectures.map((title, i) => html("optgroup",
      { label: `Lecture ${i + 1}: ${title}` },
      stories.filter((s) => s.lectures.includes(i + 1)).map((s) => html("option", { value: s.name },
        `${s.title} (${s.algorithm}, ${s.steps.length} steps)`)))));
    const on = (id, event, act) => byId(id).addEventListener(event, act);
    on("stories", "change", () => (list.value ? this.tell(list.value, 0) : this.leave()));
    on("story-next", "click", () => this.tell(this.story.name, this.at + 1));
    on("story-back", "click", () => this.tell(this.story.name, this.at - 1));
    on("story-close", "click", () => { this.leave(); list.focus(); });
    on("story-answer", "toggle", () => { if (byId("story-answer").open && this.part === 1) this.say(2); });
    addEventListener("resize", () => this.fit());
  }

  get step() { return this.story?.steps[this.at]; }

  // place is what a link has of the story: its name and the step.
  get place() { return this.story && `${this.story.name}:${this.at}`; }

  // open shows the panel for a place, without a run; it returns the step, if there is such a place.
  open(place) {
    const [name, at] = (place ?? "").split(":");
    const story = this.stories.find((s) => s.name === name);
    if (!story?.steps[Number(at ?? 0)]) { this.leave(); return undefined; }
    this.story = story;
    this.at = Number(at ?? 0);
    this.draw();
    return this.step;
  }

  tell(name, at) {
    const before = this.story?.name === name ? this.step.command : undefined;
    if (!this.open(`${name}:${at}`)) return;
    this.show(split(this.step.command), this.step.at, this.step.command === before);
    if (at === 0) byId("story-title").focus();
  }

  leave() {
    this.story = undefined;
    byId("story").hidden = true;
    byId("stories").value = "";
    byId("player").dataset.keys = "← → step · space plays · Esc leaves";
  }

  // The parts of a step are its text, its question and its answer, in this order.
  get parts() { return this.step.question ? 3 : 1; }

  forward() {
    if (this.part + 1 < this.parts) this.say(this.part + 1);
    else if (this.at + 1 < this.story.steps.length) this.tell(this.story.name, this.at + 1);
  }

  back() {
    if (this.part > 0) this.say(this.part - 1);
    else if (this.at > 0) {
      this.tell(this.story.name, this.at - 1);
      this.say(this.parts - 1);
    }
  }

  first() { this.tell(this.story.name, 0); }

  last() {
    this.tell(this.story.name, this.story.steps.length - 1);
    this.say(this.parts - 1);
  }

  // predict takes the nth choice, from 1, as the prediction and shows the answer.
  predict(n) {
    const choices = this.step.choices;
    if (!this.step.question || n > Math.max(1, choices.length)) return;
    this.say(2);
    [...byId("story-choices").children].forEach((item, i) => {
      if (i + 1 !== n && i !== this.step.right) return;
      item.className = i === this.step.right ? "right" : "wrong";
      item.firstChild.setAttribute("aria-pressed", String(i + 1 === n));
    });
  }

  // say shows a part; the panel beside the run has all of them, the answer once it is asked for.
  say(part) {
    this.part = part;
    byId("story").dataset.part = part;
    byId("story-answer").open = part === 2;
    for (const item of byId("story-choices").children) item.className = "";
    this.fit();
  }

  // fit makes what is said on a wall as large as one line of the window permits.
  fit() {
    const line = [byId("story-text"), byId("story-question"), byId("story-answer").querySelector("p")][this.part];
    if (!line) return;
    line.style.fontSize = "";
    if (!this.story || !document.body.classList.contains("present")) return;
    const size = parseFloat(getComputedStyle(line).fontSize);
    line.style.fontSize = `${Math.min(size, (size * line.clientWidth) / line.scrollWidth)}px`;
  }

  draw() {
    const { story, at, step } = this;
    byId("story").hidden = false;
    // A story of several lectures stays chosen where it was chosen.
    if (byId("stories").value !== story.name) byId("stories").value = story.name;
    byId("story-title").textContent = story.title;
    byId("story-slides").textContent = `Slides: ${story.slides}`;
    byId("story-text").textContent = step.text;
    byId("story-predict").hidden = !step.question;
    byId("story-question").textContent = step.question && `Predict first: ${step.question}`;
    byId("story-choices").replaceChildren(...step.choices.map((choice, i) => html("li", {},
      html("button", { type: "button", onclick: () => this.predict(i + 1) }, html("kbd", {}, i + 1), ` ${choice}`))));
    byId("story-answer").querySelector("p").textContent = step.answer;
    byId("story-place").textContent = `${at + 1} of ${story.steps.length}`;
    byId("player").dataset.keys = `${at + 1} of ${story.steps.length} · ← → story · 1–9 answer · ↑ ↓ run · Esc`;
    byId("story-back").disabled = at === 0;
    byId("story-next").disabled = at === story.steps.length - 1;
    this.say(0);
  }
}
