import { defineConfig } from "vite";

// The views with fixture data, for people and for tests/browser. Built beside the web UI, never into it.
export default defineConfig({
  base: "./",
  build: {
    rolldownOptions: { input: "fixtures.html" },
    outDir: "../../build/page-fixtures",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
