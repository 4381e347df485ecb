// Trends over commits: up to four series of one figure, told apart by dash, marker and label, not by colour.
"use strict";
const MOST = 4;
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];
const MARKS = [
  (pen, x, y, r) => pen.arc(x, y, r, 0, 2 * Math.PI),
  (pen, x, y, r) => pen.rect(x - r, y - r, 2 * r, 2 * r),
  (pen, x, y, r) => { pen.moveTo(x, y - r * 1.3); pen.lineTo(x + r * 1.2, y + r); pen.lineTo(x - r * 1.2, y + r); pen.closePath(); },
  (pen, x, y, r) => { pen.moveTo(x, y - r * 1.4); pen.lineTo(x + r * 1.4, y); pen.lineTo(x, y + r * 1.4); pen.lineTo(x - r * 1.4, y); pen.closePath(); }];
const SIGNS = ["●", "■", "▲", "◆"];
let plot = null;

always(async () => {
  const site = await scoreboard.load("site"), state = scoreboard.state();
  const name = state.case ?? Object.keys(site.leagues)[0];
  if (name === undefined) { say("No run could be read."); return; }
  const league = await scoreboard.league(name);
  document.getElementById("title").textContent = `Trends of ${name}`;
  document.title = `${name}, trends: Proofmark scoreboard`;
  const columns = league.columns.filter((column, at) => league.rows.some(row => typeof row.cells[at][0] === "number"));
  const column = columns.find(each => each.key === state.figure) ?? columns[0];
  const every = column ? seriesOf(league, league.columns.indexOf(column)) : [];
  const asked = (state.series ?? "").split(",").filter(Boolean);
  const wanted = every.filter(series => asked.includes(series.id));
  const chosen = (wanted.length ? wanted : every).slice(0, MOST);
  filters(site, league, columns, column, every, chosen);
  put("reading"); put("plot"); put("changes");
  if (plot) { plot.destroy(); plot = null; }
  if (!chosen.length) { say("No run that passed has this figure."); return; }
  const begun = new Map(league.rows.map(row => [row.id, row.started]));
  const changes = league.changes.filter(change => change.key === column.key && chosen.some(series => series.id === change.series))
    .sort((a, b) => begun.get(a.id) - begun.get(b.id));
  say(`${column.label}${unitOf(column)} of runs that passed, ${chosen.length} of ${every.length} series; ${changes.length} changes.`);
  draw(column, chosen, changes);
  put("reading", make("span", { class: "quiet" }, "Point at the plot, or go through it with the arrow keys: values are shown here."));
  put("changes", changes.length ? changesTable(column, chosen, changes, league) : make("p", {}, "None."));
});

const unitOf = column => ["1", "text"].includes(column.unit) ? "" : `, ${column.unit}`;

function seriesOf(league, at) {
  const found = new Map();
  for (const row of [...league.rows].reverse()) {
    if (row.verdict !== "PASS" || typeof row.cells[at][0] !== "number" || Math.abs(row.started) > 8e12) continue; // no date is later
    if (!found.has(row.series)) {
      found.set(row.series, { id: row.series, points: [], name: [row.vendor, row.chip, ...row.variant, row.precision, row.profile, row.signer && `signed by ${row.signer}`].filter(Boolean).join(", ") });
    }
    found.get(row.series).points.push({ x: row.started, y: row.cells[at][0], text: row.cells[at][1], row });
  }
  return [...found.values()].sort((a, b) => b.points.length - a.points.length);
}

function filters(site, league, columns, column, every, chosen) {
  const form = document.getElementById("filters");
  form.onsubmit = event => event.preventDefault();
  const had = document.activeElement?.id;
  const boxes = every.slice(0, 40).map(series => make("label", { class: "box" }, make("input", { type: "checkbox", id: `series-${series.id}`,
    checked: chosen.includes(series), onchange: event => {
      const now = chosen.map(each => each.id).filter(id => id !== series.id);
      scoreboard.show({ series: (event.target.checked ? [...now, series.id].slice(-MOST) : now).join(",") });
    } }), `${chosen.includes(series) ? SIGNS[chosen.indexOf(series)] : "○"} ${series.name} (${series.points.length})`));
  form.replaceChildren(cases(site, Object.keys(site.leagues)[0]),
    columns.length ? choice("figure", "figure", columns.map(each => [each.key, `${each.label}${unitOf(each)}`]), columns[0].key) : "",
    make("fieldset", {}, make("legend", {}, `series (at most ${MOST})`), ...boxes));
  if (had) document.getElementById(had)?.focus();
}

