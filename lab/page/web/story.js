// Tells a story: a text, a question and a moment of a run at a time.

import { html, byId } from "./svg.js";
import { split } from "./command.js";

export class Teller {
  // show is called with the words of a step's command and its moment.
  constructor(stories, show) {
    this.stories = stories;
    this.show = show;
    byId("stories").replaceChildren(html("option", { value: "" }, "choose one"),
      ...stories.map((s) => html("option", { value: s.name }, s.title)));
    byId("stories").addEventListener("change", (e) => (e.target.value ? this.tell(e.target.value, 0) : this.leave()));
    byId("story-next").addEventListener("click", () => this.tell(this.story.name, this.at + 1));
    byId("story-back").addEventListener("click", () => this.tell(this.story.name, this.at - 1));
    byId("story-close").addEventListener("click", () => { this.leave(); byId("stories").focus(); });
  }

  // place is what a link has of the story: its name and the step.
  get place() { return this.story && `${this.story.name}:${this.at}`; }

  // open shows the panel for a place, without a run; it reports whether there is such a place.
  open(place) {
    const [name, at] = (place ?? "").split(":");
    const story = this.stories.find((s) => s.name === name);
    if (!story?.steps[Number(at)]) { this.leave(); return false; }
    this.story = story;
    this.at = Number(at);
    this.draw();
    return true;
  }

  tell(name, at) {
    const before = this.story?.name === name ? this.story.steps[this.at].command : undefined;
    if (!this.open(`${name}:${at}`)) return;
    const step = this.story.steps[this.at];
    this.show(split(step.command), step.at, step.command === before);
    if (at === 0) byId("story-title").focus();
  }

  leave() {
    this.story = undefined;
    byId("story").hidden = true;
    byId("stories").value = "";
    document.body.classList.remove("predict");
  }

  draw() {
    const { story, at } = this;
    const step = story.steps[at];
    byId("story").hidden = false;
    byId("stories").value = story.name;
    document.body.classList.add("predict");
    byId("story-title").textContent = story.title;
    byId("story-slides").textContent = `Slides: ${story.slides}`;
    byId("story-text").textContent = step.text;
    byId("story-predict").hidden = !step.question;
    byId("story-question").textContent = step.question && `Predict first: ${step.question}`;
    byId("story-answer").open = false;
    byId("story-answer").querySelector("p").textContent = step.answer;
    byId("story-place").textContent = `${at + 1} of ${story.steps.length}`;
    byId("story-back").disabled = at === 0;
    byId("story-next").disabled = at === story.steps.length - 1;
  }
}
