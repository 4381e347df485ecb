// The league table of a case: filtered, sorted and paged in the browser, all of it said by the address.
"use strict";
const PER_PAGE = 50;
const picked = [];
let focus = null;

always(async () => {
  const site = await scoreboard.load("site"), state = scoreboard.state();
  const name = state.case ?? Object.keys(site.leagues)[0];
  if (name === undefined) { say("No run could be read."); return; }
  const league = await scoreboard.league(name);
  document.getElementById("title").textContent = `League of ${name}`;
  document.title = `${name}: Proofmark scoreboard`;
  filters(site, league, name);
  const rows = sorted(matching(league, state), league, state);
  const pages = Math.max(1, Math.ceil(rows.length / PER_PAGE));
  const page = Math.min(Math.max(1, Number.parseInt(state.page, 10) || 1), pages);
  const [by, down] = sorting(league, state);
  say(`${rows.length.toLocaleString("en")} of ${league.rows.length.toLocaleString("en")} runs, by ${columnName(league, by)}, ` +
    `${down ? "largest" : "smallest"} first; page ${page} of ${pages}. Tick two to compare them.`);
  put("table", table(league, rows.slice((page - 1) * PER_PAGE, page * PER_PAGE), by, down));
  turning(page, pages);
  put("exports", "This case as ", ...league.exports.flatMap((file, number) =>
    [number ? ", " : "", make("a", { href: `exports/${file}`, download: file }, file.split(".").pop().toUpperCase())]), ".");
  if (focus) document.getElementById(focus)?.focus();
  focus = null;
});

const sorting = (league, state) => {
  const asked = state.sort ?? "rank", down = asked.startsWith("-"), by = down ? asked.slice(1) : asked;
  const there = ["rank", "when", "vendor", ...league.columns.map(column => column.key)]; // another case may have had it
  return there.includes(by) ? [by, down] : ["rank", false];
};

const columnName = (league, key) => league.columns.find(column => column.key === key)?.label ?? key;

const facets = league => [
  ["vendor", row => row.vendor], ["chip", row => row.chip],
  ...league.variants.map((name, at) => [name, row => row.variant[at] ?? ""]),
  ["precision", row => row.precision], ["profile", row => row.profile], ["verdict", row => row.verdict]];

function filters(site, league, name) {
  const form = document.getElementById("filters");
  if (form.contains(document.activeElement) && form.dataset.case === name) return; // somebody is typing in it
  form.dataset.case = name;
  form.onsubmit = event => event.preventDefault();
  const state = scoreboard.state();
  const asked = key => state[`f.${key}`]?.startsWith("=") ? [state[`f.${key}`].slice(1)] : []; // for another case: shown, to be undone
  const several = facets(league).map(([key, of]) => [key, [...new Set([...league.rows.map(of), ...asked(key)])].sort()])
    .filter(([, values]) => values.length > 1);
  const orders = ["rank", "when", ...league.columns.map(column => column.key)];
  form.replaceChildren(cases(site, Object.keys(site.leagues)[0]),
    choice("show", "runs", [["", "ranked and newest of each"], ["all", "all"]]),
    ...several.map(([key, values]) => choice(`f.${key}`, key, [["", "all"], ...values.map(value => [`=${value}`, value || "–"])])),
    make("label", {}, make("span", {}, "contains"), make("input", { type: "search", value: state.q ?? "",
      oninput: event => scoreboard.show({ q: event.target.value, page: "" }) })),
    make("div", { class: "narrow" }, choice("sort", "sort by", orders.flatMap(key =>
      key === "rank" ? [["rank", "rank"]] : [[`-${key}`, `${columnName(league, key)}, largest first`], [key, `${columnName(league, key)}, smallest first`]]), "rank")));
}

function matching(league, state) {
  const wanted = facets(league).filter(([key]) => state[`f.${key}`]?.startsWith("="));
  const text = (state.q ?? "").toLowerCase();
  return league.rows.filter(row => (state.show === "all" || row.current) &&
    wanted.every(([key, of]) => `=${of(row)}` === state[`f.${key}`]) &&
    (!text || [row.id, row.vendor, row.chip, ...row.variant, row.precision, row.batch, row.commit, row.when, row.verdict, row.why ?? "", row.signer ?? ""]
      .some(part => String(part).toLowerCase().includes(text))));
}