function draw(column, chosen, changes) {
  const xs = [...new Set(chosen.flatMap(series => series.points.map(point => point.x)))].sort((a, b) => a - b);
  const place = new Map(xs.map((x, at) => [x, at]));
  const data = [xs, ...chosen.map(series => {
    const values = new Array(xs.length).fill(null);
    series.points.forEach(point => { values[place.get(point.x)] = point.y; });
    return values;
  })];
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink").trim(), quiet = style.getPropertyValue("--rule").trim();
  const box = document.getElementById("plot"), small = box.clientWidth < 600;
  const marked = changes.flatMap(change => {
    const at = chosen.findIndex(series => series.id === change.series);
    return chosen[at].points.filter(point => point.row.id === change.id).map(point => ({ x: point.x, sign: SIGNS[at] }));
  });
  const options = {
    width: box.clientWidth, height: small ? 280 : 420, legend: { show: false }, cursor: { drag: { x: true, y: false } },
    scales: { x: { time: true, range: around(xs) } },
    axes: [{ stroke: ink, grid: { stroke: quiet, width: 0.5 }, ticks: { stroke: quiet }, space: small ? 90 : 110, values: days },
      { stroke: ink, grid: { stroke: quiet, width: 0.5 }, ticks: { stroke: quiet }, size: small ? 56 : 70, values: (_, values) => values.map(value => value.toLocaleString("en", { maximumSignificantDigits: 6 })) }],
    series: [{}, ...chosen.map((series, at) => ({ label: series.name, stroke: ink, width: 1.5, dash: DASHES[at], spanGaps: true, points: { show: false } }))],
    hooks: {
      draw: [self => decorate(self, chosen, marked, ink)],
      setCursor: [self => read(self.cursor.idx, xs, chosen)],
    },
  };
  plot = new uPlot(options, data, box);
  box.onkeydown = event => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const at = Math.min(Math.max((plot.cursor.idx ?? (step > 0 ? -1 : xs.length)) + step, 0), xs.length - 1);
    plot.setCursor({ left: plot.valToPos(xs[at], "x"), top: plot.over.clientHeight / 2 });
    read(at, xs, chosen);
  };
}

/** Room for the first and the last mark; a single moment in the middle of two days, and not at the beginning of years. */
const around = xs => (_, first, last) => {
  const room = xs.length > 1 ? 0.02 * (last - first) : 86400;
  return [first - room, (xs.length > 1 ? last : first) + room];
};

/** Ticks as dates in UTC, with the hour where they are closer than a day. */
const days = (_, ticks, axis, space, step) => ticks.map(tick => {
  const told = new Date(tick * 1000).toISOString();
  return step >= 86400 ? told.slice(0, 10) : told.slice(5, 16).replace("T", " ");
});

function decorate(self, chosen, marked, ink) {
  const pen = self.ctx, ratio = devicePixelRatio, { left, top, width, height } = self.bbox;
  pen.save();
  pen.strokeStyle = pen.fillStyle = ink;
  pen.beginPath(); pen.rect(left, top, width, height); pen.clip();
  chosen.forEach((series, at) => {
    const dense = series.points.length > 150;
    series.points.forEach((point, number) => {
      if (dense && number % Math.ceil(series.points.length / 75)) return;
      pen.beginPath();
      MARKS[at](pen, self.valToPos(point.x, "x", true), self.valToPos(point.y, "y", true), 3 * ratio);
      pen.fill();
    });
  });
  pen.textAlign = "left";
  pen.font = `bold ${12 * ratio}px system-ui, sans-serif`;
  marked.forEach((point, number) => {
    const x = self.valToPos(point.x, "x", true);
    pen.setLineDash([4 * ratio, 4 * ratio]);
    pen.beginPath(); pen.moveTo(x, top); pen.lineTo(x, top + height); pen.stroke();
    pen.setLineDash([]);
    pen.fillText(`${number + 1} ${point.sign}`, Math.min(x + 4 * ratio, left + width - 26 * ratio), top + 14 * ratio);
  });
  pen.restore();
}

function read(at, xs, chosen) {
  if (at === null || at === undefined) return;
  const told = chosen.flatMap((series, number) => series.points.filter(point => point.x === xs[at]).map(point =>
    make("span", { class: "line" }, `${SIGNS[number]} `, make("strong", {}, point.text), ` ${series.name}: `,
      runLink(point.row.id, `${point.row.when.slice(0, 16)}, commit ${point.row.commit || "not known"}`))));
  if (told.length) put("reading", ...told);
}

function changesTable(column, chosen, changes, league) {
  const rows = new Map(league.rows.map(row => [row.id, row]));
  const number = value => value.toLocaleString("en", { maximumSignificantDigits: 5 });
  return make("table", { class: "cards" }, make("thead", {}, make("tr", {}, ...["", "from the run on", "series", "mean before", "mean after", "change", "configuration"].map(label => make("th", { scope: "col" }, label)))),
    make("tbody", {}, ...changes.map((change, at) => {
      const row = rows.get(change.id), share = change.before ? 100 * (change.after / change.before - 1) : null;
      const cell = (label, ...content) => make("td", { "data-name": label }, make("span", {}, ...content));
      return make("tr", {}, make("th", { scope: "row" }, String(at + 1)),
        cell("from", runLink(change.id, `${row.when.slice(0, 16)}, ${row.commit || "no commit known"}`)),
        cell("series", SIGNS[chosen.findIndex(series => series.id === change.series)], " ", row.vendor),
        cell("before", number(change.before)), cell("after", number(change.after)),
        cell("change", share === null ? "–" : `${share > 0 ? "+" : ""}${share.toFixed(2)} %`),
        cell("configuration", make("a", { href: scoreboard.address("compare", { a: change.previous, b: change.id }) },
          change.configured_otherwise ? "changed: compare" : "the same: compare")));
    })));
}
