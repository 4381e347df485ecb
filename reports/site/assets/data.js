// Data comes as scripts, since a page that was opened as a file may not read others. What a page shows is in its
// address, behind the #, so that a view can be shared.
"use strict";
const scoreboard = (() => {
  const waiting = new Map(), received = new Map();

  function receive(name, data) {
    received.set(name, data);
    (waiting.get(name) || []).forEach(([resolve]) => resolve(data));
    waiting.delete(name);
  }

  /** The data of a script: "site", a league's name, or "runs/<id>". Refused where there is no such script. */
  function load(name) {
    if (received.has(name)) return Promise.resolve(received.get(name));
    return new Promise((resolve, reject) => {
      const others = waiting.get(name);
      if (others) { others.push([resolve, reject]); return; }
      waiting.set(name, [[resolve, reject]]);
      const element = document.createElement("script");
      element.src = name.startsWith("runs/") ? `${name}.js` : `data/${name}.js`;
      element.onerror = () => {
        (waiting.get(name) || []).forEach(([, refuse]) => refuse(new Error(`${element.getAttribute("src")} is not there`)));
        waiting.delete(name);
      };
      document.head.append(element);
    });
  }

  async function league(name) {
    const { leagues } = await load("site");
    if (!Object.hasOwn(leagues, name)) throw new Error(`no case is called ${name}`);
    return load(leagues[name].data);
  }

  const state = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

  /** Change what the page shows; an empty value is left out of the address. */
  function show(changes) {
    const parameters = new URLSearchParams(location.hash.slice(1));
    for (const [key, value] of Object.entries(changes)) {
      if (value === "" || value === null || value === undefined) parameters.delete(key);
      else parameters.set(key, value);
    }
    history.replaceState(null, "", `#${parameters}`);
    window.dispatchEvent(new Event("hashchange"));
  }

  const address = (page, parameters) => `${page}.html#${new URLSearchParams(parameters)}`;

  return { receive, load, league, state, show, address };
})();