function sorted(rows, league, state) {
  const [by, down] = sorting(league, state);
  const at = league.columns.findIndex(column => column.key === by);
  const of = at >= 0 ? row => row.cells[at][0] : by === "when" ? row => row.started : by === "vendor" ? row => row.vendor : row => row.rank;
  const compare = (a, b) => a === b ? 0 : a === null ? 1 : b === null ? -1 : (a < b) === down ? 1 : -1; // what is missing comes last
  return [...rows].sort((a, b) => compare(of(a), of(b)) || b.started - a.started);
}

function table(league, rows, by, down) {
  const head = [["rank", "rank", ""], ["vendor", "vendor, chip", ""], [null, "set to", ""],
    ...league.columns.map(column => [column.key, column.label, ["1", "text", "share"].includes(column.unit) ? "" : column.unit]),
    [null, "verdict", ""], ["when", "run", ""], [null, "compare", ""]];
  return make("table", { class: "wide league" },
    make("caption", { class: "hidden" }, `Runs of ${league.name}`),
    make("thead", {}, make("tr", {}, ...head.map(([key, label, unit]) => heading(key, label, unit, by, down)))),
    make("tbody", {}, ...rows.map(row => make("tr", { class: row.rank ? "ranked" : "" },
      make("td", { "data-name": "rank" }, row.rank ? make("strong", { class: "rank" }, String(row.rank)) : make("span", { class: "quiet" }, "–")),
      make("th", { scope: "row" }, runLink(row.id, row.vendor), make("span", { class: "quiet line" }, row.chip)),
      make("td", { "data-name": "set to" }, make("span", {}, [...row.variant.filter(Boolean), row.precision].join(", "),
        make("span", { class: "quiet line" }, `${row.profile}, ${row.batch}`))),
      ...league.columns.map((column, at) => figure(column, row.cells[at])),
      make("td", { "data-name": "verdict" }, make("span", {}, verdict(row), row.why && make("span", { class: "why line" }, shortened(row.why.replace(`${row.verdict}; `, ""), 120)),
        row.signer && make("span", { class: "quiet line" }, `signed by ${row.signer}`))),
      make("td", { "data-name": "run" }, make("span", {}, row.when.slice(0, 10), make("span", { class: "quiet line" }, row.when.slice(11, 16), " ", row.commit || "no commit known"))),
      make("td", { "data-name": "compare" }, picker(row))))));
}

function heading(key, label, unit, by, down) {
  const said = [label, unit && make("span", { class: "unit line" }, unit)];
  if (key === null) return make("th", { scope: "col" }, ...said);
  const sorts = key === by ? (down ? "descending" : "ascending") : "none";
  const first = ["rank", "vendor"].includes(key);
  const next = key === by ? (down ? key : `-${key}`) : first ? key : `-${key}`;
  const sign = { descending: " ▼", ascending: " ▲", none: "" }[sorts];
  return make("th", { scope: "col", "aria-sort": sorts }, make("button", { type: "button", id: `by-${key}`,
    onclick: () => { focus = `by-${key}`; scoreboard.show({ sort: next === "rank" ? "" : next, page: "" }); } }, ...said,
    make("span", { "aria-hidden": "true" }, sign)));
}

function figure(column, [value, text, reason]) {
  const shown = text.startsWith("withheld") ? "withheld" : text, spread = shown.split(" ± ")[1];
  return make("td", { "data-name": ["1", "text", "share"].includes(column.unit) ? column.label : `${column.label}, ${column.unit}`, class: value === null ? "quiet figure" : "figure", title: reason },
    make("span", {}, shown.split(" ± ")[0], spread ? make("span", { class: "quiet line" }, `± ${spread}`) : null, value === null && reason ? make("span", { class: "hidden" }, ` (${reason})`) : null));
}

function picker(row) {
  const box = make("input", { type: "checkbox", "aria-label": `compare the run of ${row.vendor}, ${row.when}`, checked: picked.includes(row.id) });
  box.addEventListener("change", () => {
    if (!box.checked) { picked.splice(picked.indexOf(row.id), 1); return; }
    picked.push(row.id);
    if (picked.length === 2) location.href = scoreboard.address("compare", { a: picked[0], b: picked[1] });
  });
  return box;
}

function turning(page, pages) {
  const turn = (label, to, id) => make("button", { type: "button", id, disabled: to < 1 || to > pages,
    onclick: () => { focus = id; scoreboard.show({ page: to === 1 ? "" : to }); } }, label);
  put("pages", ...(pages > 1 ? [turn("◀ previous", page - 1, "previous"), make("span", {}, ` ${page} / ${pages} `), turn("next ▶", page + 1, "next")] : []));
}
