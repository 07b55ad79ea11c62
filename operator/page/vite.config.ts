import { defineConfig } from "vite";

// The web UI is served at `/`, its assets below /page/assets (operator/tarsy/http/web_ui.py).
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
