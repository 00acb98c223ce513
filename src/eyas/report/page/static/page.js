"use strict";
// Colours, the contents' mark, and loading anew while the run goes on.
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const THEMES = { auto: "light", light: "dark", dark: "auto" };
  const NAMES = { auto: "Auto", light: "Light", dark: "Dark" };
  const name = () => {
    const theme = root.dataset.theme ?? "auto";
    button.textContent = NAMES[theme];
    button.setAttribute("aria-label", `Colours: ${theme === "auto" ? "as the system" : theme}`);
  };
  const apply = (theme) => {
    if (theme === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme;
    name();
    eyas.draw();
  };
  button.addEventListener("click", () => {
    const next = THEMES[root.dataset.theme ?? "auto"];
    try {
      localStorage.setItem("eyas-report-theme", next);
    } catch {}
    apply(next);
  });
  // Chosen in another tab, or in this one just before it was loaded anew.
  addEventListener("storage", ({ key, newValue }) => {
    if (key === "eyas-report-theme" && newValue in THEMES) apply(newValue);
  });
  name();

  const links = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
  const seen = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) continue;
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(target.id)?.setAttribute("aria-current", "true");
      }
    },
    { rootMargin: "-15% 0px -75% 0px" },
  );
  for (const section of document.querySelectorAll("main section")) seen.observe(section);

  // What the reader had open and where, so that the page comes back the same.
  const folds = () => [...document.querySelectorAll("details")];
  const remember = () =>
    eyas.keep("place", {
      y: scrollY,
      focus: document.activeElement?.id ?? "",
      list: document.getElementById("list")?.scrollTop ?? 0,
      open: document.querySelector(".open")?.scrollTop ?? 0,
      folds: folds().map((fold) => fold.open),
    });
  const place = eyas.kept("place");
  eyas.keep("place", null);
  if (place) {
    folds().forEach((fold, i) => {
      if (place.folds[i] !== undefined && place.folds.length === folds().length) fold.open = place.folds[i];
    });
    const list = document.getElementById("list");
    if (list) {
      list.scrollTop = place.list;
      document.querySelector(".open").scrollTop = place.open;
    }
    document.getElementById(place.focus)?.focus({ preventScroll: true });
    scrollTo({ top: place.y, behavior: "instant" });
  } else if (location.hash.startsWith("#samples?")) document.getElementById("samples")?.scrollIntoView({ behavior: "instant" });

  const banner = document.querySelector("[data-refresh]");
  if (!banner) return;
  const every = Math.max(1, Number(banner.dataset.refresh)) * 1000;
  const pause = document.getElementById("pause");
  let stopped = eyas.kept("stopped") === true;
  const label = () => (pause.textContent = stopped ? "Go on reloading" : "Stop reloading");
  pause.hidden = false;
  pause.addEventListener("click", () => {
    stopped = !stopped;
    eyas.keep("stopped", stopped);
    label();
  });
  label();
  setInterval(() => {
    // Whoever marks text, or chooses in a menu, is left in peace.
    if (stopped || !getSelection().isCollapsed || document.activeElement?.tagName === "SELECT") return;
    remember();
    location.reload();
  }, every);
})();
