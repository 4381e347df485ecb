// Elements, each made of text and never of markup: whatever a name holds, it is shown and not obeyed.
"use strict";
const make = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
};

/** What an object of data has under a name, which may be any text; not what every object inherits, such as `constructor`. */
const own = (object, name) => Object.hasOwn(object, name) ? object[name] : undefined;

const put = (id, ...children) => document.getElementById(id).replaceChildren(...children);

const say = text => { document.getElementById("about").textContent = text; };

const verdict = (row, small = false) =>
  make("span", { class: `verdict ${row.tone}${small ? " small" : ""}` }, `${row.sign} ${row.verdict}`);

const runLink = (id, ...text) => make("a", { href: `runs/${encodeURIComponent(id)}.html` }, ...text);

/** Cut at a space, so that no number loses digits. */
const shortened = (text, most) => text.length > most ? `${text.slice(0, text.lastIndexOf(" ", most) + 1 || most).trimEnd()} …` : text;

const counted = (count, one, several = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : several}`;

/** A labelled select that shows and sets a part of the page's address; its options are [value, label]. */
const choice = (key, label, options, standard = "") => {
  const now = scoreboard.state()[key] ?? standard;
  const select = make("select", { onchange: event => scoreboard.show({
    [key]: event.target.value === standard ? "" : event.target.value, page: "" }) },
    ...options.map(([value, text]) => make("option", { value, selected: value === now }, shortened(text, 60))));
  return make("label", {}, make("span", {}, label), select);
};

const cases = (site, standard) =>
  choice("case", "case", Object.keys(site.leagues).map(name => [name, name]), standard);

/** Run again whenever the address changes; what goes wrong is said. */
const always = draw => {
  const now = () => draw().catch(error => { say(error.message); });
  window.addEventListener("hashchange", now);
  now();
};
