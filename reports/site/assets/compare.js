// Two runs side by side: what differs, and on demand what is equal too.
"use strict";
always(async () => {
  const state = scoreboard.state();
  const form = document.getElementById("filters");
  if (!form.contains(document.activeElement)) {
    const field = (key, label) => make("label", {}, make("span", {}, label), make("input", { value: state[key] ?? "", size: "18", spellcheck: "false",
      placeholder: "the id of a run", onchange: event => scoreboard.show({ [key]: event.target.value.trim() }) }));
    form.onsubmit = event => event.preventDefault();
    form.replaceChildren(field("a", "first run"), field("b", "second run"), choice("show", "rows", [["", "that differ"], ["all", "all"]]));
  }
  put("table");
  const ids = [state.a, state.b].filter(Boolean);
  if (ids.some(id => !/^[0-9a-f]{16}$/.test(id))) throw new Error("The id of a run has sixteen digits, 0 to f; its page and the league have it.");
  if (ids.length < 2) { say("Choose two runs in a league, or write their ids."); return; }
  const [a, b] = await Promise.all(ids.map(id => scoreboard.load(`runs/${id}`)));
  let differing = 0, all = 0;
  const bodies = Object.keys(a.sections).map(section => {
    const left = a.sections[section], right = b.sections[section];
    const rows = [...new Set([...Object.keys(left), ...Object.keys(right)])].map(label => {
      const first = own(left, label), second = own(right, label), differs = first !== second;
      all += 1; differing += differs;
      return differs || state.show === "all" ? make("tr", { class: differs ? "differs" : "" },
        make("th", { scope: "row" }, differs ? "≠ " : "", label),
        make("td", { "data-name": "first" }, make("span", {}, first ?? "– (not there)")),
        make("td", { "data-name": "second" }, make("span", {}, second ?? "– (not there)"))) : null;
    }).filter(Boolean);
    const empty = make("tr", {}, make("td", { colspan: "3", class: "quiet" }, "no difference"));
    return make("tbody", {}, make("tr", { class: "section" }, make("th", { colspan: "3", scope: "rowgroup" }, section)), ...(rows.length ? rows : [empty]));
  });
  say(`${differing} of ${all} differ.`);
  const head = (run, id, label) => make("th", { scope: "col" }, runLink(id, `${label}: ${run.title}`), make("span", { class: "quiet line small" }, run.when));
  put("table", make("table", { class: "compare cards" }, make("caption", { class: "hidden" }, "Two runs side by side"),
    make("thead", {}, make("tr", {}, make("td", {}), head(a, ids[0], "first"), head(b, ids[1], "second"))), ...bodies));
});
