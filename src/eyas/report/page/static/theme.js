"use strict";
// Runs before anything is drawn. A file opened from the disk may have no storage at all.
document.documentElement.dataset.scripts = "";
try {
  const kept = localStorage.getItem("eyas-report-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch {}
