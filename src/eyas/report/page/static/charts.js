"use strict";
// The charts over time, the tail and the coverage, drawn by uPlot. Each says in its readout what the cursor stands on.
(() => {
  const given = eyas.data("charts-data");
  const drawn = new Map();
  const INCREMENTS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800];
  const LINES = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];
  const DASHES = [[], [6, 3], [2, 3], [9, 3, 2, 3]];
  const FONT = `12px ${getComputedStyle(document.body).fontFamily}`;
  const step = uPlot.paths.stepped({ align: -1 });

  const probe = document.body.appendChild(eyas.make("span", { hidden: "" }));
  /** A colour of the style as the canvas needs it: the theme's own, with its opacity. */
  const colour = (name, opacity = 1) => {
    probe.style.color = `var(--${name})`;
    const [red, green, blue] = getComputedStyle(probe).color.match(/[\d.]+/g);
    return `rgba(${red}, ${green}, ${blue}, ${opacity})`;
  };

  const lasting = (seconds) => {
    if (seconds < 120) return `${+seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
    if (seconds < 3 * 3600) return `${+(seconds / 60).toFixed(1)} min`;
    return `${Math.floor(seconds / 3600)}:${String(Math.floor((seconds % 3600) / 60)).padStart(2, "0")} h`;
  };
  const clock = (at) => `${new Date(at * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;

  const line = (name, opacity, more = {}) => ({
    stroke: colour(name),
    fill: opacity ? colour(name, opacity) : undefined,
    width: 1.5,
    points: { show: false },
    ...more,
  });
  const axis = (values, more = {}) => ({
    stroke: colour("muted"),
    font: FONT,
    grid: { stroke: colour("line"), width: 1 },
    ticks: { show: false },
    values: (_, splits) => splits.map((value) => (value === null ? "" : values(value))),
    size: 56,
    ...more,
  });
  const upright = (label, values) => axis(values, { label, labelSize: 18, labelGap: 2, labelFont: FONT });
  const level = (values, more = {}) => axis(values, { size: 30, space: 70, ...more });
  const top = (most) => [0, most > 0 ? most * 1.06 : 1];

  const pauses = (chart) => {
    const { ctx, bbox } = chart;
    ctx.save();
    ctx.setLineDash([3 * devicePixelRatio, 4 * devicePixelRatio]);
    ctx.strokeStyle = colour("muted");
    ctx.lineWidth = devicePixelRatio;
    for (const cut of given.course.cuts) {
      const x = Math.round(chart.valToPos(cut, "x", true));
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      if (x >= bbox.left && x <= bbox.left + bbox.width) ctx.stroke();
    }
    ctx.restore();
  };

  /** What the charts along the run share: their time, their cursor, the pauses. */
  const along = (label, values, most, series, lists, says) => {
    const { x, at } = given.course;
    return {
      data: [x, ...lists],
      options: {
        scales: { x: { time: false }, y: { range: () => top(most) } },
        axes: [level(lasting, { incrs: INCREMENTS }), upright(label, values)],
        cursor: { y: false, sync: { key: "course" }, points: { size: 6 } },
        series: [{}, ...series],
        hooks: { draw: [pauses] },
      },
      says: (i) => `${lasting(x[i])} (${clock(at[i])}): ${says(i)}`,
    };
  };

  const money = () => {
    const { settled, unknown, reserved, cap } = given.course;
    const booked = settled.map((usd, i) => usd + unknown[i]);
    const exposure = booked.map((usd, i) => usd + reserved[i]);
    const most = Math.max(...exposure);
    // A cap far above what was ever exposed would press the rest flat: then it stands in the readout only.
    const caps = cap.filter((usd) => usd !== null && usd <= 4 * most);
    const chart = along(
      "US dollars", (usd) => eyas.dollars(usd).replace(/\.00$/, ""), Math.max(most, ...caps),
      [line("c1", 0.45), line("c3", 0), line("c2", 0), line("ink", 0, { dash: [6, 4], width: 1.25, paths: step })],
      [settled, booked, exposure, cap],
      (i) =>
        `${eyas.dollars(settled[i])} settled, ${eyas.dollars(unknown[i])} unknown, ${eyas.dollars(reserved[i])} reserved; ` +
        `exposed ${eyas.dollars(exposure[i])}` +
        (cap[i] === null ? ", no cap" : ` of ${eyas.dollars(cap[i])}${cap[i] > 4 * most ? " (the cap lies above this chart)" : ""}`),
    );
    chart.options.bands = [
      { series: [2, 1], fill: colour("c3", 0.5) },
      { series: [3, 2], fill: colour("c2", 0.28) },
    ];
    return chart;
  };
  const lone = (label, list, name, says) => along(label, eyas.short, Math.max(...list), [line(name, 0.18, { paths: step })], [list], says);
  const KINDS = {
    money,
    speed: () => lone("tokens a second", given.course.speed, "c1", (i) => `${eyas.count(given.course.speed[i])} tokens a second`),
    flight: () => lone("in flight", given.course.flight, "c5", (i) => `${eyas.count(given.course.flight[i])} in flight, ${eyas.count(given.course.answered[i])} answered`),
    errors: () => {
      const { errors, rejects } = given.course;
      return along(
        "a minute", eyas.short, Math.max(...errors, ...rejects),
        [line("c2", 0.2, { paths: step }), line("c4", 0, { paths: step, dash: [5, 3] })], [rejects, errors],
        (i) => `${eyas.short(rejects[i])} refused for load, ${eyas.short(errors[i])} other failures a minute`,
      );
    },
    tail: () => {
      const { x, y } = given.tail;
      const least = Math.floor(Math.min(...y) * 10) / 10;
      return {
        data: [x, y],
        options: {
          scales: { x: { time: false, range: () => [0, x.at(-1) * 1.02 || 1] }, y: { range: () => [least === 1 ? 0 : least, 1.01] } },
          axes: [level(lasting, { incrs: INCREMENTS }), upright("of the answers", (share) => (share > 1 ? "" : `${Math.round(100 * share)} %`))],
          cursor: { y: false, points: { size: 6 } },
          series: [{}, line("c1", 0.12, { width: 2, points: { show: true, size: 5, fill: colour("c1") } })],
        },
        says: (i) => `${eyas.share(y[i])} were there after ${lasting(x[i])}`,
      };
    },
    coverage: () => {
      const { x, lines } = given.coverage;
      const names = [...document.querySelectorAll("#coverage .legend li")].map((item) => item.textContent);
      const every = Math.ceil(x.length / 8);
      const ticks = x.filter((_, i) => (x.length - 1 - i) % every === 0);
      const least = Math.floor(Math.min(...lines.flat()) * 10) / 10;
      return {
        data: [x, ...lines],
        options: {
          scales: { x: { time: false, distr: 3, range: () => [x[0], x.at(-1)] }, y: { range: () => [Math.min(least, 0.9), 1.01] } },
          axes: [
            level(eyas.short, { splits: () => ticks, filter: (_, splits) => splits }),
            upright("covered", (share) => (share > 1 ? "" : `${Math.round(100 * share)} %`)),
          ],
          cursor: { y: false, points: { size: 6 } },
          series: [{}, ...lines.map((_, i) => line(LINES[i % 8], 0, { width: i ? 1.5 : 3, dash: DASHES[Math.floor(i / 8) % 4] }))],
        },
        says: (i) => `${eyas.count(x[i])} tokens cover ` + lines.map((each, n) => `${names[n]} ${eyas.share(each[i])}`).join(", "),
      };
    },
  };

  const steer = (event, chart, length) => {
    const here = chart.cursor.idx ?? -1;
    const far = event.shiftKey ? 10 : 1;
    const moves = { ArrowRight: here + far, ArrowLeft: here - far, Home: 0, End: length - 1 };
    if (!(event.key in moves) || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const place = Math.max(0, Math.min(length - 1, moves[event.key]));
    chart.setCursor({ left: chart.valToPos(chart.data[0][place], "x"), top: 10 });
  };

  const draw = (box) => {
    const kind = KINDS[box.dataset.chart]();
    const readout = document.getElementById(`readout-${box.dataset.chart}`);
    readout.dataset.says ??= readout.textContent;
    const hooks = kind.options.hooks ?? {};
    hooks.setCursor = [
      (chart) => {
        const place = chart.cursor.idx;
        readout.textContent = place == null || chart.cursor.left < 0 ? readout.dataset.says : eyas.plain(kind.says(place));
      },
    ];
    drawn.get(box)?.destroy();
    const size = { width: box.clientWidth, height: box.clientHeight };
    const chart = new uPlot({ ...kind.options, ...size, hooks, legend: { show: false }, padding: [8, 26, 0, 0] }, kind.data, box);
    drawn.set(box, chart);
    box.onkeydown = (event) => steer(event, chart, kind.data[0].length);
  };

  const boxes = [...document.querySelectorAll(".chart")].filter((box) => box.dataset.chart in KINDS);
  eyas.draw = () => boxes.forEach(draw);
  eyas.draw();
  const watch = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const chart = drawn.get(target);
      if (chart && target.clientWidth && chart.width !== target.clientWidth)
        chart.setSize({ width: target.clientWidth, height: target.clientHeight });
    }
  });
  boxes.forEach((box) => watch.observe(box));
  for (const media of ["(prefers-color-scheme: dark)", "print"]) matchMedia(media).addEventListener("change", eyas.draw);
})();
