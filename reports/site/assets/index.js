// The first page: vendors by cases, and what could not be read.
"use strict";
always(async () => {
  const site = await scoreboard.load("site");
  const names = Object.keys(site.leagues);
  const vendors = [...new Set(names.flatMap(name => Object.keys(site.leagues[name].vendors)))].sort();
  const runs = names.reduce((sum, name) => sum + site.leagues[name].runs, 0);
  say(names.length ? `${counted(runs, "run")} of ${counted(names.length, "case")} by ${counted(vendors.length, "vendor")}.` : "No run could be read.");
  if (names.length) {
    const head = make("tr", {}, make("th", { scope: "col" }, "case"), ...vendors.map(each => make("th", { scope: "col" }, each)));
    const rows = names.map(name => make("tr", {},
      make("th", { scope: "row" }, make("a", { href: scoreboard.address("league", { case: name }) }, name),
        make("span", { class: "quiet small line" }, `${counted(site.leagues[name].runs, "run")}, newest ${site.leagues[name].newest}`)),
      ...vendors.map(vendor => cell(vendor, own(site.leagues[name].vendors, vendor)))));
    put("matrix", make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Vendors by cases" },
      make("table", { class: "matrix cards" }, make("caption", { class: "hidden" }, "Best rank of each vendor in each case"),
        make("thead", {}, head), make("tbody", {}, ...rows))));
  }
  if (site.problems.length) {
    put("problems", make("h2", {}, "Left out"),
      make("p", { class: "quiet" }, `${counted(site.problems.length, "file")} could not be read.`),
      make("ul", {}, ...site.problems.slice(0, 200).map(each => make("li", { class: "small" }, each.what))));
  }
});

function cell(vendor, known) {
  if (!known) return make("td", { "data-name": vendor, class: "quiet" }, make("span", {}, "no run"));
  if (known.rank) {
    return make("td", { "data-name": vendor }, make("span", {},
      runLink(known.id, make("strong", { class: "rank" }, `${known.rank} of ${known.of}`)),
      make("span", { class: "line" }, known.figure), make("span", { class: "quiet small line" }, known.what)));
  }
  return make("td", { "data-name": vendor, class: "quiet" },
    make("span", {}, runLink(known.id, "not ranked"), make("span", { class: "small line" }, shortened(known.why, 160))));
}
