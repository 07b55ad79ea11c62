import { defineConfig, type Plugin } from "vite";

const PROGRAM = "start";

/** Names the program as the second script of the document: both load at once, and the first sends its requests first. */
const programScript: Plugin = {
  name: "program-script",
  transformIndexHtml: {
    order: "post",
    handler(_, { bundle, chunk }) {
      const chunks = Object.values(bundle ?? {}).filter((one) => one.type === "chunk");
      const program = chunks.find((one) => one.isEntry && one.name === PROGRAM);
      if (bundle && !program) throw new Error(`The build has no entry ${PROGRAM}: name it in rolldownOptions.input.`);
      const src = program ? `/page/${program.fileName}` : `/src/${PROGRAM}.tsx`; // without a bundle, sources are served
      const imported = program?.imports.filter((file) => !chunk?.imports.includes(file)) ?? [];
      return [
        { tag: "script", attrs: { type: "module", crossorigin: true, src }, injectTo: "head" },
        ...imported.map((file) => ({ tag: "link", attrs: { rel: "modulepreload", crossorigin: true, href: `/page/${file}` }, injectTo: "head" as const })),
      ];
    },
  },
};

// The web UI is served at `/`, its assets below /page/assets (operator/tarsy/http/web_ui.py).
export default defineConfig({
  base: "/page/",
  plugins: [programScript],
  build: {
    rolldownOptions: { input: { index: "index.html", [PROGRAM]: `src/${PROGRAM}.tsx` }, checks: { pluginTimings: false } },
    outDir: "../tarsy/http/page",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
