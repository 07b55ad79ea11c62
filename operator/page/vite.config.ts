import { defineConfig } from "vite";

// The page is served at `/`, its assets below /page/assets (operator/tarsy/http/page_files.py).
export default defineConfig({
  base: "/page/",
  build: {
    outDir: "../tarsy/http/page",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
